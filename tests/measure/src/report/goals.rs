//! What the project asks of its plugins, held against the figures of one run. A time is met or missed here and
//! never asserted anywhere: the machine may be busy.

use super::{Program, Report};
use crate::subject::Role;

/// A plugin may take so much longer than an empty program, in nanoseconds.
const OVER_EMPTY: u64 = 350_000;
/// A peer takes so many times as long.
const TIMES_FASTER: u64 = 20;
/// Bytes of an idle plugin.
const IDLE: u64 = 3_000_000;
/// A peer holds so many times as much.
const TIMES_SMALLER: u64 = 10;
/// Requests that list, in a round of any length.
const LISTS: usize = 2;

/// One goal for one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Goal {
    pub(super) what: String,
    pub(super) program: String,
    pub(super) figure: String,
    pub(super) met: bool,
}

/// The goals that the run says something about.
pub(super) fn of(report: &Report) -> Vec<Goal> {
    let mut goals = Vec::new();
    for program in &report.programs {
        if let Role::Ours { floor } = program.role {
            let floor = report.programs.iter().find(|each| each.name == floor);
            let peers = || report.programs.iter().filter(|each| each.role == Role::Peer);
            goals.extend(floor.and_then(|floor| over_empty(program, floor)));
            goals.extend(peers().filter_map(|peer| faster(program, peer)));
            goals.extend(idle(program));
            goals.extend(peers().filter_map(|peer| smaller(program, peer)));
            goals.extend(lists(program));
        }
    }
    goals
}

fn over_empty(program: &Program, floor: &Program) -> Option<Goal> {
    let (ours, empty) = (handshake(program)?, handshake(floor)?);
    let over = |ours: u64, empty: u64| ours.saturating_sub(empty);
    let (median, min) = (over(ours.median, empty.median), over(ours.min, empty.min));
    Some(Goal {
        what: "handshake at most 0.35 ms after an empty program's line".to_owned(),
        program: program.name.clone(),
        figure: format!("{} ms (least: {} ms)", milliseconds(median), milliseconds(min)),
        met: median <= OVER_EMPTY,
    })
}

fn faster(program: &Program, peer: &Program) -> Option<Goal> {
    let (ours, theirs) = (handshake(program)?.median, handshake(peer)?.median);
    Some(Goal {
        what: format!("handshake ≥ {TIMES_FASTER} times as fast as {}", peer.name),
        program: program.name.clone(),
        figure: format!("{} times", times(theirs, ours)),
        met: theirs >= ours * TIMES_FASTER,
    })
}

fn idle(program: &Program) -> Option<Goal> {
    let resident = program.start.as_ref().ok()?.idle.resident;
    Some(Goal {
        what: "idle memory ≤ 3 MB".to_owned(),
        program: program.name.clone(),
        figure: format!("{} MB", megabytes(resident)),
        met: resident <= IDLE,
    })
}

fn smaller(program: &Program, peer: &Program) -> Option<Goal> {
    let resident = |program: &Program| program.start.as_ref().ok().map(|start| start.idle.resident);
    let (ours, theirs) = (resident(program)?, resident(peer)?);
    Some(Goal {
        what: format!("idle memory ≤ 1/{TIMES_SMALLER} of {}", peer.name),
        program: program.name.clone(),
        figure: format!("1/{}", times(theirs, ours)),
        met: theirs >= ours * TIMES_SMALLER,
    })
}

fn lists(program: &Program) -> Option<Goal> {
    let round = program.round.as_ref().ok()?;
    Some(Goal {
        what: format!("≤ {LISTS} LISTs for a round of {} operations", round.polled.calls),
        program: program.name.clone(),
        figure: format!("{} LISTs, {} other requests", round.lists, round.others),
        met: round.lists <= LISTS,
    })
}

fn handshake(program: &Program) -> Option<crate::statistics::Summary> {
    program.start.as_ref().ok().map(|start| start.handshake)
}

fn times(more: u64, less: u64) -> String {
    format!("{:.1}", approximate(more) / approximate(less.max(1)))
}

/// `1.23`, of nanoseconds.
pub(super) fn milliseconds(nanoseconds: u64) -> String {
    format!("{:.2}", approximate(nanoseconds) / 1e6)
}

/// `1.23`, of bytes.
pub(super) fn megabytes(bytes: u64) -> String {
    format!("{:.2}", approximate(bytes) / 1e6)
}

#[allow(clippy::cast_precision_loss, reason = "for people; two digits are shown")]
pub(super) fn approximate(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::report::testing::program;

    fn report(programs: Vec<Program>) -> Report {
        Report { machine: Machine::at_start(), starts: 3, operations: 4, no_client: None, programs }
    }

    #[test]
    fn goals_are_met_and_missed_at_their_bounds() {
        let ours =
            |microseconds, kilobytes| program("ours", Role::Ours { floor: "empty" }, microseconds, kilobytes);
        let met_by = |ours: Program| {
            let empty = program("empty", Role::Empty, 300, 500);
            let peer = program("peer", Role::Peer, 13_000, 30_000);
            of(&report(vec![empty, ours, peer])).into_iter().map(|goal| goal.met).collect::<Vec<_>>()
        };
        // over empty, faster, idle, smaller
        assert_eq!(met_by(ours(650, 3000)), [true, true, true, true]);
        assert_eq!(met_by(ours(651, 3001)), [false, false, false, false]);
        assert_eq!(met_by(ours(200, 2000)), [true, true, true, true]);
    }

    #[test]
    fn what_was_not_measured_is_no_goal_met() {
        let ours = program("ours", Role::Ours { floor: "empty (musl)" }, 500, 2000);
        let mut peer = program("peer", Role::Peer, 20_000, 30_000);
        peer.start = Err(crate::report::Missing::because("not built"));
        let goals = of(&report(vec![ours, peer]));
        assert_eq!(goals.iter().map(|goal| goal.what.as_str()).collect::<Vec<_>>(), ["idle memory ≤ 3 MB"]);
    }

    #[test]
    fn figures_are_rounded_for_people() {
        assert_eq!(milliseconds(494_400), "0.49");
        assert_eq!(megabytes(1_581_176), "1.58");
        assert_eq!(times(22_900, 500), "45.8");
        assert_eq!(times(1, 0), "1.0");
    }
}
