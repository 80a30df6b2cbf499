//! The applier has applied all that came: what is missing has not been received yet.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::lag;
use crate::facts::states::Activity;
use crate::rules::finding::{ActionTarget, Finding, Limits, Severity};
use crate::rules::rule::Rule;
use output::numbers::{bytes, duration, percent};

pub const RULE: Rule = Rule {
    name: "receiver",
    looks_at: "the applier's idle time; how old transactions are when they are received; with `--source` the bytes that are not received yet",
    advice: "the network, compression",
    check,
};

const IDLE_MIN: f64 = 0.5;
const SECONDS_MIN: f64 = 3.0;
const BYTES_MIN: u64 = 4 << 20;

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    let idle = seen.coordinator_share(Activity::NoWork);
    let late = lag::of_receiver(seen).filter(|_| received_now(seen)).unwrap_or(0.0);
    let missing = seen.period.source.as_ref().and_then(|source| source.not_received_bytes(&seen.status)).unwrap_or(0);
    if idle < IDLE_MIN || late < SECONDS_MIN && missing < BYTES_MIN {
        return None;
    }
    let severity = match late {
        late if late >= limits.critical_s => Severity::Critical,
        late if late >= limits.warn_s => Severity::Warning,
        _ => Severity::Ok,
    };
    let mut evidence = vec![format!("the applier waited for the receiver in {} of the time", percent(idle))];
    if late > 0.0 {
        evidence.push(format!("the last transaction was received {} after its commit", duration(late)));
    }
    if missing > 0 {
        evidence.push(format!("{} of the source's log are not received yet", bytes(missing)));
    }
    evidence.push(format!("state of the receiver: {}", seen.status.receiver_state));
    let can_compress = !seen.period.mariadb && seen.period.version >= (8, 0, 18);
    let statement = if can_compress {
        let word = if seen.period.version >= (8, 0, 23) {
            "CHANGE REPLICATION SOURCE TO SOURCE"
        } else {
            "CHANGE MASTER TO MASTER"
        };
        format!(
            "{}; {word}_COMPRESSION_ALGORITHMS='zstd,uncompressed' FOR CHANNEL '{}'; {}",
            seen.native.stop(),
            seen.status.channel,
            seen.native.start()
        )
    } else {
        "SET GLOBAL slave_compressed_protocol=ON".to_owned()
    };
    Some(Finding {
        severity,
        cause: "the receiver is behind, not the applier: the source's log arrives too slowly".to_owned(),
        share: idle,
        evidence,
        server: ActionTarget::Replica,
        statement,
        risk: "replication stops for a moment; both servers take processor time for compression".to_owned(),
        effect: "fewer bytes through the same network; nothing about workers helps".to_owned(),
        ..Finding::default()
    })
}

/// Something was received in the period: an old last transaction of an idle source says nothing about the receiver.
fn received_now(seen: &ChannelFacts<'_>) -> bool {
    seen.before.received != seen.status.received
}
