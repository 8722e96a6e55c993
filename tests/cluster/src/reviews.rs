//! Access reviews: whoever is asked for may do everything, but for what a fault rule answers with 403.

use fault_proxy::request::RequestInfo;
use fault_proxy::rules::{Answer as Fault, Rule, Subject};
use http::Method;
use orders::live::Orders;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::rest::{Answer, Call};

const PATHS: [&str; 2] = [
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
];

/// The answer to a review; `None` for any other request. Nothing is stored, as with a real API server.
pub(crate) fn answer(
    rules: &Orders<Rule>,
    call: &Call,
    user_agent: &str,
) -> Option<Result<Answer, ApiError>> {
    if call.method != Method::POST || !PATHS.contains(&call.path.as_str()) {
        return None;
    }
    let Ok(mut review) = serde_json::from_slice::<Value>(&call.body) else {
        return Some(Err(ApiError::BadRequest("the review is no JSON".to_owned())));
    };
    let allowed = !is_forbidden(rules, &asked(&review), user_agent);
    review["status"] = json!({"allowed": allowed});
    Some(Ok(Answer::Json(201, review)))
}

/// The request that a review asks about.
fn asked(review: &Value) -> RequestInfo {
    let part = |key: &str| review["spec"]["resourceAttributes"][key].as_str().unwrap_or_default().to_owned();
    RequestInfo {
        verb: part("verb"),
        group: part("group"),
        version: part("version"),
        namespace: part("namespace"),
        resource: part("resource"),
        subresource: part("subresource"),
        name: part("name"),
        path: String::new(),
    }
}

/// Asking does not count as a hit.
fn is_forbidden(rules: &Orders<Rule>, info: &RequestInfo, user_agent: &str) -> bool {
    rules.list().iter().any(|status| {
        let rule = &status.order;
        let forbids = rule
            .failure
            .as_ref()
            .is_some_and(|failure| matches!(&failure.answer, Fault::Status(answer) if answer.code == 403));
        forbids && rule.selects(Subject { info, client: "", user_agent })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::path::Query;

    fn allowed(rules: &Orders<Rule>, attributes: &Value) -> bool {
        let body = json!({"spec": {"resourceAttributes": attributes}}).to_string();
        let call = Call {
            method: Method::POST,
            path: PATHS[0].to_owned(),
            query: Query::parse(""),
            content_type: String::new(),
            body: body.into(),
        };
        let Some(Ok(Answer::Json(201, review))) = answer(rules, &call, "") else { panic!("not answered") };
        review["status"]["allowed"] == true
    }

    #[test]
    fn what_a_rule_forbids_is_not_allowed_and_the_rest_is() {
        let rules = Orders::default();
        rules.add(Rule::on("create").resource("events").namespace("app").fail(403));
        rules.add(Rule::on("list").resource("pods").fail(500));
        let create = json!({"verb": "create", "resource": "events", "namespace": "app"});
        assert!(!allowed(&rules, &create));
        assert!(allowed(&rules, &json!({"verb": "create", "resource": "events", "namespace": "b"})));
        assert!(
            allowed(&rules, &json!({"verb": "list", "resource": "pods"})),
            "trouble is no rule of access"
        );
        assert!(rules.list().iter().all(|status| status.hits == 0));
    }
}
