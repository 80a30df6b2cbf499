//! Streams of events through the assembler, with what it does to statements: an error or a transaction, never a panic.
#![no_main]

use engine::intake::Assembler;
use binlog::LogPosition;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((format, events)) = heddle_binlog_fuzz::events(input) else { return };
    let mut assembler = Assembler::new(1 << 16);
    let mut at = 4;
    for event in &events {
        let end = at + event.bytes().len() as u64;
        let (start, stop) = (LogPosition::new("binlog.000001", at), LogPosition::new("binlog.000001", end));
        if assembler.event(event, &format, &start, &stop).is_err() {
            assembler.restart();
        }
        at = end;
    }
});
