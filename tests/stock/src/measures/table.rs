//! The figures side by side.

use std::time::Duration;

use comfy_table::{Table, presets};

use super::PLUGIN;
use super::cut::Measured;
use super::deletions::Deletions;
use super::floor::Floor;
use crate::components::snapshots::Pace;

/// Backups and their deletions.
pub(super) fn cuts(claims: usize, pace: Pace, floors: &[Floor], rows: &[(&str, Measured)]) -> String {
    let mut table = table(&[
        &format!("{claims} claims"),
        "all cut",
        "Completed",
        "handle → reply, median / most",
        "requests of the actions, per claim",
        "of the server, per claim",
        "deleted, per snapshot",
        "storage empty",
    ]);
    let each = |duration: Duration| seconds(duration / u32::try_from(claims.max(1)).unwrap_or(u32::MAX));
    let per_claim = |requests: usize| format!("{:.1}", ratio(requests, claims));
    for floor in floors {
        let (cut, emptied) = (seconds(floor.cut), seconds(floor.deleted));
        table.add_row([floor.order.told(), &cut, "", "", "", "", "", &emptied]);
    }
    for (name, row) in rows {
        table.add_row([
            (*name).to_owned(),
            seconds(row.cut),
            seconds(row.completed),
            spread(&row.replies),
            per_claim(row.requests),
            per_claim(row.server_requests),
            each(row.deleted),
            seconds(row.emptied),
        ]);
    }
    let goal = if claims == 10 { pace.goal_for_ten() } else { "" };
    let reply = format!("≤ {}", seconds(Duration::from_millis(100)));
    table.add_row([&format!("goal of {PLUGIN}"), goal, "", &reply, "", "", "", ""]);
    table.to_string()
}

/// What stays behind.
pub(super) fn deletions(rows: &[(&str, Deletions)]) -> String {
    let mut table = table(&[
        "deletions",
        "snapshots",
        "calls of the storage slow or refused",
        "per snapshot",
        "left in the storage",
        "left in the cluster",
        "backups not deleted",
    ]);
    let mut words = String::new();
    for (name, row) in rows {
        table.add_row([
            (*name).to_owned(),
            row.snapshots.to_string(),
            row.disturbed.to_string(),
            seconds(row.took / u32::try_from(row.snapshots.max(1)).unwrap_or(u32::MAX)),
            row.leaked.to_string(),
            row.stuck.to_string(),
            row.refused.len().to_string(),
        ]);
        if let Some(refused) = row.refused.first() {
            words.extend(["\n", name, ": ", refused]);
        }
    }
    format!("{table}{words}")
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(header);
    table
}

/// The median and the most.
fn spread(durations: &[Duration]) -> String {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    format!("{} / {}", seconds(median), seconds(sorted.last().copied().unwrap_or_default()))
}

fn seconds(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
}

#[allow(clippy::cast_precision_loss, reason = "for people; one digit is shown")]
fn ratio(requests: usize, claims: usize) -> f64 {
    requests as f64 / claims.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::floor::Order;
    use super::*;

    #[test]
    fn figures_are_per_claim_and_beside_the_floor() {
        let millis = Duration::from_millis;
        let floor = Floor { order: Order::AtOnce, cut: millis(640), deleted: millis(1200) };
        let ours = Measured {
            cut: millis(2500),
            completed: millis(12_000),
            replies: vec![millis(30), millis(10), millis(20)],
            requests: 40,
            server_requests: 100,
            deleted: millis(5000),
            emptied: millis(4000),
        };
        let table = cuts(10, Pace::Lifted, &[floor], &[("ours", ours)]);
        let cells = |row: usize| -> Vec<String> {
            let line = table.lines().nth(row).unwrap_or_default();
            line.split('|').map(|cell| cell.trim().to_owned()).filter(|cell| !cell.is_empty()).collect()
        };
        assert_eq!(cells(2), ["floor: all at once, without Velero", "0.64 s", "1.20 s"]);
        let ours = ["ours", "2.50 s", "12.00 s", "0.02 s / 0.03 s", "4.0", "10.0", "0.50 s", "4.00 s"];
        assert_eq!(cells(3), ours);
        assert_eq!(cells(4), ["goal of csi-actions", "≤ 3 s", "≤ 0.10 s"]);
    }

    #[test]
    fn what_a_server_refused_is_told() {
        let row = Deletions {
            snapshots: 20,
            refused: vec!["deletion of b: busy".to_owned()],
            took: Duration::from_secs(10),
            leaked: 1,
            stuck: 2,
            disturbed: 30,
        };
        let table = deletions(&[("ours", row)]);
        assert!(table.ends_with("\nours: deletion of b: busy"), "{table}");
        assert!(table.contains("| ours      | 20 "), "{table}");
    }
}
