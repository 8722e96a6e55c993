//! One run: everything is measured, the light things first, then what works the machine.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::runtime::Handle;

use crate::client::{Client, Execute, Executed, Plugin};
use crate::item;
use crate::machine::Machine;
use crate::report::{Missing, Program, Report};
use crate::round::Bed;
use crate::size::Size;
use crate::start;
use crate::subject::{Action, Item, Subject};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Starts of each program.
    pub(crate) starts: usize,
    /// Calls of Execute of each action, by one caller and by several.
    pub(crate) calls: usize,
    /// Operations in the round of polls.
    pub(crate) operations: usize,
}

/// Callers of Execute: the item blocks of one backup run beside each other since Velero 1.15.
const CALLERS: [usize; 2] = [1, 8];
/// Passes over all plugins; the best one of each counts.
pub(crate) const PASSES: usize = 3;

/// Measures the subjects; `client` is Velero's own, or why there is none. The embedded API runs on `runtime`.
pub(crate) fn run(
    subjects: &[Subject],
    client: &Result<Client, String>,
    extent: Extent,
    runtime: &Handle,
    mut tell: impl FnMut(&str),
) -> Result<Report> {
    let mut machine = Machine::at_start();
    let there: Vec<(&Subject, &Path)> = subjects.iter().filter_map(present).collect();
    tell("starting each program in turns");
    let mut starts = start::series(&there, extent.starts)?.into_iter();
    let mut programs = Vec::new();
    for subject in subjects {
        let missing = || Missing::because(subject.program.clone().err().unwrap_or_default());
        let not_called = || match (&subject.program, client) {
            (Err(_), _) => missing(),
            (Ok(_), Err(_)) => Missing::because("no client"),
            (Ok(_), Ok(_)) => Missing::because(if subject.is_plugin() { "n/a" } else { "no plugin" }),
        };
        programs.push(Program {
            name: subject.name.clone(),
            role: subject.role,
            size: match &subject.program {
                Ok(program) => Ok(Size::of(program)?),
                Err(_) => Err(missing()),
            },
            start: match &subject.program {
                Ok(_) => Ok(starts.next().context("a program was not started")?),
                Err(_) => Err(missing()),
            },
            client: Err(not_called()),
            execute: Err(not_called()),
            round: Err(not_called()),
        });
    }
    if let Ok(client) = client {
        through(client, subjects, &mut programs, extent, runtime, &mut tell)?;
    }
    machine.at_end();
    Ok(Report {
        machine,
        starts: extent.starts,
        operations: extent.operations,
        no_client: client.clone().err(),
        programs,
    })
}

