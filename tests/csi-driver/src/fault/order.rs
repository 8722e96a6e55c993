//! What a test orders: which calls are selected and what happens to them.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use orders::{Cut, Failure, Pattern, millis};
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::state::{Aliases, Readiness};

/// An order for the calls that it selects. All orders that select a call act on it together.
///
/// ```
/// use csi_driver::fault::Fault;
/// // The second snapshot of the claim `app/data` is taken, but its caller gets an error, once.
/// let fault = Fault::on("CreateSnapshot")
///     .volume("app/data")
///     .skip(1)
///     .times(1)
///     .error(tonic::Code::Unavailable, "array is busy")
///     .after_effect();
/// # assert!(fault.check().is_ok());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The name of the order; given by the driver when empty. An order with a known name replaces that one.
    #[serde(default)]
    pub id: String,
    /// Pattern of the method, e.g. `CreateSnapshot` or `*Snapshot`; `*` and `?` are wild.
    pub method: Pattern,
    /// Pattern of a name of the object: its id, its name, or the `namespace/name` of the `VolumeSnapshot` or
    /// claim where the sidecar runs with `--extra-create-metadata`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Pattern>,
    /// Pattern of a name of the volume, as above: the source of a snapshot, or the volume itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<Pattern>,
    /// So many selected calls pass untouched first.
    #[serde(default)]
    pub skip: u64,
    /// So many selected calls are hit, then no more; for ever when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// The call waits so long before anything else, in milliseconds.
    #[serde(default)]
    pub latency_ms: u64,
    /// How the call fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure<Answer>>,
    /// When the snapshots that the call creates are ready to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Delay>,
    /// The size in bytes that the snapshots which the call creates report; zero is "unknown" to the sidecar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
}

/// What the caller of a failing call gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A gRPC status.
    Error {
        /// Not OK.
        code: Code,
        /// The text that ends up in the status of the Kubernetes object.
        message: String,
    },
    /// Nothing, until the order is removed; then the call goes on as if it had not been hit.
    Hang,
}

/// How long after its creation a snapshot is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delay {
    /// After so many milliseconds.
    AfterMs(u64),
    /// Not before a test says so.
    Never,
}

/// An order that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFault {
    /// No call would be selected.
    #[error("fault has an empty method pattern, use * for every method")]
    Method,
    /// Success is no error.
    #[error("fault answers with the code OK as an error, choose another code")]
    Code,
    /// The protocol forbids it.
    #[error("fault reports {0} bytes, give a size of at least 0")]
    Size(i64),
    /// Nothing would happen.
    #[error("fault orders nothing, give a latency, a failure, a readiness or a size")]
    Nothing,
}

impl Fault {
    /// An order for all calls whose method matches the pattern.
    pub fn on(method: impl Into<Pattern>) -> Self {
        Self { method: method.into(), ..Self::default() }
    }

    /// Selects by the object's names.
    #[must_use]
    pub fn name(self, pattern: impl Into<Pattern>) -> Self {
        Self { name: Some(pattern.into()), ..self }
    }

    /// Selects by the volume's names.
    #[must_use]
    pub fn volume(self, pattern: impl Into<Pattern>) -> Self {
        Self { volume: Some(pattern.into()), ..self }
    }

    /// Delays the call.
    #[must_use]
    pub fn latency(self, latency: Duration) -> Self {
        Self { latency_ms: millis(latency), ..self }
    }

    /// Fails the call.
    #[must_use]
    pub fn error(self, code: tonic::Code, message: impl Into<String>) -> Self {
        self.failing(Answer::Error { code: Code(code), message: message.into() }, Cut::BeforeEffect)
    }

    /// Never answers the call.
    #[must_use]
    pub fn hang(self) -> Self {
        self.failing(Answer::Hang, Cut::BeforeEffect)
    }

    /// Makes new snapshots ready after a while.
    #[must_use]
    pub fn ready_after(self, delay: Duration) -> Self {
        Self { ready: Some(Delay::AfterMs(millis(delay))), ..self }
    }

    /// Keeps new snapshots from being ready.
    #[must_use]
    pub fn never_ready(self) -> Self {
        Self { ready: Some(Delay::Never), ..self }
    }

    /// Makes new snapshots report another size.
    #[must_use]
    pub fn size(self, bytes: i64) -> Self {
        Self { size_bytes: Some(bytes), ..self }
    }

