//! A kubeconfig that leads through the proxy, with the user of the one that leads to the API server.

use kube::config::{AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};

/// The name of the cluster, the user and the context in it.
const NAME: &str = "fault-proxy";

/// A kubeconfig for the proxy at `server`, an address like `http://127.0.0.1:1234`.
///
/// `authority` is the certificate authority as PEM for an https address. The user is that of the current context
/// of `source`, as far as the proxy can pass it on: not a client certificate nor what a program gives, the proxy shows
/// its own then.
pub fn through(server: &str, authority: Option<&str>, source: Option<&Kubeconfig>) -> Kubeconfig {
    let context = source.and_then(current_context);
    let user = source.zip(context).and_then(|(source, context)| {
        let user = context.user.as_ref()?;
        source.auth_infos.iter().find(|named| named.name == *user)?.auth_info.clone()
    });
    let user = user.map(|user| AuthInfo {
        client_certificate: None,
        client_certificate_data: None,
        client_key: None,
        client_key_data: None,
        exec: None,
        auth_provider: None,
        ..user
    });
    Kubeconfig {
        kind: Some("Config".to_owned()),
        api_version: Some("v1".to_owned()),
        current_context: Some(NAME.to_owned()),
        clusters: vec![NamedCluster {
            name: NAME.to_owned(),
            cluster: Some(Cluster {
                server: Some(server.to_owned()),
                certificate_authority_data: authority.map(base64),
                ..Cluster::default()
            }),
            ..NamedCluster::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: NAME.to_owned(),
            auth_info: Some(user.unwrap_or_default()),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: NAME.to_owned(),
            context: Some(Context {
                cluster: NAME.to_owned(),
                user: Some(NAME.to_owned()),
                namespace: context.and_then(|context| context.namespace.clone()),
                ..Context::default()
            }),
            ..NamedContext::default()
        }],
        ..Kubeconfig::default()
    }
}

fn current_context(kubeconfig: &Kubeconfig) -> Option<&Context> {
    let current = kubeconfig.current_context.as_ref()?;
    kubeconfig.contexts.iter().find(|named| named.name == *current)?.context.as_ref()
}

fn base64(pem: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(pem)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn source() -> Kubeconfig {
        let json = json!({
            "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": "https://real:6443"}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "velero"}}],
            "users": [
                {"name": "other", "user": {"token": "wrong"}},
                {"name": "u", "user": {"token": "secret", "client-certificate-data": "x", "client-key-data": "y",
                    "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}}},
            ],
        });
        Kubeconfig::from_yaml(&json.to_string()).expect("kubeconfig")
    }

    #[test]
    fn user_and_namespace_are_kept_and_the_server_is_the_proxy() {
        let written = through("https://127.0.0.1:1", Some("pem"), Some(&source()));
        let json: Value = serde_json::to_value(&written).expect("json");
        let cluster = json!({"server": "https://127.0.0.1:1", "certificate-authority-data": "cGVt"});
        assert_eq!(json["clusters"][0]["cluster"], cluster);
        assert_eq!(json["contexts"][0]["context"]["namespace"], "velero");
        let user = &json["users"][0]["user"];
        assert_eq!(
            (&user["token"], &user["client-key-data"], &user["exec"]),
            (&json!("secret"), &Value::Null, &Value::Null)
        );
    }

    #[test]
    fn without_a_source_there_is_no_user() {
        let written = through("http://127.0.0.1:1", None, None);
        let read =
            Kubeconfig::from_yaml(&serde_json::to_string(&written).expect("json")).expect("kubeconfig");
        assert_eq!(read.current_context.as_deref(), Some("fault-proxy"));
        assert!(read.auth_infos[0].auth_info.as_ref().is_none_or(|user| user.token.is_none()));
    }
}
