//! How the server is set up, from its Deployment: the mode that follows, and what that means on its release.

use std::ffi::OsString;

use serde_json::Value;
use velero_plugin::HostArgs;

use super::facts::Facts;
use super::report::{Finding, Level, Section};
use crate::object::text;
use crate::release::Release;
use crate::settings::{InvalidSetting, Mode, Settings};

/// The setting that says the server's version.
const VERSION: &str = "CSI_ACTIONS_SERVER_VERSION";
/// The label of groups that servers name by default.
const GROUP_LABEL: &str = "velero.io/volume-group";

/// What the Deployment says of the server.
#[derive(Debug, Clone)]
pub(super) struct Server {
    image: String,
    /// By the setting, else by the image's tag.
    version: String,
    has_csi: bool,
    settings: Settings,
    invalid: Vec<InvalidSetting>,
    group_label: Option<String>,
    is_running: bool,
    /// The name of its service account.
    pub(super) account: String,
}

impl Server {
    /// `None` where the Deployment has no container.
    pub(super) fn of(deployment: &Value) -> Option<Self> {
        let pod = deployment.pointer("/spec/template/spec")?;
        let containers = pod.get("containers")?.as_array()?;
        let named = containers.iter().find(|each| text(each, &["name"]) == Some("velero"));
        let container = named.or_else(|| containers.first())?;
        let words = |key: &str| -> Vec<OsString> {
            let words = container[key].as_array().into_iter().flatten();
            words.filter_map(Value::as_str).map(OsString::from).collect()
        };
        // Some write everything into the command.
        let arguments = HostArgs::new([words("command"), words("args")].concat());
        let variables = container["env"].as_array().map(Vec::as_slice).unwrap_or_default();
        let variable = |name: &str| {
            let found = variables.iter().find(|each| text(each, &["name"]) == Some(name))?;
            text(found, &["value"]).map(str::to_owned)
        };
        let (settings, invalid) = Settings::read(&arguments, variable);
        let image = text(container, &["image"]).unwrap_or_default().to_owned();
        let account = text(pod, &["serviceAccountName"]).or_else(|| text(pod, &["serviceAccount"]));
        let available = deployment.pointer("/status/availableReplicas").and_then(Value::as_u64);
        Some(Self {
            version: variable(VERSION).unwrap_or_else(|| tag(&image).to_owned()),
            image,
            has_csi: arguments.has_feature("EnableCSI"),
            group_label: arguments.value("volume-group-snapshot-label-key").map(str::to_owned),
            settings,
            invalid,
            is_running: available.unwrap_or_default() > 0,
            account: account.unwrap_or("default").to_owned(),
        })
    }

    /// How the actions work on it.
    pub(super) fn mode(&self) -> Mode {
        self.settings.mode
    }
}

/// The label that a server names in its backups where they have none; `None` where it knows of no groups.
pub(super) fn group_label(server: Option<&Server>) -> Option<&str> {
    let release = server.and_then(|server| Release::of_version(&server.version));
    let given = server.and_then(|server| server.group_label.as_deref());
    release.is_none_or(Release::knows_groups).then_some(given.unwrap_or(GROUP_LABEL))
}

/// The tag of an image, "" where it has none.
fn tag(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or_default();
    let last = name.rsplit('/').next().unwrap_or_default();
    last.split_once(':').map(|(_, tag)| tag).unwrap_or_default()
}

/// The findings.
pub(super) fn section(facts: &Facts) -> Section {
    let title = "Server";
    let findings = match &facts.server {
        Ok(Some(server)) => findings(server),
        Ok(None) => {
            let what = format!("there is no Deployment velero in namespace {:?}", facts.namespace);
            vec![Finding::new(Level::Unknown, "", what).hint("name the server's namespace by --namespace")]
        }
        Err(error) => vec![Finding::new(Level::Unknown, "", error.as_str())],
    };
    Section { title, findings }
}

fn findings(server: &Server) -> Vec<Finding> {
    let release = Release::of_version(&server.version);
    let mut findings = vec![match release {
        Some(release) => Finding::new(
            Level::Ok,
            "release",
            format!("Velero {}, by {} ({})", release.meaning(), server.version, server.image),
        ),
        None => Finding::new(
            Level::Note,
            "release",
            format!("{} does not tell it; the plugin asks the server's program itself", server.image),
        ),
    }];
    if !server.is_running {
        let what = "no replica of the server is available, so no backup runs";
        findings.push(Finding::new(Level::Failing, "running", what));
    }
    findings.push(mode(server, release));
    findings.extend(
        server.invalid.iter().map(|invalid| Finding::new(Level::Warning, "setting", invalid.to_string())),
    );
    findings
}

