//! How far predictions were off where they were measured: `bench/simulation`, bench/results/simulation.md.

/// Of speedups, between one model and another: the median over the workloads and servers of bench/results/simulation.md, as a part of what was measured.
pub const SPEEDUP_OFF: f64 = 0.2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_page_has_it() {
        let page = include_str!("../../../../bench/results/simulation.md");
        let parts = page.lines().filter_map(|line| line.split_once(" of throughput, ")?.1.split_once(" % of speedup"));
        let mut off: Vec<f64> = parts.filter_map(|(percent, _)| percent.parse().ok()).collect();
        off.sort_by(f64::total_cmp);
        assert!(off.len() >= 8, "{off:?}");
        let median = f64::midpoint(off[(off.len() - 1) / 2], off[off.len() / 2]);
        assert!((median / 100.0 - SPEEDUP_OFF).abs() < 0.01, "the page has {median} %");
    }
}
