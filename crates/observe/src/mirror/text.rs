//! Where a mirror and its replicas are, for people.

use binlog::text::escape;
use serve::retag::Parallelism;
use serve::status::{Lag, LinkState, ReplicaStatus, RetagStatus, Snapshot};

use output::numbers::{bytes, counted, duration, thousands};

/// What `heddle status` says.
pub fn text(seen: &Snapshot) -> String {
    let mut lines = vec![format!("{}  {}", seen.dir.display(), doing(seen))];
    let mut line = |name: &str, value: String| lines.push(format!("  {name:<15} {value}"));
    let source = &seen.source;
    let known = |value: Option<&String>| value.cloned().unwrap_or_else(|| "not known".to_owned());
    let address = source.address.as_ref().map_or_else(String::new, |address| format!(" at {address}"));
    line("source", format!("{}{address}", known(source.identity.as_ref())));
    if let Some(why) = &source.why {
        line("why", why.clone());
    }
    let mirror = &seen.mirror;
    let files = counted(mirror.files as u64, "file");
    let names = match (&mirror.first_file, &mirror.last_file) {
        (Some(first), Some(last)) => format!(", {first} to {last}"),
        _ => String::new(),
    };
    line("mirror", format!("{files}{names}"));
    if mirror.folder != seen.dir {
        line("folder", mirror.folder.display().to_string());
    }
    if seen.process.is_some() {
        line("durable up to", known(mirror.durable.as_ref()));
    }
    if let Some(received) =
        mirror.received.position.as_ref().filter(|received| Some(*received) != mirror.durable.as_ref())
    {
        line("received up to", received.clone());
    }
    if let Some(gtids) = mirror.gtids.as_ref().filter(|gtids| !gtids.is_empty()) {
        line("GTIDs", gtids.replace('\n', ""));
    }
    if let Some(end) = &source.end {
        line("source's end", end.clone());
    }
    if seen.process.is_some() {
        line("behind", seen.lag.as_ref().map_or_else(|| "not known".to_owned(), behind));
    }
    if let Some(retag) = &mirror.retag {
        line("new tags", new_tags(retag));
    }
    let free = mirror.disk.free_bytes.map_or_else(String::new, |free| format!(", {} free", bytes(free)));
    line("disk", format!("{} used{free}", bytes(mirror.disk.used_bytes)));
    if let Some(standby) = &seen.listener.standby {
        let state = if standby.waits { "replicas attach there" } else { "replicas can attach here" };
        let obstacle = standby.obstacle.as_ref().map_or_else(String::new, |obstacle| format!("; {obstacle}"));
        line("standby of", format!("{}: {state}{obstacle}", standby.of));
    }
    if let Some(listen) = &seen.listener.listen {
        let connections = counted(seen.listener.connections.unwrap_or_default() as u64, "connection");
        line("replicas", format!("{} at {listen} ({connections})", seen.replicas.len()));
    }
    lines.extend(seen.replicas.iter().map(|replica| format!("    {}", of_replica(replica))));
    lines.iter().map(|line| escape(line)).collect::<Vec<_>>().join("\n")
}

/// One line, for the log.
pub fn line(seen: &Snapshot) -> String {
    let at = seen.mirror.durable.as_deref().unwrap_or("the start");
    let lag = seen.lag.as_ref().map_or_else(String::new, |lag| format!(", behind the source: {}", behind(lag)));
    let far = seen.replicas.iter().filter_map(|replica| replica.behind.bytes).max();
    let far = far.map_or_else(String::new, |far| format!(", the slowest {} behind", bytes(far)));
    let trouble = seen.source.why.as_ref().map_or_else(String::new, |why| {
        let since = seen.source.seconds.map_or_else(String::new, |seconds| format!(" for {}", duration(seconds)));
        format!("the source can not be reached{since}, trying again: {why}; ")
    });
    format!("{trouble}durable up to {at}{lag}; {}{far}", counted(seen.replicas.len() as u64, "replica"))
}

