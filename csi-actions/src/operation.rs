//! The id of an operation: all that a later process needs to find its object again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use velero_plugin::{InvalidOperationId, OperationId};

/// What stands in place of the namespace for a content, which has none.
const NO_NAMESPACE: &str = "_";

/// What an operation waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The content of this name.
    Content(String),
    /// The object of this namespace and name: a snapshot, as Velero's own action writes it, or a restored claim.
    Object(String, String),
}

/// `_/<content>/<RFC 3339 time>` or `<namespace>/<name>/<RFC 3339 time>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// What it waits for.
    pub subject: Subject,
    /// When it began. The same in every poll, since Velero rewrites its file of operations when it changes.
    pub started: SystemTime,
}

impl Operation {
    /// Waiting for the content `name` from `now` on, in whole seconds.
    pub fn on_content(name: &str, now: SystemTime) -> Self {
        Self { subject: Subject::Content(name.to_owned()), started: whole_seconds(now) }
    }

    /// Waiting for the object `namespace`/`name` from `now` on, in whole seconds.
    pub fn on_object(namespace: &str, name: &str, now: SystemTime) -> Self {
        let subject = Subject::Object(namespace.to_owned(), name.to_owned());
        Self { subject, started: whole_seconds(now) }
    }

    /// Reads an id.
    ///
    /// # Errors
    ///
    /// When it is not three parts with a time at the end: asking again is pointless.
    pub fn parse(id: &OperationId) -> Result<Self, InvalidOperationId> {
        let refused = || InvalidOperationId(id.as_str().to_owned());
        let parts: Vec<&str> = id.as_str().split('/').collect();
        let [namespace, name, started] = parts[..] else { return Err(refused()) };
        if namespace.is_empty() || name.is_empty() {
            return Err(refused());
        }
        let started = crate::object::time(started).ok_or_else(refused)?;
        let subject = match namespace {
            NO_NAMESPACE => Subject::Content(name.to_owned()),
            namespace => Subject::Object(namespace.to_owned(), name.to_owned()),
        };
        Ok(Self { subject, started })
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (namespace, name) = match &self.subject {
            Subject::Content(name) => (NO_NAMESPACE, name),
            Subject::Object(namespace, name) => (namespace.as_str(), name),
        };
        write!(f, "{namespace}/{name}/{}", rfc3339(self.started))
    }
}

fn whole_seconds(time: SystemTime) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// A time as Kubernetes writes it: UTC, whole seconds.
pub fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let time = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_ids_are_refused_with_their_text() {
        for id in
            ["a/b", "a/b/c/d", "a/b/notatime", "/b/2026-01-01T00:00:00Z", "a//2026-01-01T00:00:00Z", "a"]
        {
            let error = Operation::parse(&OperationId::new(id).unwrap()).unwrap_err();
            assert!(error.to_string().contains(id), "{error}");
        }
    }

    #[test]
    fn an_id_of_velero_itself_is_understood() {
        let id = OperationId::new("a/b/2026-01-01T01:00:00+01:00").unwrap();
        let operation = Operation::parse(&id).unwrap();
        assert_eq!(operation.subject, Subject::Object("a".to_owned(), "b".to_owned()));
        assert_eq!(rfc3339(operation.started), "2026-01-01T00:00:00Z");
    }

    #[test]
    fn an_id_says_all_that_the_next_process_needs() {
        let now = UNIX_EPOCH + Duration::from_millis(1_767_225_600_750);
        let operation = Operation::on_content("snapcontent-1", now);
        assert_eq!(operation.to_string(), "_/snapcontent-1/2026-01-01T00:00:00Z");
        assert_eq!(Operation::parse(&OperationId::new(operation.to_string()).unwrap()), Ok(operation));
        let operation = Operation::on_object("a", "data", now);
        assert_eq!(operation.to_string(), "a/data/2026-01-01T00:00:00Z");
        assert_eq!(Operation::parse(&OperationId::new(operation.to_string()).unwrap()), Ok(operation));
    }
}
