//! Where and when the figures were made: without it they say little.

use serde::Serialize;

use crate::procfs;

/// The machine during a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    /// Load averages over 1, 5 and 15 minutes.
    pub(crate) load_at_start: Option<[f64; 3]>,
    pub(crate) load_at_end: Option<[f64; 3]>,
}

impl Machine {
    pub(crate) fn at_start() -> Self {
        Self {
            processor: procfs::processor_model().unwrap_or_else(|| "unknown processor".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load_at_start: procfs::load_average(),
            load_at_end: None,
        }
    }

    pub(crate) fn at_end(&mut self) {
        self.load_at_end = procfs::load_average();
    }

    /// One line for people. More load than cores means that the times are upper bounds.
    pub(crate) fn line(&self) -> String {
        let load = |load: Option<[f64; 3]>| {
            load.map_or_else(|| "unknown".to_owned(), |[one, five, _]| format!("{one:.1} (5 min: {five:.1})"))
        };
        let (start, end) = (load(self.load_at_start), load(self.load_at_end));
        let mut line =
            format!("{} cores, {}; load {start} at start, {end} at end", self.cores, self.processor);
        let busy = [self.load_at_start, self.load_at_end]
            .into_iter()
            .flatten()
            .any(|[one, ..]| u32::try_from(self.cores).is_ok_and(|cores| one > f64::from(cores)));
        if busy {
            line.push_str(
                "\nThe machine was busy: times are upper bounds, and the minimum says more than the median.",
            );
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_told() {
        let machine = |load| Machine {
            processor: "p".to_owned(),
            cores: 2,
            load_at_start: Some([load, 1.0, 1.0]),
            load_at_end: None,
        };
        assert!(machine(2.1).line().contains("busy"));
        assert!(!machine(1.9).line().contains("busy"));
        assert!(
            machine(0.5).line().starts_with("2 cores, p; load 0.5 (5 min: 1.0) at start, unknown at end")
        );
    }
}
