//! Which rules hit a request and what they do to it. No I/O: a proxy and an API server apply the same rules.

use std::time::Duration;

pub use orders::{Cut, Failure, OrderStatus, OrderTable, Pattern};
use orders::{First, millis};
use serde::{Deserialize, Serialize};

use crate::request::RequestInfo;

/// A rule about the requests that it selects. All rules that select a request act on it together.
///
/// A pattern that is absent lets everything through; `*` and `?` are wild, `|` separates alternatives.
///
/// ```
/// use fault_proxy::rules::Rule;
/// // The second status patch of a snapshot content is written, but its client finds the connection closed, once.
/// let rule = Rule::on("patch")
///     .resource("volumesnapshotcontents")
///     .subresource("status")
///     .skip(1)
///     .times(1)
///     .close()
///     .after_effect();
/// # assert!(rule.check().is_ok());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rule {
    /// The rule's name; given when empty. A rule with a known name replaces that one.
    pub id: String,
    /// The verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verb: Option<Pattern>,
    /// The API group; the empty pattern is the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Pattern>,
    /// The plural of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<Pattern>,
    /// The subresource; the empty pattern is the object itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subresource: Option<Pattern>,
    /// The namespace; the empty pattern is a request to all or to none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Pattern>,
    /// The object's name, that of a created one from its body (`generateName` without a name).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Pattern>,
    /// The path without its query, for requests about no resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Pattern>,
    /// The name of the listener that the client is connected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<Pattern>,
    /// The client's User-Agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<Pattern>,
    /// So many selected requests pass untouched first.
    pub skip: u64,
    /// So many selected requests are hit, then no more; for ever when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// The request waits so long before anything else, in milliseconds.
    pub delay_ms: u64,
    /// How the request fails. Before the effect it is not passed on; after it, it was, and the true answer is thrown away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure<Answer>>,
}

/// What the client of a failing request gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// An error in the API server's form.
    Status(StatusAnswer),
    /// Nothing, until the rule is removed; then the request goes on as if it had not been hit.
    Hang,
    /// The end of the connection. A Go client whose connection was used before repeats a read by itself then.
    Close,
    /// The true answer's first bytes, then the end of the connection: a broken list or watch.
    Truncate {
        /// So many bytes of the body get through.
        after_bytes: u64,
    },
}

/// An error in the API server's form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StatusAnswer {
    /// The HTTP status, 400 to 599.
    pub code: u16,
    /// The reason, e.g. `Conflict`; what belongs to the code when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The message; one that names the rule when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The seconds of a Retry-After header, which are in the body too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u32>,
}

/// A rule that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRule {
    /// It is no error.
    #[error("rule answers with status {0}, use one from 400 to 599")]
    Code(u16),
    /// There is no answer before the effect.
    #[error("rule truncates an answer before the effect, cut it after the effect")]
    Truncate,
    /// Nothing would happen.
    #[error("rule orders nothing, give a delay or a failure")]
    Nothing,
}

/// What a rule can select a request by.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// What the request means.
    pub info: &'a RequestInfo,
    /// The name of the listener; empty when there is one only.
    pub client: &'a str,
    /// The User-Agent; empty when absent.
    pub user_agent: &'a str,
}

/// What happens to one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The rules that hit it.
    pub rules: Vec<String>,
    /// The sum of their delays.
    pub delay: Duration,
    /// The first failure.
    pub failure: First<Answer>,
}

impl Verdict {
    /// The verdict of these rules.
    pub fn of<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> Self {
        let mut verdict = Self::default();
        for rule in rules {
            verdict.rules.push(rule.id.clone());
            verdict.delay = verdict.delay.saturating_add(Duration::from_millis(rule.delay_ms));
            verdict.failure.or(&rule.id, rule.failure.as_ref());
        }
        verdict
    }
}

// === impl Rule ===

impl Rule {
    /// A rule about all requests.
    pub fn any() -> Self {
        Self::default()
    }

    /// A rule about the requests with this verb.
    pub fn on(verb: impl Into<Pattern>) -> Self {
        Self { verb: Some(verb.into()), ..Self::default() }
    }

