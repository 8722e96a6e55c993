//! A proxy in this process before a stand-in for the API server.

mod support;

use std::time::Duration;

use fault_proxy::proxy::{Listen, Proxy, ProxyError};
use fault_proxy::rules::{Rule, StatusAnswer};
use fault_proxy::upstream::Upstream;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use support::{PATIENCE, Server, client, get};

const PODS: &str = "/api/v1/namespaces/a/pods";

async fn start(server: &Server) -> Proxy {
    let upstream = Upstream::plain(&server.url()).expect("upstream");
    Proxy::start(upstream, [Listen::loopback("plugin")]).await.expect("proxy")
}

fn url(proxy: &Proxy, path: &str) -> String {
    proxy.url("plugin").expect("url") + path
}

/// Waits until something is so.
async fn until(mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("in time");
}

#[tokio::test]
async fn requests_and_answers_pass_unchanged() {
    let server = Server::start().await;
    let proxy = start(&server).await;
    let request = client()
        .patch(url(&proxy, "/api/v1/namespaces/a/pods/p%3Aq/status?fieldManager=x&force=true"))
        .header("x-custom", "kept")
        .header("authorization", "Bearer mine")
        .header("user-agent", "plugin/1")
        .body(r#"{"a": 1.0}"#);
    let answer = request.send().await.expect("answer");
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["x-answer"]),
        (202, &"yes".parse().expect("value"))
    );
    let echo: Value = answer.json().await.expect("json");
    let expected = json!({
        "method": "PATCH",
        "uri": "/api/v1/namespaces/a/pods/p%3Aq/status?fieldManager=x&force=true",
        "body": r#"{"a": 1.0}"#,
        "authorization": "Bearer mine",
        "custom": "kept",
        "host": server.address.to_string(),
    });
    assert_eq!(echo, expected);

    let record = &proxy.requests(|_| true)[0];
    assert_eq!((&*record.client, &*record.user_agent), ("plugin", "plugin/1"));
    assert_eq!(
        (&*record.info.verb, &*record.info.name, &*record.info.subresource),
        ("patch", "p:q", "status")
    );
    assert_eq!((record.forwarded, record.upstream_status, record.status), (true, Some(202), Some(202)));
}

/// As clouds hand out their credentials.
#[tokio::test]
async fn credentials_that_a_program_gives_are_the_proxys_own() {
    let server = Server::start().await;
    let credential = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"of-program"}}"#;
    let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "echo", "args": [credential],
        "interactiveMode": "Never"});
    let source = json!({
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": server.url()}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "users": [{"name": "u", "user": {"exec": exec}}],
    });
    let source = Kubeconfig::from_yaml(&source.to_string()).expect("kubeconfig");
    let upstream = Upstream::from_kubeconfig(source).await.expect("upstream");
    let proxy = Proxy::start(upstream, [Listen::loopback("plugin")]).await.expect("proxy");
    let (_, echo) = get(&url(&proxy, PODS)).await.expect("answer");
    assert_eq!(echo["authorization"], "Bearer of-program");
    let mine = client().get(url(&proxy, PODS)).header("authorization", "Bearer mine").send().await;
    let echo: Value = mine.expect("answer").json().await.expect("json");
    assert_eq!(echo["authorization"], "Bearer mine");
}

#[tokio::test]
async fn a_throttled_request_does_not_reach_the_server() {
    let server = Server::start().await;
    let proxy = start(&server).await;
    let id = proxy.order(Rule::on("list").resource("pods").times(1).throttle(7)).expect("rule");

    let answer = client().get(url(&proxy, PODS)).send().await.expect("answer");
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["retry-after"]),
        (429, &"7".parse().expect("value"))
    );
    let status: Value = answer.json().await.expect("json");
    assert_eq!((&status["kind"], &status["reason"]), (&json!("Status"), &json!("TooManyRequests")));
    assert_eq!(status["details"], json!({"kind": "pods", "retryAfterSeconds": 7}));
    assert!(server.requests().is_empty());

    assert_eq!(get(&url(&proxy, PODS)).await.expect("second try").0, 202);
    let records = proxy.requests(|_| true);
    assert_eq!(records[0].rules, [id]);
    let outcomes: Vec<_> = records.iter().map(|record| (record.forwarded, record.status)).collect();
    assert_eq!(outcomes, [(false, Some(429)), (true, Some(202))]);
}

