//! Where channels start and go on, and what a source lacks.

use super::*;

fn source(flavour: Flavour, end: &str, executed: &str) -> SourceState {
    SourceState {
        flavour,
        version_text: String::new(),
        machine: "here".to_owned(),
        version: (10, 11, 0),
        identity: "one".to_owned(),
        binlog_format: "ROW".to_owned(),
        row_image: "FULL".to_owned(),
        gtids: true,
        end: end.parse().unwrap(),
        executed: state(flavour, executed),
        now_us: 0,
        replicated: binlog::gtids::GtidPos::default(),
        logs: Vec::new(),
        log: crate::flow::source_log::SourceLog::default(),
        purged: false,
        purged_gtids: GtidState::None,
        needs_password_cache: false,
        may_read_log: true,
    }
}

fn state(flavour: Flavour, gtids: &str) -> GtidState {
    match flavour {
        Flavour::MySql => GtidState::MySql(gtids.parse().unwrap()),
        Flavour::MariaDb => GtidState::MariaDb(gtids.parse().unwrap()),
    }
}

#[test]
fn what_only_the_target_has_is_no_part_of_the_start() {
    const SOURCE: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const OWN: &str = "8a258768-e5b8-11f1-9e33-02fc00000001";
    let source = source(Flavour::MySql, "b.000002:100", &format!("{SOURCE}:1-9"));
    let asked = StartRequest::Gtids(state(Flavour::MySql, &format!("{SOURCE}:1-7,{OWN}:1-3")));
    let start = live(&ChannelRecord::default(), &source, &asked, &GtidState::None, RelayContents::Nothing).unwrap();
    assert_eq!(start.mark.gtids.to_string(), format!("{SOURCE}:1-7"));
    assert!(start.by_gtid);
    let source_text = start.source_text("one");
    let opened = ChannelRecord { mark: Some(start.mark), source: Some(source_text), ..ChannelRecord::default() };
    assert!(live(&opened, &source, &StartRequest::Default, &GtidState::None, RelayContents::Nothing).is_ok());
}

#[test]
fn a_channel_stays_with_one_vendor() {
    const SET: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9";
    let check = |of_channel, gtids, of_source, executed, words: &str| {
        let mark = Mark { seq: 9, gtids: state(of_channel, gtids), ..Mark::default() };
        let opened =
            ChannelRecord { mark: Some(mark), source: Some("two by gtid".to_owned()), ..ChannelRecord::default() };
        let source = source(of_source, "b.000002:100", executed);
        let start = live(&opened, &source, &StartRequest::Default, &GtidState::None, RelayContents::Nothing);
        let said = start.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(if words.is_empty() { said.is_empty() } else { said.contains(words) }, "{gtids}: {said}");
    };
    check(Flavour::MySql, SET, Flavour::MySql, SET, "");
    check(Flavour::MariaDb, "0-1-9", Flavour::MariaDb, "0-1-9", "");
    check(Flavour::MySql, SET, Flavour::MariaDb, "0-1-9", "and the source is MariaDB");
    check(Flavour::MariaDb, "0-1-9", Flavour::MySql, SET, "and the source is MySQL");
}

/// Nothing was applied, and meanwhile the source has purged the begin.
#[test]
fn a_begin_that_is_gone_is_lacking() {
    let opened = ChannelRecord {
        mark: Some(Mark::default()),
        source: Some("one by gtid".to_owned()),
        ..ChannelRecord::default()
    };
    for purged in [false, true] {
        let source = SourceState { purged, ..source(Flavour::MariaDb, "b.000002:100", "0-1-9") };
        let start = live(&opened, &source, &StartRequest::Default, &GtidState::None, RelayContents::Nothing).unwrap();
        assert_eq!(start.lacks(&source).is_some(), purged, "{start:?}");
    }
}