fn doing(seen: &Snapshot) -> String {
    let since = seen.source.seconds.map_or_else(String::new, |seconds| format!(" for {}", duration(seconds)));
    match seen.source.state {
        LinkState::NotRunning => "not running".to_owned(),
        LinkState::Connecting => "connecting to the source".to_owned(),
        LinkState::Connected => format!("connected to the source{since}"),
        LinkState::Reconnecting => format!("the source can not be reached{since}: trying again"),
    }
}

fn behind(lag: &Lag) -> String {
    match (lag.bytes, lag.seconds) {
        (Some(0), _) => "nothing".to_owned(),
        (Some(number), Some(seconds)) => format!("{}, {}", bytes(number), duration(seconds)),
        (Some(number), None) => bytes(number),
        (None, _) => "not known".to_owned(),
    }
}

fn new_tags(retag: &RetagStatus) -> String {
    let than = match retag.source.zip(retag.retagged) {
        Some((Parallelism::MySql { amil, .. }, Parallelism::MySql { amil: now, .. })) => {
            format!("; average interval {amil:.1} before, {now:.1} now")
        }
        Some((Parallelism::MariaDb { group_size }, Parallelism::MariaDb { group_size: now })) => {
            format!("; {group_size:.1} transactions in a commit group before, {now:.1} now")
        }
        _ => String::new(),
    };
    let behind = retag.behind_bytes.map_or_else(String::new, |behind| format!(" ({} to go)", bytes(behind)));
    let all = counted(retag.transactions, "tag");
    format!("up to {}{behind}: {} of {all} changed{than}", retag.tagged, thousands(retag.changed))
}

fn of_replica(replica: &ReplicaStatus) -> String {
    let host = replica.host.as_ref().map_or_else(String::new, |host| format!(" ({host})"));
    let sent = match &replica.sent {
        Some(sent) => format!("sent up to {sent}, behind the mirror: {}", behind(&replica.behind)),
        None => "nothing sent yet".to_owned(),
    };
    let groups = replica.groups.map_or_else(String::new, |sent| {
        format!("; {} in {}", counted(sent.transactions, "transaction"), counted(sent.groups, "group"))
    });
    format!(
        "server_id {}{host}, {}@{}, attached for {}: {sent}{groups}",
        replica.server_id,
        replica.account,
        replica.address,
        duration(replica.seconds)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Snapshot {
        serde_json::from_str(include_str!("../../../serve/src/status/snapshot.json")).unwrap()
    }

    #[test]
    fn a_mirror_that_has_lost_its_source() {
        let text = text(&seen());
        for said in [
            "/srv/mirror  the source can not be reached for 12.5 s: trying again",
            "why             connecting to source:3306: Connection refused",
            "mirror          3 files, binlog.000007 to binlog.000009",
            "durable up to   binlog.000009:1200",
            "received up to  binlog.000009:1234",
            "behind          34 B, 10.0 s",
            "disk            3.0 kB used, 9.0 MB free",
            "standby of      other:3306: replicas can attach here",
            "replicas        2 at 0.0.0.0:3306 (2 connections)",
            "server_id 7 (db7), repl@10.0.0.7:51234, attached for 99.0 s: sent up to binlog.000009:1000, behind the mirror: 200 B, 10.0 s; 3,400 transactions in 12 groups",
            "new tags        up to binlog.000009:1100 (100 B to go): 4,200 of 5,000 tags changed; average interval 1.5 before, 40.5 now",
            "server_id 8, repl@10.0.0.8:51234, attached for 3.0 s: nothing sent yet",
        ] {
            assert!(text.contains(said), "{said}\n{text}");
        }
        assert_eq!(
            line(&seen()),
            "the source can not be reached for 12.5 s, trying again: connecting to source:3306: Connection refused; \
             durable up to binlog.000009:1200, behind the source: 34 B, 10.0 s; 2 replicas, the slowest 200 B behind"
        );
    }

    #[test]
    fn a_mirror_that_nobody_has() {
        let mut seen = seen();
        seen.source.state = LinkState::NotRunning;
        (seen.process, seen.listener.listen, seen.listener.standby, seen.source.why) = (None, None, None, None);
        seen.replicas.clear();
        let text = text(&seen);
        assert!(text.starts_with("/srv/mirror  not running\n") && !text.contains("replicas"), "{text}");
    }
}
