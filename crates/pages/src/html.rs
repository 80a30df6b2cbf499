//! Parts of a page: the document around a body, tiles, tables, bars. No scripts, no network, light and dark.

use std::fmt::Write as _;

use super::text::escape;

/// How pages look.
const STYLE: &str = include_str!("page.css");

/// A page around a body.
pub fn document(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{}</title>\
         <style>{STYLE}</style></head><body><main>{body}</main></body></html>\n",
        escape(title)
    )
}

/// A row of big numbers.
pub fn tiles(out: &mut String, tiles: &[(&str, String)]) {
    out.push_str("<div class=\"tiles\">");
    for (name, value) in tiles {
        let _ = write!(out, "<div class=\"tile\"><b>{}</b><span>{}</span></div>", escape(value), escape(name));
    }
    out.push_str("</div>");
}

/// A cell with more characters is given room on narrow screens.
const LONG: usize = 40;

/// A table: heads, rows; columns from `numbers` on are aligned right.
pub fn grid(out: &mut String, heads: &[&str], rows: &[Vec<String>], numbers: usize) {
    out.push_str("<div class=\"scroll\"><table><thead><tr>");
    let class = |at: usize| if at >= numbers { " class=\"n\"" } else { "" };
    for (at, head) in heads.iter().enumerate() {
        let _ = write!(out, "<th{}>{}</th>", class(at), escape(head));
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        out.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let class = if at < numbers && cell.chars().count() > LONG { " class=\"long\"" } else { class(at) };
            let _ = write!(out, "<td{class}>{}</td>", escape(cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
}

/// Horizontal bars: name, value, text at the end.
pub fn bars(bars: &[(String, f64, String)]) -> String {
    let most = bars.iter().map(|(_, value, _)| *value).fold(0.0, f64::max);
    let mut out = String::from("<div class=\"bars\">");
    for (name, value, text) in bars {
        let width = if most > 0.0 { value / most * 100.0 } else { 0.0 };
        let _ = write!(
            out,
            "<div class=\"name\">{}</div><div class=\"track\"><div class=\"bar\" style=\"width:{width:.1}%\"></div></div>\
             <div class=\"value\">{}</div>",
            escape(name),
            escape(text)
        );
    }
    out.push_str("</div>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_text() {
        let mut out = String::new();
        tiles(&mut out, &[("a<b", "1".to_owned())]);
        grid(&mut out, &["c<d", ""], &[vec!["<e>".to_owned(), "2".to_owned()]], 1);
        out += &bars(&[("<f>".to_owned(), 1.0, "<3>".to_owned()), ("g".to_owned(), 0.5, String::new())]);
        let page = document("<h>", &out);
        for tag in ["a<b", "c<d", "<e>", "<f>", "<3>", "<title><h>"] {
            assert!(!page.contains(tag), "{tag} in {page}");
        }
        assert!(page.contains("<td class=\"n\">2</td>") && page.contains("width:50.0%"), "{page}");
    }
}
