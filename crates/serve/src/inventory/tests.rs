use super::*;
use binlog::encode::{self, FormatSpec, Head};
use binlog::gtid_list::MariaDbGtidEntry;
use binlog::{Checksum, Flavour, MariaDbGtid, MariaDbGtidList};

/// A file as MariaDB writes it: what was before it, then transactions.
struct Written {
    bytes: Vec<u8>,
}

impl Written {
    fn new(before: &[DomainGtid]) -> Self {
        let mut written = Self { bytes: binlog::MAGIC.to_vec() };
        let spec = FormatSpec::new("10.11.6-MariaDB-log", Flavour::MariaDb, Checksum::Crc32);
        written.put(|head| encode::format_description(head, &spec));
        let entries = before
            .iter()
            .map(|gtid| MariaDbGtidEntry { domain_id: gtid.domain, server_id: gtid.server, seq_no: gtid.number })
            .collect();
        written.put(|head| encode::mariadb_gtid_list(head, &MariaDbGtidList { flags: 0, entries }));
        written
    }

    fn put(&mut self, event: impl FnOnce(&Head) -> Vec<u8>) {
        let head = Head::new(1_700_000_000, 1, Checksum::Crc32).at(self.bytes.len() as u64);
        self.bytes.extend(event(&head));
    }

    fn begin(&mut self, gtid: DomainGtid) {
        let event = MariaDbGtid { domain_id: gtid.domain, seq_no: gtid.number, ..MariaDbGtid::default() };
        let offset = self.bytes.len() as u64;
        let head = Head::new(1_700_000_000, gtid.server, Checksum::Crc32).at(offset);
        self.bytes.extend(encode::mariadb_gtid(&head, &event));
    }

    fn commit(&mut self) {
        self.put(|head| encode::xid(head, 7));
    }

    fn transaction(&mut self, gtid: DomainGtid) {
        self.begin(gtid);
        self.commit();
    }
}

fn gtid(domain: u32, server: u32, number: u64) -> DomainGtid {
    DomainGtid { domain, server, number }
}

fn state(gtids: &Gtids) -> String {
    gtids.clone().into_mariadb().state_text()
}

#[test]
fn gtids_up_to_the_durable_end_of_whole_transactions() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, written: &Written| std::fs::write(dir.path().join(name), &written.bytes).unwrap();
    let mut first = Written::new(&[]);
    first.transaction(gtid(0, 1, 1));
    first.transaction(gtid(0, 2, 2));
    put("b.000001", &first);
    let mut second = Written::new(&[gtid(0, 1, 1), gtid(0, 2, 2)]);
    second.transaction(gtid(5, 1, 1));
    let before_open = second.bytes.len() as u64;
    second.begin(gtid(0, 1, 3));
    let inside = second.bytes.len() as u64;
    second.commit();
    put("b.000002", &second);

    let inventory = Inventory::new(dir.path());
    assert_eq!(inventory.gtids_at_end().unwrap(), (None, Gtids::None));
    let names = ["b.000001".to_owned(), "b.000002".to_owned()];
    inventory.hold(dir.path(), &names, Some(&LogPosition::new("b.000002", before_open))).unwrap();
    let at = |offset: u64, want: &str| {
        inventory.durable(&LogPosition::new("b.000002", offset));
        let (end, gtids) = inventory.gtids_at_end().unwrap();
        assert_eq!(end, Some(LogPosition::new("b.000002", offset)));
        assert_eq!(state(&gtids), want);
    };
    at(before_open, "0-1-1,0-2-2,5-1-1");
    // What is open does not count.
    at(inside, "0-1-1,0-2-2,5-1-1");
    at(second.bytes.len() as u64, "0-2-2,0-1-3,5-1-1");
    let (_, gtids) = inventory.gtids_at_end().unwrap();
    assert_eq!(gtids.into_mariadb().position_text(), "0-1-3,5-1-1");

    // A file that is named and has no list yet: what was before it still counts.
    let format_only = Written::new(&[]).bytes;
    let length = u64::from(binlog::Header::parse(&format_only[4..]).unwrap().event_len) + 4;
    std::fs::write(dir.path().join("b.000003"), &format_only[..length as usize]).unwrap();
    inventory.durable(&LogPosition::new("b.000003", length));
    let (end, gtids) = inventory.gtids_at_end().unwrap();
    assert_eq!((end, state(&gtids)), (Some(LogPosition::new("b.000003", length)), "0-2-2,0-1-3,5-1-1".to_owned()));
}

