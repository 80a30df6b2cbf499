//! What this process has cost the machine so far.

use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time of all threads, in user mode and in the kernel.
    pub cpu: Duration,
    /// The most memory that was resident at once.
    pub memory_bytes_max: u64,
}

impl Usage {
    /// getrusage(2). Zero if the kernel does not tell.
    #[expect(unsafe_code, reason = "rustix does not have getrusage(2)")]
    pub fn now() -> Self {
        // SAFETY: all zeroes is a valid `rusage`, and the call writes nothing else.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) == 0).then_some(usage)
        };
        usage.map_or_else(Self::default, |usage| Self {
            cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
            memory_bytes_max: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
        })
    }
}

fn duration(time: libc::timeval) -> Duration {
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Duration::from_secs(part(time.tv_sec)) + Duration::from_micros(part(time.tv_usec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_and_gets_older() {
        let before = Usage::now();
        assert!(before.memory_bytes_max > 1 << 20, "{before:?}");
        let mut sum = 0_u64;
        while Usage::now().cpu == before.cpu {
            sum = sum.wrapping_mul(3).wrapping_add(1);
        }
        assert!(Usage::now().cpu > before.cpu, "{sum}");
    }
}