/// What Velero's own client measures.
fn through(
    client: &Client,
    subjects: &[Subject],
    programs: &mut [Program],
    extent: Extent,
    runtime: &Handle,
    tell: &mut impl FnMut(&str),
) -> Result<()> {
    let plugins: Vec<(usize, Plugin<'_>)> = subjects
        .iter()
        .enumerate()
        .filter(|(_, subject)| subject.is_plugin())
        .filter_map(|(index, subject)| present(subject).map(|(_, path)| (index, Plugin::new(subject, path))))
        .collect();
    tell("starting each plugin with Velero's own client");
    let seen = client.starts(plugins.iter().map(|(_, plugin)| plugin.clone()).collect(), extent.starts)?;
    for ((index, _), seen) in plugins.iter().zip(seen) {
        programs[*index].client = Ok(seen);
    }
    tell("making the cluster for the round of polls");
    let bed = runtime.block_on(Bed::new(extent.operations))?;
    let folder = tempfile::tempdir().context("cannot make a folder for the kubeconfig")?;
    let kubeconfig = folder.path().join("kubeconfig");
    bed.kubeconfig(&kubeconfig)?;
    for pass in 1..=PASSES {
        tell(&format!("calling Execute of each plugin, pass {pass} of {PASSES}"));
        for (index, plugin) in &plugins {
            let subject = &subjects[*index];
            let now = execute(client, subject, plugin, extent.calls, &kubeconfig)?;
            let figure = &mut programs[*index].execute;
            *figure = match figure {
                _ if now.is_empty() => Err(Missing::because("no backup action for pods")),
                Ok(before) => Ok(best(std::mem::take(before), now)),
                Err(_) => Ok(now),
            };
        }
    }
    for (index, plugin) in &plugins {
        let subject = &subjects[*index];
        if let Some(polled) = subject.polled {
            tell(&format!("polling {}", subject.name));
            programs[*index].round = Ok(bed.poll(client, plugin.clone(), polled, &kubeconfig)?);
        }
    }
    Ok(())
}

fn execute(
    client: &Client,
    subject: &Subject,
    plugin: &Plugin<'_>,
    calls: usize,
    kubeconfig: &Path,
) -> Result<Vec<Executed>> {
    let backup = item::backup("InProgress");
    let mut all = Vec::new();
    for action in &subject.execute {
        let (name, called_with) = match *action {
            Action::Named(name, item) => (name, item),
            Action::OnPods => ("", Item::Pod),
        };
        for callers in CALLERS {
            let job = Execute {
                plugin: plugin.clone(),
                action: name,
                resource: called_with.resource(),
                item: &called_with.object(),
                backup: &backup,
                callers,
                warm_up: calls / 10,
                calls,
            };
            all.extend(client.execute(&job, kubeconfig)?);
        }
    }
    Ok(all)
}

/// Of two passes the one in which the machine disturbed less, for each series.
fn best(before: Vec<Executed>, now: Vec<Executed>) -> Vec<Executed> {
    let faster = |(before, now): (Executed, Executed)| {
        if now.calls_per_second > before.calls_per_second { now } else { before }
    };
    before.into_iter().zip(now).map(faster).collect()
}

fn present(subject: &Subject) -> Option<(&Subject, &Path)> {
    subject.program.as_ref().ok().map(|path: &PathBuf| (subject, path.as_path()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs;
    use crate::subject::{Polled, Role};
    use stock::build::{Cache, cargo};
    use stock::screen::Screen;
    use tokio::runtime::Runtime;

    const EXTENT: Extent = Extent { starts: 3, calls: 20, operations: 5 };

    /// The programs as tests are built, which is quicker.
    fn subject(name: &str, package: &str, role: Role) -> Subject {
        let arguments = ["build", "--package", package, "--bin", name];
        Subject::new(name, role, cargo::binary(name, &arguments, &Screen::new()).map_err(|e| e.to_string()))
    }

    #[test]
    fn the_better_pass_of_each_series_counts() {
        let executed = |callers, calls_per_second| Executed {
            action: "a".to_owned(),
            callers,
            calls: 1,
            calls_per_second,
            median: 1,
            p99: 1,
        };
        let best =
            best(vec![executed(1, 10.0), executed(8, 40.0)], vec![executed(1, 20.0), executed(8, 30.0)]);
        let rates: Vec<_> = best.iter().map(|each| (each.callers, each.calls_per_second)).collect();
        assert_eq!(rates, [(1, 20.0), (8, 40.0)]);
    }

    #[test]
    fn each_program_that_is_there_is_started_as_often_as_asked() {
        let subjects = [
            subject("empty", "yardsticks", Role::Empty),
            subject("hello", "yardsticks", Role::Ours { floor: "empty" }),
            Subject::new("absent", Role::Peer, Err("not built".to_owned())),
        ];
        let runtime = Runtime::new().unwrap();
        let client = Err("not asked for".to_owned());
        let report = run(&subjects, &client, EXTENT, runtime.handle(), |_| {}).unwrap();
        let samples = |program: &Program| program.start.as_ref().ok().map(|start| start.handshake.samples);
        assert_eq!(report.programs.iter().map(samples).collect::<Vec<_>>(), [Some(3), Some(3), None]);
        for program in &report.programs[..2] {
            let threads = program.start.as_ref().unwrap().idle.threads;
            assert_eq!(threads, 1, "{} has one thread", program.name);
        }
        assert_eq!(report.programs[2].start.as_ref().unwrap_err().missing, "not built");
        assert_eq!(report.programs[1].client.as_ref().unwrap_err().missing, "no client");
    }

    #[test]
    #[ignore = "builds a Go program, which takes minutes the first time"]
    fn velero_s_own_client_calls_as_often_as_asked_and_a_round_lists_twice() {
        let mut hello = subject("hello", "yardsticks", Role::Given);
        hello.execute = vec![Action::OnPods];
        let mut actions = subject("csi-actions", "csi-actions", Role::Given);
        let content = "csi-actions.velero-rs.io/volumesnapshotcontent-backup";
        actions.execute = vec![Action::Named(content, Item::Content)];
        actions.polled = Some(Polled::Contents(content));
        let client = programs::velero_client(&Cache::from_environment().unwrap(), &Screen::new()).unwrap();
        let runtime = Runtime::new().unwrap();
        let report = run(&[hello, actions], &client.map(Client), EXTENT, runtime.handle(), |_| {}).unwrap();
        let [hello, actions] = report.programs.as_slice() else { panic!("two were asked for") };
        for (program, listed) in [(hello, 1), (actions, 4)] {
            let seen = program.client.as_ref().unwrap();
            assert!(seen.listed >= listed, "{} lists {}", program.name, seen.listed);
            assert_eq!(seen.first_reply.samples, 3);
            let executed = program.execute.as_ref().unwrap();
            let calls: Vec<_> = executed.iter().map(|executed| (executed.callers, executed.calls)).collect();
            assert_eq!(calls, [(1, 20), (8, 20)], "{}", program.name);
        }
        let round = actions.round.as_ref().unwrap();
        assert_eq!((round.polled.calls, round.polled.completed, round.polled.failed), (5, 3, 0));
        assert_eq!((round.lists, round.others), (2, 0), "{:?}", round.requests);
        assert_eq!(hello.round.as_ref().unwrap_err().missing, "n/a");
    }
}