fn mode(server: &Server, release: Option<Release>) -> Finding {
    match (server.settings.mode, server.has_csi) {
        (Mode::Standalone, false) => {
            Finding::new(Level::Ok, "mode", "standalone: EnableCSI is off, so csi-actions takes and tracks the snapshots")
        }
        (Mode::Alongside, true) => {
            let what = format!(
                "alongside: EnableCSI is on, so Velero's own actions take the snapshots; csi-actions takes those that a \
                 volume policy leaves to it, and sees to their deletion{}",
                match release {
                    Some(release) if !release.names_by_restore() => "",
                    _ => " and waits for them at restore",
                }
            );
            let hint = match release {
                Some(Release::From1_18_1) | None => {
                    "to have csi-actions take all of them, take EnableCSI out of the server's --features; to have it take some, \
                     leave these to it by a volume policy with the action custom and its provider"
                }
                Some(_) => {
                    "to have csi-actions take all of them, take EnableCSI out of the server's --features; to have it take some, \
                     leave these to it by a volume policy with the action skip and its provider"
                }
            };
            Finding::new(Level::Note, "mode", what).hint(hint)
        }
        (Mode::Standalone, true) => Finding::new(
            Level::Warning,
            "mode",
            "CSI_ACTIONS_MODE is standalone although EnableCSI is on: Velero's own actions take snapshots too",
        )
        .hint("take EnableCSI out of the server's --features, or take the setting away"),
        (Mode::Alongside, false) => Finding::new(
            Level::Failing,
            "mode",
            "CSI_ACTIONS_MODE is alongside although EnableCSI is off: nobody takes snapshots of CSI volumes",
        )
        .hint("take the setting away"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;
    use serde_json::json;

    fn deployment(image: &str, args: Value, env: Value) -> Value {
        json!({"spec": {"template": {"spec": {"serviceAccountName": "velero-server", "containers": [
            {"name": "sidecar", "image": "x"},
            {"name": "velero", "image": image, "command": ["/velero"], "args": args, "env": env}]}}},
            "status": {"availableReplicas": 1}})
    }

    fn found(image: &str, args: Value, env: Value) -> Vec<(Level, String)> {
        let server = Server::of(&deployment(image, args, env)).unwrap();
        findings(&server).into_iter().map(|found| (found.level, found.text)).collect()
    }

    #[test]
    fn the_mode_and_release_follow_from_the_deployment() {
        let found_there = found("velero/velero:v1.18.3", json!(["server"]), json!([]));
        assert_eq!(found_there.iter().map(|(level, _)| *level).collect::<Vec<_>>(), [Level::Ok, Level::Ok]);
        assert!(found_there[0].1.contains("1.18.1 or newer"), "{found_there:?}");
        let alongside = found("velero/velero:v1.15.2", json!(["server", "--features=EnableCSI"]), json!([]));
        assert_eq!(alongside[1].0, Level::Note);
        assert!(!alongside[1].1.contains("at restore"), "{alongside:?}");
        let untold = found("velero@sha256:abc", json!(["server"]), json!([]));
        assert_eq!(untold[0].0, Level::Note);
        let set = json!([{"name": "CSI_ACTIONS_SERVER_VERSION", "value": "1.16"}]);
        assert!(found("velero@sha256:abc", json!(["server"]), set)[0].1.contains("Velero 1.16,"));
    }

    #[test]
    fn groups_are_made_by_the_label_that_the_server_names() {
        for (image, args, label) in [
            ("v:v1.18.3", json!(["server"]), Some("velero.io/volume-group")),
            ("v:v1.17.0", json!(["server", "--volume-group-snapshot-label-key=group"]), Some("group")),
            ("v:v1.16.2", json!(["server"]), None),
            ("v:main", json!(["server"]), Some("velero.io/volume-group")),
        ] {
            let server = Server::of(&deployment(image, args, json!([])));
            assert_eq!(group_label(server.as_ref()), label, "{image}");
        }
        assert_eq!(group_label(None), Some("velero.io/volume-group"), "nothing speaks against it");
    }

    #[test]
    fn i58_a_mode_that_contradicts_the_servers_feature_is_found() {
        let mode = |value: &str| json!([{"name": "CSI_ACTIONS_MODE", "value": value}]);
        let nobody = found("v:v1.18.3", json!(["server"]), mode("alongside"));
        assert_eq!(nobody[1].0, Level::Failing);
        let both = found("v:v1.18.3", json!(["server", "--features", "EnableCSI"]), mode("standalone"));
        assert_eq!(both[1].0, Level::Warning);
        let senseless = found("v:v1.18.3", json!(["server"]), mode("both"));
        assert_eq!(senseless[2].0, Level::Warning);
    }

    #[test]
    fn a_server_that_is_down_fails_every_backup() {
        let mut down = deployment("v:v1.18.3", json!(["server"]), json!([]));
        down["status"] = json!({});
        let server = Server::of(&down).unwrap();
        assert_eq!(server.account, "velero-server");
        assert!(findings(&server).iter().any(|found| found.level == Level::Failing));
        assert!(Server::of(&json!({"spec": {}})).is_none());
    }

    #[test]
    fn the_tag_is_told_from_a_port_and_a_digest() {
        for (image, expected) in [
            ("velero/velero:v1.18.3", "v1.18.3"),
            ("registry:5000/velero:v1.16.2@sha256:ab", "v1.16.2"),
            ("registry:5000/velero", ""),
            ("", ""),
        ] {
            assert_eq!(tag(image), expected, "{image}");
        }
    }
}
