//! The faults, and the requests that they make sense for.

use std::fmt;

use cluster::{Request, Rule};

/// The requests of the plugin alone; those of the host are its own affair.
pub(crate) const PLUGIN: &str = "csi-actions/*";

/// One request of a flow: the `nth` of its verb and resource in a stage, counted from 0.
///
/// Not its place among all requests: two of them may be under way at once, and then come in any order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) stage: &'static str,
    pub(crate) verb: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) nth: u64,
}

impl Point {
    /// The points of a stage in which these requests were made.
    pub(crate) fn all(stage: &'static str, requests: &[Request]) -> Vec<Self> {
        let mut points: Vec<Self> = Vec::new();
        for request in requests.iter().filter(|request| request.client.starts_with("csi-actions/")) {
            let info = &request.info;
            let like = |point: &&Self| {
                (&point.verb, &point.resource, &point.subresource)
                    == (&info.verb, &info.resource, &info.subresource)
            };
            let nth = points.iter().filter(like).count() as u64;
            points.push(Self {
                stage,
                verb: info.verb.clone(),
                resource: info.resource.clone(),
                subresource: info.subresource.clone(),
                nth,
            });
        }
        points
    }

    /// Whether each run of the flow makes the request. A repetition may be by the clock; and at finalize the controllers take the
    /// content of a member away with its group, perhaps before the plugin looks for it: then it is not written, and its
    /// snapshot is not told what it said.
    pub(crate) fn always_comes(&self) -> bool {
        let is_of_content = match self.resource.as_str() {
            "volumesnapshotcontents" => self.writes(),
            "volumesnapshots" => self.verb == "patch",
            _ => false,
        };
        self.nth == 0 && !(self.stage == "finalize" && is_of_content)
    }

    fn writes(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }

    fn rule(&self) -> Rule {
        let rule = Rule::on(self.verb.as_str()).resource(self.resource.as_str());
        rule.subresource(self.subresource.as_str()).user_agent(PLUGIN).skip(self.nth).times(1)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        let Self { stage, verb, resource, subresource, nth } = self;
        write!(f, "{stage}: {verb} {resource}{slash}{subresource} #{nth}")
    }
}

/// What becomes of the calls after the one in which the process died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// As the host plays real servers: the next one fails in a backup, all fail in a poll or a deletion, and then a new
    /// process takes them.
    AsPlayed,
    /// They fail to the end of the stage, where the host would have a new process.
    AllFail,
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The process is killed before the request arrives.
    KilledBefore(After),
    /// The process is killed after the write, before it learns of it.
    KilledAfter(After),
    /// 429 with a second in Retry-After.
    Throttled,
    /// 500.
    Failed,
    /// 409: another writer was quicker, or a quota was being counted.
    Conflict,
    /// No answer: the plugin's own limit ends it.
    Unanswered,
    /// The connection is closed before the request arrives.
    Dropped,
    /// The connection is closed after the write.
    DroppedAfterWrite,
    /// The answer breaks off.
    Truncated,
}

impl Kind {
    /// Those that a request may meet. A kill after a read is one before the next request.
    pub(crate) fn all(point: &Point, afters: &[After]) -> Vec<Self> {
        let mut kinds = vec![Self::Throttled, Self::Failed, Self::Unanswered, Self::Dropped];
        kinds.extend(afters.iter().map(|after| Self::KilledBefore(*after)));
        if point.writes() {
            kinds.extend([Self::Conflict, Self::DroppedAfterWrite]);
            kinds.extend(afters.iter().map(|after| Self::KilledAfter(*after)));
        } else {
            kinds.push(Self::Truncated);
        }
        kinds
    }

    /// For a flow that does the same for each of several members. The third request of a kind is one of a further member, and
    /// the process is only killed at it. Where it dies at the items, there is also the host that has no new one for the others.
    pub(crate) fn of_members(point: &Point) -> Vec<Self> {
        let mut kinds = Self::all(point, &[After::AsPlayed]);
        kinds.retain(|kind| !matches!(kind, Self::Dropped | Self::Truncated));
        if point.nth > 1 {
            kinds.retain(|kind| kind.after().is_some());
        }
        if point.stage == "items" {
            kinds.push(Self::KilledBefore(After::AllFail));
        }
        kinds
    }

    /// What becomes of the later calls, where this kills.
    pub(crate) fn after(self) -> Option<After> {
        match self {
            Self::KilledBefore(after) | Self::KilledAfter(after) => Some(after),
            _ => None,
        }
    }
}

/// A fault at a request.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) point: Point,
    pub(crate) kind: Kind,
}

impl Fault {
    /// The order that makes it so. A request that hangs is never let go on: its process is dead, or has closed the
    /// connection.
    pub(crate) fn rule(&self) -> Rule {
        let rule = self.point.rule();
        match self.kind {
            Kind::KilledBefore(_) | Kind::Unanswered => rule.hang(),
            Kind::KilledAfter(_) => rule.hang().after_effect(),
            Kind::Throttled => rule.throttle(1),
            Kind::Failed => rule.fail(500),
            Kind::Conflict => rule.fail_with(cluster::StatusAnswer {
                code: 409,
                reason: Some("Conflict".to_owned()),
                message: Some(
                    "the object has been modified; please apply your changes to the latest version"
                        .to_owned(),
                ),
                retry_after_s: None,
            }),
            Kind::Dropped => rule.close(),
            Kind::DroppedAfterWrite => rule.close().after_effect(),
            Kind::Truncated => rule.truncate(5),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}", self.kind, self.point)
    }
}
