//! Makes the corpus that both targets start from of the golden logs: `cargo run --bin corpus`.

use std::path::Path;

use binlog::{Framer, Step};
use bytes::Bytes;

fn main() -> std::io::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = here.join("corpus");
    std::fs::create_dir_all(&corpus)?;
    for server in std::fs::read_dir(here.join("../tests/golden"))? {
        let server = server?.path();
        let name = server.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let choice = if name.starts_with("mariadb") { 2 } else { u8::from(name.starts_with("mysql-5.6")) };
        let Ok(files) = std::fs::read_dir(&server) else { continue };
        for file in files {
            let file = file?.path();
            if file.extension().is_none_or(|extension| extension != "binlog") {
                continue;
            }
            let mut input = vec![choice];
            let mut framer = Framer::new();
            framer.push(Bytes::from(std::fs::read(&file)?));
            while let Step::Event { event, .. } = framer.next() {
                // Without its checksum, where it has one.
                let body = event.body().len();
                let bytes = &event.bytes()[..(19 + body).min(event.bytes().len())];
                if let Ok(length) = u16::try_from(bytes.len()) {
                    input.extend_from_slice(&length.to_le_bytes());
                    input.extend_from_slice(bytes);
                }
            }
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            std::fs::write(corpus.join(format!("{name}-{stem}")), &input)?;
        }
    }
    Ok(())
}
