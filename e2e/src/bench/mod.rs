//! What the benchmarks share: their options (`arguments`) · `stage` a workload and the state before it · `contender` ways to apply it, and what they cost · `latency` of keeping
//! up · `slow_disk` a disk that takes its time · `page` where the results go. Pictures: the crate `pages`.

pub mod arguments;
pub mod contender;
pub mod latency;
pub mod page;
pub mod slow_disk;
pub mod stage;

use crate::server::Server;
use anyhow::Result;

/// The middle of an odd number of values, the upper one of the two in the middle of an even one; NaN of none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    percentile(values, 50)
}

pub fn percentile(values: impl IntoIterator<Item = f64>, percent: usize) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let at = (values.len() * percent / 100).min(values.len().saturating_sub(1));
    values.get(at).copied().unwrap_or(f64::NAN)
}

/// Which server, as people say it: `MySQL 9.7.4`.
pub fn version(server: &Server) -> Result<String> {
    let text = server.scalar("SELECT VERSION()")?;
    let number = text.split('-').next().unwrap_or_default();
    Ok(format!("{} {number}", if server.kind.is_mariadb() { "MariaDB" } else { "MySQL" }))
}

/// What the figures were measured on.
pub fn machine() -> String {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let model = text("/proc/cpuinfo")
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim().to_owned()));
    let memory = text("/proc/meminfo")
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<u64>().ok());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = model.unwrap_or_else(|| "unknown".to_owned());
    format!("{cores} cores ({model}), {} GiB of memory", memory.unwrap_or(0) / (1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(percentile((0..100).map(f64::from), 99), 99.0);
        assert!(median([]).is_nan());
    }
}
