//! The two ends of a rescue: `takeover` from the native applier, `handback` to it. `lock` keeps other rescues away, `steering` starts and stops, by statements or by a service's procedures; `hole` marks where the replica's binary log lacks
//! what Heddle applied. Nothing is applied here.

pub mod handback;
pub mod hole;
pub mod lock;
pub mod steering;
pub mod takeover;
