//! The machine that was measured on, as it says of itself.

use std::{fmt, fs};

use serde_json::{Value, json};

/// A machine and how busy it was.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Machine {
    processor: String,
    cores: usize,
    memory_mib: u64,
    kernel: String,
    load_before: String,
    load_after: String,
    optimised: bool,
}

impl Machine {
    /// This one, before anything is measured.
    pub(super) fn of_this_host() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            processor: processor(&read("/proc/cpuinfo")),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_mib: memory_mib(&read("/proc/meminfo")),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_before: load(),
            load_after: String::new(),
            optimised: !cfg!(debug_assertions),
        }
    }

    /// And how busy it is now that all is measured.
    pub(super) fn look_again(&mut self) {
        self.load_after = load();
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "processor": self.processor, "cores": self.cores, "memory_mib": self.memory_mib, "kernel": self.kernel,
            "load_before": self.load_before, "load_after": self.load_after, "release_build": self.optimised,
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let build = if self.optimised { "release build" } else { "DEBUG build: run it with --release" };
        let Self { processor, cores, memory_mib, kernel, load_before, load_after, .. } = self;
        write!(f, "{processor}, {cores} cores, {:.0} GiB, Linux {kernel}; ", *memory_mib as f64 / 1024.0)?;
        write!(f, "load {load_before} before and {load_after} after; {build}.")
    }
}

fn processor(cpuinfo: &str) -> String {
    let named = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    // ARM's kernels give numbers only.
    named("model name").or_else(|| named("CPU part").map(|part| format!("CPU part {part}"))).unwrap_or_else(unknown)
}

fn memory_mib(meminfo: &str) -> u64 {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

/// The average over the last minute.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().map_or_else(unknown, str::to_owned)
}

fn unknown() -> String {
    "unknown".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_understood() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t: a b\n"), "Some CPU @ 2 GHz");
        assert_eq!(processor("processor\t: 0\nCPU part\t: 0xd0c\n"), "CPU part 0xd0c");
        assert_eq!(processor(""), "unknown");
        assert_eq!(memory_mib("MemTotal:        2097152 kB\nMemFree: 1 kB\n"), 2048);
    }
}