#[test]
fn what_the_target_has_beyond_the_mark() {
    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const B: &str = "8a258768-e5b8-11f1-9e33-02fc00000001";
    let check = |executed: &str, applied: &str, source: &str, by_gtid: bool, expected: &str| {
        let states = [executed, applied, source].map(|text| text.parse::<GtidState>().unwrap());
        let [executed, applied, source] = &states;
        let mark = Mark { gtids: applied.clone(), ..Mark::default() };
        let start = Start {
            mark,
            extent: Extent::Rest,
            is_new: false,
            by_gtid,
            stream: StreamStart::Oldest,
            instead_of: None,
            passed: None,
            warnings: Vec::new(),
        };
        assert_eq!(ahead(executed, &start, source).to_string(), expected, "{states:?}");
    };
    check(&format!("{A}:1-5:8:10"), &format!("{A}:1-6"), "", false, &format!("{A}:8:10"));
    check(&format!("{A}:1-5:8:10"), &format!("{A}:1-6"), &format!("{A}:1-9"), true, &format!("{A}:8"));
    // Of a server that the channel does not know.
    check(&format!("{A}:1-5:8,{B}:1-9"), &format!("{A}:1-6"), "", false, &format!("{A}:8"));
    check(&format!("{A}:1-5,{B}:1-9"), "", &format!("{A}:1-9"), true, &format!("{A}:1-5"));
    check(&format!("{A}:1-5"), "", "", false, &format!("{A}:1-5"));
    // From before a channel that began at a position.
    check(&format!("{A}:1-7:9"), &format!("{A}:5-6"), "", false, &format!("{A}:7:9"));
    check(&format!("{A}:1-7:9"), &format!("{A}:5-6"), &format!("{A}:1-9"), false, &format!("{A}:7:9"));
    check(&format!("{A}:1-7:9"), &format!("{A}:5-6"), &format!("{A}:1-9"), true, &format!("{A}:1-4:7:9"));
    check("0-1-7", "0-1-5", "0-1-9", true, "");
    check("", &format!("{A}:1-6"), &format!("{A}:1-9"), true, "");
}

#[test]
fn a_source_that_went_back() {
    let check = |flavour, end, executed, position: &str, gtids, same, expected: bool| {
        let mark = Mark { position: Some(position.parse().unwrap()), gtids: state(flavour, gtids), ..Mark::default() };
        let lacking = lacks(&source(flavour, end, executed), &mark, same, true);
        assert_eq!(lacking.is_some(), expected, "{end} {executed} {position} {gtids}: {lacking:?}");
    };
    use Flavour::{MariaDb, MySql};
    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9";
    const B: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-8";
    check(MySql, "b.000002:100", A, "b.000002:100", A, true, false);
    check(MySql, "b.000002:100", A, "b.000001:900", B, true, false);
    check(MySql, "b.000002:100", B, "b.000002:100", A, true, true);
    check(MySql, "b.000002:100", A, "b.000002:101", A, true, true);
    // Transactions of another server's own, which was the source before.
    let errant = format!("{A},8a258768-e5b8-11f1-9e33-02fc00000001:1");
    let of_uuid = SourceState { identity: A.split(':').next().unwrap().to_owned(), ..source(MySql, "b.000002:100", A) };
    let applied = |gtids: &str| Mark { gtids: state(MySql, gtids), ..Mark::default() };
    assert_eq!(lacks(&of_uuid, &applied(&errant), false, true), None);
    let lost = SourceState { executed: state(MySql, B), ..of_uuid };
    assert!(lacks(&lost, &applied(&errant), false, true).is_some());
    // Another server's position says nothing.
    check(MySql, "b.000001:100", A, "b.000002:101", A, false, false);
    check(MariaDb, "b.000002:100", "0-1-7,3-1-5", "b.000002:100", "0-2-7", true, false);
    check(MariaDb, "b.000002:100", "0-1-6,3-1-5", "b.000002:100", "0-2-7", true, true);
    check(MariaDb, "b.000002:100", "", "b.000001:100", "0-2-7", true, true);
    check(MariaDb, "b.000002:100", "0-1-7", "b.000001:100", "0-1-7,5-1-1", true, false);
    // A promoted replica that has logged nothing yet, read from or not.
    let promoted = SourceState { replicated: "0-2-7".parse().unwrap(), ..source(MariaDb, "b.000001:300", "") };
    let mark = |position: Option<&str>| Mark {
        position: position.map(|position| position.parse().unwrap()),
        gtids: state(MariaDb, "0-2-7"),
        ..Mark::default()
    };
    assert_eq!(lacks(&promoted, &mark(None), false, true), None);
    assert!(lacks(&promoted, &mark(Some("b.000001:100")), true, true).is_some());
}
