use super::*;
use binlog::encode::{self, FormatSpec, Head};
use binlog::{Checksum, Flavour, Header};

fn format(flavour: Flavour) -> FormatDescription {
    FormatSpec::new(if flavour == Flavour::MySql { "9.7.0" } else { "10.11.6-MariaDB" }, flavour, Checksum::Off)
        .describe()
}

fn peeked(bytes: &[u8]) -> EventHead<'_> {
    EventHead { header: Header::parse(bytes).unwrap(), bytes }
}

fn head(server: u32) -> Head {
    Head::new(1_700_000_000, server, Checksum::Off).at(4)
}

/// Sent or left out, event by event.
fn mysql(filter: &mut MySqlFilter, events: &[Vec<u8>]) -> String {
    let format = format(Flavour::MySql);
    let verdict = |filter: &mut MySqlFilter, bytes: &Vec<u8>| match filter.take(&peeked(bytes), &format) {
        Ok(Verdict::Send) => 's',
        Ok(Verdict::LeaveOut) => '-',
        Err(_) => '!',
    };
    events.iter().map(|bytes| verdict(filter, bytes)).collect()
}

fn mysql_gtid(tag: &str, gno: u64) -> Vec<u8> {
    let gtid = MySqlGtid { uuid: [7; 16], tag: tag.to_owned(), gno, anonymous: gno == 0, ..MySqlGtid::default() };
    encode::mysql_gtid(&head(1), &gtid)
}

#[test]
fn mysql_leaves_out_what_the_replica_has() {
    let xid = || encode::xid(&head(1), 1);
    let mut has = GtidSet::default();
    has.add(&[7; 16], "", 1);
    has.add(&[7; 16], "", 3);
    let events = [
        xid(),
        mysql_gtid("", 1),
        xid(),
        mysql_gtid("", 2),
        xid(),
        mysql_gtid("", 3),
        xid(),
        encode::rotate(&head(1), 4, "b.2"),
        xid(),
    ];
    let mut filter = MySqlFilter::new(Some(has.clone()), TaggedTransactions::Sent).unwrap();
    assert_eq!(mysql(&mut filter, &events), "s--ss--ss");
    // By GTID there is nothing without one; by position there may be.
    assert_eq!(mysql(&mut filter, &[mysql_gtid("", 0)]), "!");
    assert!(MySqlFilter::new(None, TaggedTransactions::Sent).is_none());
    let mut filter = MySqlFilter::new(None, TaggedTransactions::LeftOut).unwrap();
    let events = [mysql_gtid("", 1), xid(), mysql_gtid("tag", 1), xid(), mysql_gtid("", 0), xid()];
    assert_eq!(mysql(&mut filter, &events), "ss--ss");
    let mut filter = MySqlFilter::new(Some(has), TaggedTransactions::Sent).unwrap();
    assert_eq!(mysql(&mut filter, &[mysql_gtid("tag", 1), xid()]), "ss");
}

fn gtid(domain: u32, server: u32, number: u64) -> DomainGtid {
    DomainGtid { domain, server, number }
}

fn group(gtid: DomainGtid) -> [Vec<u8>; 2] {
    let event = MariaDbGtid { domain_id: gtid.domain, seq_no: gtid.number, ..MariaDbGtid::default() };
    [encode::mariadb_gtid(&head(gtid.server), &event), encode::xid(&head(gtid.server), 1)]
}

/// For each group what became of it, and a mark for what follows it: `l` a list, `u` the end.
fn mariadb(from: &[DomainGtid], until: Option<&[DomainGtid]>, mode: StrictMode, groups: &[DomainGtid]) -> String {
    let wanted =
        from.iter().map(|gtid| (gtid.domain, DomainStart { gtid: *gtid, on_empty_domain: gtid.domain == 9 })).collect();
    let until = until.map(|until| until.iter().map(|gtid| (gtid.domain, *gtid)).collect());
    let mut filter = MariaDbFilter::new(wanted, until, mode);
    let format = format(Flavour::MariaDb);
    let mut out = String::new();
    for gtid in groups {
        for bytes in group(*gtid) {
            match filter.take(&peeked(&bytes), &format, &|| Ok(BinlogState::default())) {
                Ok((verdict, then)) => {
                    out.push(if verdict == Verdict::Send { 's' } else { '-' });
                    match then {
                        FollowUp::GoOn => {}
                        FollowUp::GtidList => out.push('l'),
                        FollowUp::UntilReached => {
                            out.push('u');
                            return out;
                        }
                    }
                }
                Err(_) => {
                    out.push('!');
                    return out;
                }
            }
        }
        out.push(' ');
    }
    out.trim_end().to_owned()
}

#[test]
fn mariadb_goes_on_in_each_domain_where_the_replica_is() {
    let log = [gtid(0, 1, 1), gtid(5, 1, 1), gtid(0, 2, 2), gtid(5, 1, 2), gtid(0, 1, 3)];
    let check = |from: &[DomainGtid], mode, want: &str| assert_eq!(mariadb(from, None, mode, &log), want, "{from:?}");
    check(&[], StrictMode::Strict, "ss ss ss ss ss");
    check(&[gtid(0, 1, 1)], StrictMode::Strict, "--l ss ss ss ss");
    // Its place is of another server: what the first has logged before is left out, too.
    check(&[gtid(0, 2, 2), gtid(5, 1, 1)], StrictMode::Strict, "-- --l --l ss ss");
    check(&[gtid(0, 1, 3), gtid(5, 1, 2)], StrictMode::Strict, "-- -- -- --l --l");
    // A hole: only who is not strict goes on behind it.
    check(&[gtid(0, 1, 2)], StrictMode::Strict, "-- ss -- ss !");
    check(&[gtid(0, 1, 2)], StrictMode::Lenient, "-- ss -- ss ssl");
    // A domain that was not here before begins with something else than the replica has.
    assert_eq!(mariadb(&[gtid(9, 1, 4)], None, StrictMode::Strict, &[gtid(0, 1, 1), gtid(9, 1, 1)]), "ss !");
}

#[test]
fn mariadb_ends_where_the_replica_wants() {
    let log = [gtid(0, 1, 1), gtid(5, 1, 1), gtid(0, 1, 2), gtid(5, 1, 2), gtid(0, 1, 3)];
    let check = |from: &[DomainGtid], until: &[DomainGtid], want: &str| {
        assert_eq!(mariadb(from, Some(until), StrictMode::Strict, &log), want, "{from:?} {until:?}");
    };
    check(&[], &[gtid(0, 1, 2), gtid(5, 1, 1)], "ss ss ssu");
    // A domain that is not named has ended before it began.
    check(&[], &[gtid(0, 1, 3)], "ss -- ss -- ssu");
    // Its end is in no log: the first behind it ends the stream, and is left out.
    check(&[], &[gtid(0, 7, 2)], "ss -- ss -- ss");
    check(&[gtid(0, 1, 1)], &[gtid(0, 1, 2)], "--l -- ssu");
}