#[test]
fn readers_follow_the_files() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["b.000001", "b.000002", "b.000003"] {
        let mut written = Written::new(&[]);
        written.transaction(gtid(0, 1, 1));
        std::fs::write(dir.path().join(name), &written.bytes).unwrap();
    }
    let inventory = Inventory::new(dir.path());
    let length = std::fs::metadata(dir.path().join("b.000001")).unwrap().len();
    inventory.durable(&LogPosition::new("b.000001", 100));
    let file = inventory.find("b.000001").unwrap();
    assert_eq!(inventory.extent(&file), Extent { end: 100, grows: true, is_closed: false, awaits_tags: false });
    // Without an event a file does not count.
    inventory.durable(&LogPosition::new("b.000001", length));
    inventory.durable(&LogPosition::new("b.000002", 4));
    assert!(inventory.next_after(&file).is_none() && inventory.extent(&file).grows);
    inventory.durable(&LogPosition::new("b.000002", length));
    assert_eq!(
        inventory.wait_beyond(&file, length, Duration::from_secs(60)),
        Extent { end: length, grows: false, is_closed: false, awaits_tags: false }
    );
    // After a reconnection the files are held again: who reads one goes on with it.
    let names = ["b.000001".to_owned(), "b.000002".to_owned()];
    let second = inventory.next_after(&file).unwrap();
    inventory.hold(dir.path(), &names, Some(&LogPosition::new("b.000002", length))).unwrap();
    inventory.durable(&LogPosition::new("b.000003", length));
    assert_eq!((inventory.extent(&second).end, inventory.extent(&second).grows), (length, false));
    assert_eq!(inventory.end(), Some(LogPosition::new("b.000003", length)));

    assert_eq!(inventory.state().removable(UnreadFiles::Stays), 2);
    let reading = inventory.read_from(&file);
    assert_eq!(inventory.state().removable(UnreadFiles::Stays), 0);
    reading.moved_to(&second);
    assert_eq!(inventory.state().removable(UnreadFiles::Stays), 1);
    inventory.keep_for_archive(0, Some("b.000003"));
    assert_eq!(inventory.state().removable(UnreadFiles::MayGo), 2);
    assert_eq!((inventory.let_go(9, UnreadFiles::Stays), inventory.removals()), (1, 1));
    assert_eq!(inventory.next_after(&file).unwrap().name, second.name);
    drop(reading);
    // What it would need next is gone as well.
    assert_eq!((inventory.let_go(9, UnreadFiles::Stays), inventory.removals()), (1, 2));
    assert_eq!((inventory.let_go(9, UnreadFiles::Stays), inventory.removals()), (0, 2));
    assert!(inventory.next_after(&file).is_none() && inventory.next_after(&second).is_some());
    // Another source's folder: the same names are other files.
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("b.000002"), &Written::new(&[]).bytes).unwrap();
    let moved = Inventory::new(dir.path());
    moved.hold(dir.path(), &names, Some(&LogPosition::new("b.000002", length))).unwrap();
    moved.hold(other.path(), &["b.000002".to_owned()], Some(&LogPosition::new("b.000002", 99))).unwrap();
    assert_eq!(moved.first().unwrap().path(), other.path().join("b.000002"));
    moved.durable(&LogPosition::new("b.000003", 99));
    assert_eq!(moved.find("b.000003").unwrap().path(), other.path().join("b.000003"));
    inventory.close();
    let third = inventory.find("b.000003").unwrap();
    assert!(inventory.wait_beyond(&third, length, Duration::from_secs(60)).is_closed);
}

/// Who asks while a file goes gets the answer of without it; a file that somebody else has removed is an error.
#[test]
fn a_file_that_goes_while_it_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let inventory = Inventory::new(dir.path());
    let written = Written::new(&[]).bytes;
    for file in ["b.000001", "b.000002"] {
        std::fs::write(dir.path().join(file), &written).unwrap();
        inventory.durable(&LogPosition::new(file, written.len() as u64));
    }
    let mut asked = 0;
    let first = || {
        let file = inventory.first().unwrap();
        if asked == 0 {
            assert_eq!(inventory.let_go(1, UnreadFiles::Stays), 1);
            std::fs::remove_file(file.path()).unwrap();
        }
        asked += 1;
        file.reader(4).map(|_| file)
    };
    assert_eq!(&*inventory.read_again(first).unwrap().name, "b.000002");
    std::fs::remove_file(dir.path().join("b.000002")).unwrap();
    let again = inventory.read_again(|| inventory.first().unwrap().reader(4).map(drop));
    assert!(matches!(again, Err(ReadError::Removed { .. })));
}

#[test]
fn a_damaged_file_is_an_error_and_not_more() {
    let dir = tempfile::tempdir().unwrap();
    let mut written = Written::new(&[gtid(0, 1, 1)]);
    written.transaction(gtid(0, 1, 2));
    let whole = written.bytes.clone();
    for at in 4..whole.len() {
        for flip in [1, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            std::fs::write(dir.path().join("b.000001"), &bytes).unwrap();
            let inventory = Inventory::new(dir.path());
            inventory.durable(&LogPosition::new("b.000001", bytes.len() as u64));
            let _ = inventory.gtids_at_end();
            let file = inventory.first().unwrap();
            let mut reader = file.reader(4).unwrap();
            while let Ok(Some(event)) = reader.next(bytes.len() as u64) {
                assert!(event.len() >= 19);
            }
        }
    }
    // It is shorter than was said.
    std::fs::write(dir.path().join("b.000001"), &whole[..whole.len() - 5]).unwrap();
    let inventory = Inventory::new(dir.path());
    inventory.durable(&LogPosition::new("b.000001", whole.len() as u64));
    assert!(inventory.gtids_at_end().unwrap_err().to_string().contains("bogus data in log event"));
}
