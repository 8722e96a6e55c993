//! The guard of the start-up path: instructions of a start and sizes of the programs that users get, against a budget
//! that is checked in. Both come out the same on a busy machine, where times do not.

mod budget;
mod callgrind;

use std::process::ExitCode;

use anyhow::{Error, Result, ensure};
use stock::screen::{self, Screen};

use crate::programs::{self, Build, CSI_ACTIONS, GNU, HELLO, MUSL};
use budget::{Budget, Measured};

/// Measures and compares; with `record` the budget becomes what was measured.
pub(crate) fn run(record: bool, build: Build) -> Result<ExitCode> {
    ensure!(
        programs::is_installed("valgrind"),
        "the guard counts instructions with valgrind, which is missing: apt-get install valgrind"
    );
    let screen = Screen::new();
    let mut budget = Budget::read()?;
    let mut failed = Vec::new();
    for target in [MUSL, GNU] {
        if let Some(command) = programs::missing(target) {
            screen.line(target.triple, &format!("not guarded: {command}"));
            continue;
        }
        for name in [HELLO, CSI_ACTIONS] {
            let program = match build {
                Build::Now => programs::ours(name, target, &screen)?,
                Build::Before => programs::as_built(name, target)?.map_err(Error::msg)?,
            };
            let measured = Measured {
                instructions: callgrind::instructions_of_a_start(&program)?,
                size: program.metadata()?.len(),
            };
            if record {
                budget.record(target.triple, name, measured);
            }
            let (line, broken) = budget.compare(target.triple, name, measured);
            screen.line(&format!("{name} ({})", target.label), &line);
            failed.extend(broken);
        }
    }
    if record {
        budget.write()?;
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    screen::print(&format!(
        "\n{}\nIf that is meant, run `cargo measure guard --record` and say in the commit what it buys.",
        failed.join("\n")
    ));
    Ok(ExitCode::FAILURE)
}
