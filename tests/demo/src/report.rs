//! The tables at the end.

use std::time::Duration;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Cell, Color, Table, TableComponent};

use crate::checks::Checks;
use crate::show::{Seen, subject};

/// What a run came to.
pub struct Report<'a> {
    /// Phases, operations, starts and calls.
    pub seen: &'a Seen,
    /// Until the last thing was over.
    pub total: Duration,
    /// The plugin's requests to the API server, and those that failed.
    pub requests: (usize, usize),
    /// What had to be so.
    pub checks: &'a Checks,
}

fn table(header: [&str; 3]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY).set_header(header);
    // A line below each row would double the height.
    for component in [
        TableComponent::HorizontalLines,
        TableComponent::MiddleIntersections,
        TableComponent::LeftBorderIntersections,
        TableComponent::RightBorderIntersections,
    ] {
        table.remove_style(component);
    }
    table
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

impl Report<'_> {
    /// All tables, one below the other.
    pub fn tables(&self) -> String {
        [self.phases(), self.operations(), self.costs(), self.checked()]
            .map(|table| table.to_string())
            .join("\n")
    }

    fn phases(&self) -> Table {
        let mut table = table(["Phase", "from", "for"]);
        let ends = self.seen.phases.iter().skip(1).map(|(_, began)| *began).chain([self.total]);
        for ((phase, began), end) in self.seen.phases.iter().zip(ends) {
            table.add_row([phase.as_str().to_owned(), seconds(*began), seconds(end.saturating_sub(*began))]);
        }
        table
    }

    fn operations(&self) -> Table {
        let mut table = table(["Operation", "phase", "size"]);
        for operation in self.seen.operations.values() {
            let bytes = u64::try_from(operation.status.n_total).unwrap_or_default();
            let size = indicatif::BinaryBytes(bytes).to_string();
            table.add_row([subject(operation), operation.status.phase.as_str().to_owned(), size]);
        }
        table
    }

    fn costs(&self) -> Table {
        let mut table = table(["Cost", "how many", "of which"]);
        let slowest = self.seen.slowest.map_or_else(String::new, |slowest| {
            format!("{:.1} ms to the slowest handshake", slowest.as_secs_f64() * 1000.0)
        });
        table.add_row(["plugin processes".to_owned(), self.seen.starts.to_string(), slowest]);
        for (method, (all, failed)) in &self.seen.calls {
            table.add_row([format!("calls of {method}"), all.to_string(), format!("{failed} failed")]);
        }
        let (all, failed) = self.requests;
        table.add_row(["API requests of the plugin".to_owned(), all.to_string(), format!("{failed} failed")]);
        table
    }

    fn checked(&self) -> Table {
        let mut table = table(["As it must be", "seen", ""]);
        for check in self.checks.all() {
            let (word, color) = if check.holds { ("yes", Color::Green) } else { ("NO", Color::Red) };
            table.add_row([Cell::new(&check.what), Cell::new(&check.seen), Cell::new(word).fg(color)]);
        }
        table
    }
}