#[tokio::test]
async fn a_connection_closed_before_the_effect_means_no_effect() {
    let server = Server::start().await;
    let proxy = start(&server).await;
    proxy.order(Rule::on("create").name("g-*").close()).expect("rule");
    let post = |body: &'static str| client().post(url(&proxy, PODS)).body(body).send();
    post(r#"{"metadata": {"generateName": "g-"}}"#).await.expect_err("closed");
    assert!(server.requests().is_empty());
    assert_eq!(post(r#"{"metadata": {"name": "other"}}"#).await.expect("answer").status(), 202);
    let record = &proxy.requests(|_| true)[0];
    assert_eq!((record.forwarded, record.status), (false, None));
    assert!(record.trouble.as_ref().is_some_and(|trouble| trouble.contains("order-1")), "{record:?}");
    assert!(record.ended.is_some());
}

#[tokio::test]
async fn a_connection_closed_after_the_effect_hides_it() {
    let server = Server::start().await;
    let proxy = start(&server).await;
    proxy.order(Rule::on("create").times(1).close().after_effect()).expect("rule");
    client().post(url(&proxy, PODS)).body("{}").send().await.expect_err("closed");
    assert_eq!(server.requests(), [format!("POST {PODS}")]);
    let record = &proxy.requests(|_| true)[0];
    assert_eq!((record.forwarded, record.upstream_status, record.status), (true, Some(202), None));
}

#[tokio::test]
async fn an_error_can_hide_an_effect_too() {
    let server = Server::start().await;
    let proxy = start(&server).await;
    let timeout = StatusAnswer {
        code: 504,
        message: Some("request did not complete within the allotted timeout".to_owned()),
        ..StatusAnswer::default()
    };
    proxy.order(Rule::on("get").fail_with(timeout).after_effect()).expect("rule");
    let (code, status) = get(&url(&proxy, "/api/v1/namespaces/a/pods/p")).await.expect("answer");
    assert_eq!((code, &status["reason"]), (504, &json!("Timeout")));
    assert_eq!(server.requests().len(), 1);
    let record = &proxy.requests(|_| true)[0];
    assert_eq!((record.upstream_status, record.status), (Some(202), Some(504)));
}

#[tokio::test]
async fn a_hanging_request_goes_on_when_its_rule_is_removed() {
    let server = Server::start().await;
    let proxy = start(&server).await;
    let id = proxy.order(Rule::any().path("/version").hang()).expect("rule");
    let address = url(&proxy, "/version");
    let release = async {
        until(|| !proxy.requests(|_| true).is_empty()).await;
        assert!(server.requests().is_empty());
        assert!(proxy.requests(|_| true)[0].ended.is_none());
        proxy.rules().remove(&id);
    };
    let (answer, ()) = tokio::join!(get(&address), release);
    assert_eq!(answer.expect("answer").0, 202);
}

#[tokio::test]
async fn a_client_that_goes_away_is_in_the_log() {
    let server = Server::start().await;
    let proxy = start(&server).await;
    proxy.order(Rule::any().delay(Duration::from_secs(3600))).expect("rule");
    let impatient = client().get(url(&proxy, PODS)).timeout(Duration::from_millis(50)).send();
    assert!(impatient.await.expect_err("timeout").is_timeout());
    until(|| proxy.requests(|_| true)[0].ended.is_some()).await;
    let record = &proxy.requests(|_| true)[0];
    assert_eq!((record.forwarded, record.trouble.as_deref()), (false, Some("the client went away")));
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_watch_passes_event_by_event_and_its_end_is_in_the_log() {
    let server = Server::start().await;
    let proxy = start(&server).await;
    let mut watch = client().get(url(&proxy, &format!("{PODS}?watch=true"))).send().await.expect("watch");
    for event in ["{\"type\":\"ADDED\"}\n", "{\"type\":\"DELETED\"}\n"] {
        server.push(event);
        assert_eq!(watch.chunk().await.expect("event").as_deref(), Some(event.as_bytes()));
        assert!(proxy.requests(|_| true)[0].ended.is_none());
    }
    drop(watch);
    until(|| proxy.requests(|_| true)[0].ended.is_some()).await;
    assert_eq!(proxy.requests(|_| true)[0].info.verb, "watch");
}

#[tokio::test]
async fn an_answer_can_break_off_in_the_middle() {
    let server = Server::start().await;
    let proxy = start(&server).await;
    proxy.order(Rule::on("list|watch").truncate(10)).expect("rule");
    let list = client().get(url(&proxy, PODS)).send().await.expect("head");
    assert_eq!(list.status(), 202);
    list.bytes().await.expect_err("broken body");

    let mut watch = client().get(url(&proxy, &format!("{PODS}?watch=true"))).send().await.expect("watch");
    server.push("12345678");
    server.push("901234");
    let mut received = Vec::new();
    let broken = loop {
        match watch.chunk().await {
            Ok(Some(chunk)) => received.extend_from_slice(&chunk),
            end => break end,
        }
    };
    broken.expect_err("broken watch");
    assert_eq!(received, b"1234567890");
}

#[tokio::test]
async fn clients_are_told_apart_by_listener_and_agent() {
    let server = Server::start().await;
    let upstream = Upstream::plain(&server.url()).expect("upstream");
    let proxy = Proxy::start(upstream, ["a", "b"].map(Listen::loopback)).await.expect("proxy");
    proxy.order(Rule::on("get").client("b").user_agent("velero*").fail(500)).expect("rule");
    for (listener, agent, path, code) in [
        ("a", "velero/1", "/api/v1/namespaces/x/pods/p", 202),
        ("b", "velero/1", "/api/v1/namespaces/x/pods/p", 500),
        ("b", "other", "/api/v1/namespaces/x/pods/p", 202),
        ("b", "other", "/api/v1/pods", 202),
        ("b", "other", "/api/v1/pods", 202),
    ] {
        let url = proxy.url(listener).expect("url") + path;
        let answer = client().get(url).header("user-agent", agent).send().await.expect("answer");
        assert_eq!(answer.status().as_u16(), code, "{listener} {agent}");
    }
    let counts: Vec<_> =
        proxy.counts().into_iter().map(|c| (c.client, c.user_agent, c.verb, c.count)).collect();
    let expected = [
        ("a", "velero/1", "get", 1),
        ("b", "other", "get", 1),
        ("b", "other", "list", 2),
        ("b", "velero/1", "get", 1),
    ];
    assert_eq!(counts, expected.map(|(a, b, c, n)| (a.to_owned(), b.to_owned(), c.to_owned(), n)));
    proxy.forget_requests();
    assert!(proxy.counts().is_empty());
}

#[tokio::test]
async fn a_server_that_is_gone_is_a_bad_gateway() {
    let server = Server::start().await;
    let proxy = start(&server).await;
    drop(server);
    let (code, status) = get(&url(&proxy, PODS)).await.expect("answer");
    assert_eq!((code, &status["kind"]), (502, &json!("Status")));
    assert!(status["message"].as_str().is_some_and(|message| message.contains("gave no answer")), "{status}");
}

/// The upstream of the second proxy is the first one's TLS listener, so both directions of TLS are real.
#[tokio::test]
async fn a_kubeconfig_leads_through_tls_and_keeps_its_user() {
    let server = Server::start().await;
    let upstream = Upstream::plain(&server.url()).expect("upstream");
    let first = Proxy::start(upstream, [Listen::loopback("x").with_tls()]).await.expect("first");
    let mut with_token = serde_json::to_value(first.kubeconfig("x").expect("kubeconfig")).expect("json");
    with_token["users"][0]["user"] = json!({"token": "secret"});
    let source: Kubeconfig = serde_json::from_value(with_token).expect("kubeconfig");
    let upstream = Upstream::from_kubeconfig(source).await.expect("upstream");
    let listeners = [Listen::loopback("tls").with_tls(), Listen::loopback("plain")];
    let second = Proxy::start(upstream, listeners).await.expect("second");

    let folder = tempfile::tempdir().expect("tempdir");
    let path = folder.path().join("kubeconfig");
    second.write_kubeconfig("tls", &path).expect("write");
    let kubeconfig = Kubeconfig::read_from(&path).expect("read");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("config");
    let client = kube::Client::try_from(config).expect("client");
    let request = http::Request::get("/version").body(Vec::new()).expect("request");
    let echo: Value = client.request(request).await.expect("answer");
    assert_eq!(echo["authorization"], "Bearer secret");

    // Without credentials of its own a client gets those of the proxy.
    let (_, echo) = get(&(second.url("plain").expect("url") + "/version")).await.expect("answer");
    assert_eq!(echo["authorization"], "Bearer secret");
    assert_eq!(second.requests(|record| record.client == "tls").len(), 1);
}

#[tokio::test]
async fn a_dropped_proxy_closes_its_connections() {
    let server = Server::start().await;
    let proxy = start(&server).await;
    let address = url(&proxy, &format!("{PODS}?watch=true"));
    let mut watch = client().get(&address).send().await.expect("watch");
    drop(proxy);
    watch.chunk().await.expect_err("closed");
    client().get(&address).send().await.expect_err("refused");
}

#[tokio::test]
async fn listeners_have_names_of_their_own() {
    let server = Server::start().await;
    let upstream = Upstream::plain(&server.url()).expect("upstream");
    let twice = Proxy::start(upstream, ["a", "a"].map(Listen::loopback)).await.expect_err("twice");
    assert!(matches!(twice, ProxyError::Twice(name) if name == "a"));
    let proxy = start(&server).await;
    assert!(matches!(proxy.url("x"), Err(ProxyError::Unknown(name)) if name == "x"));
}
