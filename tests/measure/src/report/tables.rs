//! The tables.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use stock::screen;

use super::goals::{self, approximate, megabytes, milliseconds};
use super::{Figure, Program, Report};
use crate::run::PASSES;
use crate::statistics::Summary;
use crate::subject::Role;

const NONE: &str = "—";

/// Prints all of them.
pub(crate) fn print(report: &Report) {
    let Report { starts, operations, .. } = report;
    section(&format!("Start, {starts} of each in turns (ms)"), &start(report));
    section("Memory when idle, and size (MB)", &memory(report));
    if let Some(reason) = &report.no_client {
        screen::print(&format!("\nNothing was called through Velero's own client: {reason}"));
    } else {
        let times = "first reply is ListPlugins";
        section(&format!("Started and ended by Velero 1.18's own client (ms; {times})"), &client(report));
        section(
            &format!("Execute through Velero's own client, items of 2 kB, best of {PASSES} passes"),
            &execute(report),
        );
        section(
            &format!("A round of {operations} polls in a new process, through Velero's own client"),
            &round(report),
        );
        screen::print(
            "The Kubernetes API of the round is embedded in this program, on the same cores. The built-in action limits \
             itself to Velero's\ndefault of 100 requests/s. velero-plugin-for-aws and hello have no operations to poll.",
        );
    }
    section("Goals", &goals(report));
    screen::print(&format!("\n{}", report.machine.line()));
}

fn section(title: &str, table: &Table) {
    screen::print(&format!("\n{title}\n{table}"));
}

/// A table whose first column is text and all others are figures.
fn figures(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header).add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// One row per program that a figure was to be had of.
fn rows<T>(
    report: &Report,
    columns: usize,
    figure: impl Fn(&Program) -> &Figure<T>,
    cells: impl Fn(&Program, &T) -> Vec<String>,
) -> Vec<Vec<String>> {
    let row = |program: &Program| {
        let mut row = vec![program.name.clone()];
        match figure(program) {
            Ok(value) => row.extend(cells(program, value)),
            Err(missing) => {
                row.push(missing.missing.clone());
                row.resize(columns, NONE.to_owned());
            }
        }
        row
    };
    report.programs.iter().map(row).collect()
}

fn start(report: &Report) -> Table {
    let header = ["program", "handshake min", "median", "p95", "over empty", "CPU median"];
    let rows = rows(
        report,
        header.len(),
        |program| &program.start,
        |program, start| {
            let over =
                floor(report, program).map(|floor| start.handshake.median.saturating_sub(floor.median));
            let mut cells = summary(&start.handshake).to_vec();
            cells.push(over.map_or_else(none, milliseconds));
            cells.push(start.processor.map_or_else(none, |processor| milliseconds(processor.median)));
            cells
        },
    );
    figures(&header, rows)
}

fn floor(report: &Report, program: &Program) -> Option<Summary> {
    let Role::Ours { floor } = program.role else { return None };
    let floor = report.programs.iter().find(|each| each.name == floor)?;
    floor.start.as_ref().ok().map(|start| start.handshake)
}

fn memory(report: &Report) -> Table {
    let header = ["program", "resident", "anonymous", "threads", "file", "gzip -9"];
    let rows = report.programs.iter().map(|program| {
        let mut row = vec![program.name.clone()];
        match &program.start {
            Ok(start) => row.extend([
                megabytes(start.idle.resident),
                megabytes(start.idle.anonymous),
                start.idle.threads.to_string(),
            ]),
            Err(missing) => row.extend([missing.missing.clone(), none(), none()]),
        }
        let size = program.size.as_ref().ok();
        row.push(size.map_or_else(none, |size| megabytes(size.file)));
        row.push(size.and_then(|size| size.compressed).map_or_else(none, megabytes));
        row
    });
    figures(&header, rows)
}

fn client(report: &Report) -> Table {
    let header = [
        "program",
        "handshake min",
        "median",
        "p95",
        "first reply min",
        "median",
        "p95",
        "stop median",
        "plugins",
    ];
    let rows = rows(
        report,
        header.len(),
        |program| &program.client,
        |_, seen| {
            let mut cells = [summary(&seen.handshake), summary(&seen.first_reply)].concat();
            cells.extend([milliseconds(seen.stop.median), seen.listed.to_string()]);
            cells
        },
    );
    figures(&header, rows)
}

fn execute(report: &Report) -> Table {
    let header = ["program", "action", "callers", "calls/s", "median ms", "p99 ms"];
    let mut rows = Vec::new();
    for program in &report.programs {
        match &program.execute {
            Ok(executed) => rows.extend(executed.iter().map(|executed| {
                vec![
                    program.name.clone(),
                    executed.action.clone(),
                    executed.callers.to_string(),
                    format!("{:.0}", executed.calls_per_second),
                    milliseconds(executed.median),
                    milliseconds(executed.p99),
                ]
            })),
            Err(missing) => {
                let mut row = vec![program.name.clone(), missing.missing.clone()];
                row.resize(header.len(), none());
                rows.push(row);
            }
        }
    }
    figures(&header, rows)
}

fn round(report: &Report) -> Table {
    let header = ["program", "wall s", "CPU s", "LISTs", "other requests", "completed"];
    let seconds = |nanoseconds: u64| format!("{:.2}", approximate(nanoseconds) / 1e9);
    let rows = rows(
        report,
        header.len(),
        |program| &program.round,
        |_, round| {
            vec![
                seconds(round.polled.duration),
                seconds(round.polled.cpu),
                round.lists.to_string(),
                round.others.to_string(),
                format!("{} of {}", round.polled.completed, round.polled.calls),
            ]
        },
    );
    figures(&header, rows)
}

fn goals(report: &Report) -> Table {
    let rows = goals::of(report).into_iter().map(|goal| {
        let verdict = if goal.met { "met" } else { "MISSED" };
        vec![goal.what, goal.program, goal.figure, verdict.to_owned()]
    });
    figures(&["goal", "program", "figure", "verdict"], rows)
}

fn summary(summary: &Summary) -> [String; 3] {
    [summary.min, summary.median, summary.p95].map(milliseconds)
}

fn none() -> String {
    NONE.to_owned()
}