    /// Checks that the order can have an effect.
    ///
    /// # Errors
    ///
    /// See [`InvalidFault`].
    pub fn check(&self) -> Result<(), InvalidFault> {
        if self.method.as_str().is_empty() {
            return Err(InvalidFault::Method);
        }
        if let Some(Failure { answer: Answer::Error { code: Code(tonic::Code::Ok), .. }, .. }) = self.failure
        {
            return Err(InvalidFault::Code);
        }
        match self.size_bytes {
            Some(bytes) if bytes < 0 => return Err(InvalidFault::Size(bytes)),
            None if self.latency_ms == 0 && self.failure.is_none() && self.ready.is_none() => {
                return Err(InvalidFault::Nothing);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether it is for a call of this method about these objects.
    pub fn selects(&self, method: &str, aliases: &Aliases) -> bool {
        let any = |pattern: &Option<Pattern>, names: &[String]| {
            Pattern::any(pattern.as_ref(), names.iter().map(String::as_str))
        };
        self.method.matches(method) && any(&self.name, &aliases.names) && any(&self.volume, &aliases.volumes)
    }
}

orders::order!(Fault, Answer);

impl Delay {
    /// The readiness of a snapshot whose delay begins at `now`.
    pub fn from(self, now: Timestamp) -> Readiness {
        match self {
            Self::Never => Readiness::Never,
            Self::AfterMs(ms) => {
                let delay = SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX));
                now.checked_add(delay).map_or(Readiness::Never, Readiness::At)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code as Grpc;

    use super::*;

    fn aliases(names: &[&str], volumes: &[&str]) -> Aliases {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Aliases { names: owned(names), volumes: owned(volumes) }
    }

    #[test]
    fn orders_select_by_method_name_and_volume() {
        let call = aliases(&["snap-1", "snapshot-x"], &["vol-1", "app/slow-1"]);
        for (fault, hit) in [
            (Fault::on("CreateSnapshot"), true),
            (Fault::on("*Snapshot"), true),
            (Fault::on("*"), true),
            (Fault::on("DeleteSnapshot"), false),
            (Fault::on("*").name("snapshot-*"), true),
            (Fault::on("*").name("app/slow-1"), false),
            (Fault::on("*").volume("app/slow-?"), true),
            (Fault::on("*").volume("app/fast-*"), false),
            (Fault::on("*").name("snap-1").volume("vol-2"), false),
        ] {
            assert_eq!(fault.selects("CreateSnapshot", &call), hit, "{fault:?}");
        }
    }

    #[test]
    fn senseless_orders_are_refused() {
        for (fault, refusal) in [
            (Fault::on("").hang(), InvalidFault::Method),
            (Fault::on("*").error(Grpc::Ok, ""), InvalidFault::Code),
            (Fault::on("*").size(-1), InvalidFault::Size(-1)),
            (Fault::on("*").times(3), InvalidFault::Nothing),
        ] {
            assert_eq!(fault.check(), Err(refusal));
        }
    }

    #[test]
    fn readiness_is_counted_from_the_creation() {
        let now = Timestamp::UNIX_EPOCH;
        let later = now + SignedDuration::from_millis(1500);
        for (ready, expected) in [
            (Delay::AfterMs(0), Readiness::At(now)),
            (Delay::AfterMs(1500), Readiness::At(later)),
            (Delay::AfterMs(u64::MAX), Readiness::Never),
            (Delay::Never, Readiness::Never),
        ] {
            assert_eq!(ready.from(now), expected, "{ready:?}");
        }
    }

    #[test]
    fn the_json_form_is_stable() {
        let json = serde_json::json!({
            "id": "x", "method": "CreateSnapshot", "volume": "app/*", "skip": 0, "times": 2, "latency_ms": 5,
            "failure": {"answer": {"error": {"code": "UNAVAILABLE", "message": "busy"}}, "cut": "after_effect"},
            "ready": {"after_ms": 10}, "size_bytes": 0
        });
        let fault = Fault::on("CreateSnapshot")
            .id("x")
            .volume("app/*")
            .times(2)
            .latency(Duration::from_millis(5))
            .error(Grpc::Unavailable, "busy")
            .after_effect()
            .ready_after(Duration::from_millis(10))
            .size(0);
        assert_eq!(serde_json::to_value(&fault).expect("write"), json);
        assert_eq!(serde_json::from_value::<Fault>(json).expect("read"), fault);
        let short = serde_json::json!({"method": "*", "failure": {"answer": "hang"}, "ready": "never"});
        let read: Fault = serde_json::from_value(short).expect("read");
        assert_eq!(read, Fault::on("*").hang().never_ready());
        let typo = serde_json::json!({"method": "*", "latency": 5});
        assert!(serde_json::from_value::<Fault>(typo).is_err());
    }
}