    /// Selects by API group.
    #[must_use]
    pub fn group(self, pattern: impl Into<Pattern>) -> Self {
        Self { group: Some(pattern.into()), ..self }
    }

    /// Selects by the plural of the resource.
    #[must_use]
    pub fn resource(self, pattern: impl Into<Pattern>) -> Self {
        Self { resource: Some(pattern.into()), ..self }
    }

    /// Selects by subresource.
    #[must_use]
    pub fn subresource(self, pattern: impl Into<Pattern>) -> Self {
        Self { subresource: Some(pattern.into()), ..self }
    }

    /// Selects by namespace.
    #[must_use]
    pub fn namespace(self, pattern: impl Into<Pattern>) -> Self {
        Self { namespace: Some(pattern.into()), ..self }
    }

    /// Selects by the object's name.
    #[must_use]
    pub fn name(self, pattern: impl Into<Pattern>) -> Self {
        Self { name: Some(pattern.into()), ..self }
    }

    /// Selects by path.
    #[must_use]
    pub fn path(self, pattern: impl Into<Pattern>) -> Self {
        Self { path: Some(pattern.into()), ..self }
    }

    /// Selects by the listener's name.
    #[must_use]
    pub fn client(self, pattern: impl Into<Pattern>) -> Self {
        Self { client: Some(pattern.into()), ..self }
    }

    /// Selects by User-Agent.
    #[must_use]
    pub fn user_agent(self, pattern: impl Into<Pattern>) -> Self {
        Self { user_agent: Some(pattern.into()), ..self }
    }

    /// Delays the request.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay_ms: millis(delay), ..self }
    }

    /// Answers with an error.
    #[must_use]
    pub fn fail(self, code: u16) -> Self {
        self.fail_with(StatusAnswer { code, ..StatusAnswer::default() })
    }

    /// Answers 429 with a Retry-After of so many seconds.
    #[must_use]
    pub fn throttle(self, retry_after_s: u32) -> Self {
        let retry_after_s = Some(retry_after_s);
        self.fail_with(StatusAnswer { code: 429, retry_after_s, ..StatusAnswer::default() })
    }

    /// Answers with an error in all its parts.
    #[must_use]
    pub fn fail_with(self, answer: StatusAnswer) -> Self {
        self.failing(Answer::Status(answer), Cut::BeforeEffect)
    }

    /// Never answers.
    #[must_use]
    pub fn hang(self) -> Self {
        self.failing(Answer::Hang, Cut::BeforeEffect)
    }

    /// Closes the connection.
    #[must_use]
    pub fn close(self) -> Self {
        self.failing(Answer::Close, Cut::BeforeEffect)
    }

    /// Closes the connection after so many bytes of the true answer's body.
    #[must_use]
    pub fn truncate(self, after_bytes: u64) -> Self {
        self.failing(Answer::Truncate { after_bytes }, Cut::AfterEffect)
    }

    /// Checks that the rule can have an effect.
    ///
    /// # Errors
    ///
    /// See [`InvalidRule`].
    pub fn check(&self) -> Result<(), InvalidRule> {
        match &self.failure {
            None if self.delay_ms == 0 => Err(InvalidRule::Nothing),
            Some(Failure { answer: Answer::Status(answer), .. }) if !(400..600).contains(&answer.code) => {
                Err(InvalidRule::Code(answer.code))
            }
            Some(Failure { answer: Answer::Truncate { .. }, cut: Cut::BeforeEffect }) => {
                Err(InvalidRule::Truncate)
            }
            _ => Ok(()),
        }
    }

    /// Whether it is about this request.
    pub fn selects(&self, subject: Subject<'_>) -> bool {
        let info = subject.info;
        [
            (&self.verb, &*info.verb),
            (&self.group, &info.group),
            (&self.resource, &info.resource),
            (&self.subresource, &info.subresource),
            (&self.namespace, &info.namespace),
            (&self.name, &info.name),
            (&self.path, &info.path),
            (&self.client, subject.client),
            (&self.user_agent, subject.user_agent),
        ]
        .into_iter()
        .all(|(pattern, value)| Pattern::any(pattern.as_ref(), [value]))
    }
}

orders::order!(Rule, Answer);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_select_by_every_part_of_a_request() {
        let path = "/apis/snapshot.storage.k8s.io/v1/namespaces/app/volumesnapshots/vs-1/status";
        let info = RequestInfo::new("PATCH", path, "");
        let subject = Subject { info: &info, client: "plugin", user_agent: "csi-actions/0.1" };
        for (rule, selected) in [
            (Rule::any(), true),
            (Rule::on("patch"), true),
            (Rule::on("create|patch"), true),
            (Rule::on("get"), false),
            (Rule::any().group("snapshot.storage.k8s.io"), true),
            (Rule::any().group(""), false),
            (Rule::any().resource("volumesnapshots"), true),
            (Rule::any().resource("volumesnapshotcontents"), false),
            (Rule::any().resource("volumesnapshot*"), true),
            (Rule::any().subresource("status"), true),
            (Rule::any().subresource(""), false),
            (Rule::any().namespace("app"), true),
            (Rule::any().namespace("other"), false),
            (Rule::any().name("vs-*"), true),
            (Rule::any().name("vs-2"), false),
            (Rule::any().path("/apis/*"), true),
            (Rule::any().path("/version"), false),
            (Rule::any().client("plugin"), true),
            (Rule::any().client("velero"), false),
            (Rule::any().user_agent("csi-actions/*"), true),
            (Rule::any().user_agent("velero/*"), false),
            (Rule::on("patch").name("vs-1").client("velero"), false),
        ] {
            assert_eq!(rule.selects(subject), selected, "{rule:?}");
        }
    }

    #[test]
    fn rules_act_together_and_the_first_failure_wins() {
        let second = Duration::from_secs(1);
        let rules = [
            Rule::any().id("slow").delay(second),
            Rule::any().id("lost").delay(second).close().after_effect(),
            Rule::any().id("late").fail(500),
        ];
        let verdict = Verdict::of(&rules);
        assert_eq!(verdict.rules, ["slow", "lost", "late"]);
        assert_eq!(verdict.delay, 2 * second);
        assert_eq!(verdict.failure.at(Cut::BeforeEffect), None);
        assert_eq!(verdict.failure.at(Cut::AfterEffect), Some(("lost", &Answer::Close)));
        assert_eq!(Verdict::of(&[]), Verdict::default());
    }

    #[test]
    fn senseless_rules_are_refused() {
        for (rule, expected) in [
            (Rule::any(), Err(InvalidRule::Nothing)),
            (Rule::any().fail(200), Err(InvalidRule::Code(200))),
            (Rule::any().fail(600), Err(InvalidRule::Code(600))),
            (
                Rule::any().failing(Answer::Truncate { after_bytes: 1 }, Cut::BeforeEffect),
                Err(InvalidRule::Truncate),
            ),
            (Rule::any().truncate(0), Ok(())),
            (Rule::any().throttle(1).after_effect(), Ok(())),
        ] {
            assert_eq!(rule.check(), expected, "{rule:?}");
        }
    }

    #[test]
    fn the_json_form_is_stable() {
        let json = serde_json::json!({
            "id": "x", "verb": "create", "group": "", "user_agent": "velero*", "skip": 1, "times": 2, "delay_ms": 3,
            "failure": {"answer": {"status": {"code": 429, "retry_after_s": 1}}, "cut": "before_effect"}
        });
        let rule = Rule::on("create")
            .id("x")
            .group("")
            .user_agent("velero*")
            .skip(1)
            .times(2)
            .delay(Duration::from_millis(3))
            .throttle(1);
        assert_eq!(serde_json::to_value(&rule).expect("write"), json);
        assert_eq!(serde_json::from_value::<Rule>(json).expect("read"), rule);
        let short = serde_json::json!({"failure": {"answer": "close", "cut": "after_effect"}});
        assert_eq!(serde_json::from_value::<Rule>(short).expect("read"), Rule::any().close().after_effect());
        assert!(serde_json::from_value::<Rule>(serde_json::json!({"verbs": "get"})).is_err());
    }
}
