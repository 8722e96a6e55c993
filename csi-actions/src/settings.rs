//! What an operator can set, by environment variables of the server's container.

use std::time::Duration;

use velero_plugin::HostArgs;
use velero_plugin::duration;

/// How long a claim waits for its snapshot where nothing else is said.
const RESTORE_WAIT: Duration = Duration::from_mins(5);

/// How the actions share the work with Velero's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Velero's feature `EnableCSI` is off, so its own actions are skipped and ours do everything.
    Standalone,
    /// The feature is on: Velero's own actions take the snapshots and track them. Ours take those that a volume policy leaves to
    /// this plugin, and see to deletion, and to what Velero's leave out.
    Alongside,
}

/// What to answer when no driver is there to delete a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbsentDriver {
    /// An error: the snapshot stays in the storage, and someone should know.
    Error,
    /// A warning, so that a server that keeps a backup whose deletion failed lets go of it.
    Warn,
}

/// By which label an archived content is known to belong to its backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveLabel {
    /// Velero's: its own delete action deletes the snapshot too, also on a server without this plugin.
    Velero,
    /// Ours: Velero's own delete action takes the content for a stranger's, so it doesn't cost its time; a server
    /// without this plugin can't delete the snapshot.
    Own,
}

/// On which objects the operations of a backup are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationOn {
    /// The contents: what becomes ready is what has the operation.
    Contents,
    /// The snapshots, as with Velero's own actions: the server counts them in `status.csiVolumeSnapshotsCompleted`.
    Snapshots,
}

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// `CSI_ACTIONS_MODE`: `standalone` or `alongside`; found from the server's `--features` where it is not set.
    pub mode: Mode,
    /// `CSI_ACTIONS_KEEP_FAILED`: `true` leaves a snapshot whose operation failed or timed out as it is.
    pub keep_failed: bool,
    /// `CSI_ACTIONS_ABSENT_DRIVER`: `error` or `warn`.
    pub absent_driver: AbsentDriver,
    /// `CSI_ACTIONS_ARCHIVE_LABEL`: `velero` or `own`.
    pub archive_label: ArchiveLabel,
    /// `CSI_ACTIONS_RESTORE_WAIT`: how long a restored claim waits for its snapshot, as in `5m` (the default), and never
    /// longer than the server's `--resource-timeout`.
    pub restore_wait: Duration,
    /// `CSI_ACTIONS_OPERATION_ON`: `volumesnapshotcontents` or `volumesnapshots`. It may change while a backup runs: an
    /// operation is polled by the name of the action that started it.
    pub operation_on: OperationOn,
    /// `CSI_ACTIONS_EVENTS`: `false` writes no Events on the objects that a user looks at.
    pub events: bool,
}

/// A setting with a value that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}={value:?} is not {allowed}; using {used}")]
pub struct InvalidSetting {
    variable: &'static str,
    value: String,
    allowed: String,
    used: String,
}

impl Settings {
    /// Of this process. A senseless value is logged and does not stop the server.
    pub fn of_process(arguments: &HostArgs) -> Self {
        let (settings, invalid) = Self::read(arguments, |name| std::env::var(name).ok());
        for invalid in invalid {
            tracing::warn!("{invalid}");
        }
        settings
    }

    /// Reads the settings by `variable`, and tells which of them mean nothing.
    pub fn read(
        arguments: &HostArgs,
        variable: impl Fn(&str) -> Option<String>,
    ) -> (Self, Vec<InvalidSetting>) {
        let mut invalid = Vec::new();
        let found = if arguments.has_feature("EnableCSI") { Mode::Alongside } else { Mode::Standalone };
        let settings = Self {
            mode: choice(
                "CSI_ACTIONS_MODE",
                &variable,
                &[("standalone", Mode::Standalone), ("alongside", Mode::Alongside)],
                found,
                &mut invalid,
            ),
            keep_failed: choice(
                "CSI_ACTIONS_KEEP_FAILED",
                &variable,
                &[("true", true), ("false", false)],
                false,
                &mut invalid,
            ),
            absent_driver: choice(
                "CSI_ACTIONS_ABSENT_DRIVER",
                &variable,
                &[("error", AbsentDriver::Error), ("warn", AbsentDriver::Warn)],
                AbsentDriver::Error,
                &mut invalid,
            ),
            archive_label: choice(
                "CSI_ACTIONS_ARCHIVE_LABEL",
                &variable,
                &[("velero", ArchiveLabel::Velero), ("own", ArchiveLabel::Own)],
                ArchiveLabel::Velero,
                &mut invalid,
            ),
            restore_wait: restore_wait(arguments, &variable, &mut invalid),
            operation_on: choice(
                "CSI_ACTIONS_OPERATION_ON",
                &variable,
                &[
                    ("volumesnapshotcontents", OperationOn::Contents),
                    ("volumesnapshots", OperationOn::Snapshots),
                ],
                OperationOn::Contents,
                &mut invalid,
            ),
            events: choice(
                "CSI_ACTIONS_EVENTS",
                &variable,
                &[("true", true), ("false", false)],
                true,
                &mut invalid,
            ),
        };
        (settings, invalid)
    }
}

impl Mode {
    /// What it means for a backup, for the log.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Standalone => "takes and tracks the snapshots (EnableCSI is off)",
            Self::Alongside => "takes the snapshots that a volume policy leaves to it (EnableCSI is on)",
        }
    }
}

fn restore_wait(
    arguments: &HostArgs,
    variable: impl Fn(&str) -> Option<String>,
    invalid: &mut Vec<InvalidSetting>,
) -> Duration {
    const NAME: &str = "CSI_ACTIONS_RESTORE_WAIT";
    let of_server = arguments.value("resource-timeout").and_then(duration::parse);
    let most = of_server.filter(|timeout| !timeout.is_zero()).unwrap_or(Duration::MAX);
    let Some(value) = variable(NAME).filter(|value| !value.trim().is_empty()) else {
        return RESTORE_WAIT.min(most);
    };
    if let Some(wait) = duration::parse(value.trim()).filter(|wait| !wait.is_zero()) {
        return wait.min(most);
    }
    let (allowed, used) = ("a duration such as 90s or 5m".to_owned(), "5m".to_owned());
    invalid.push(InvalidSetting { variable: NAME, value, allowed, used });
    RESTORE_WAIT.min(most)
}

fn choice<T: Copy + PartialEq>(
    name: &'static str,
    variable: impl Fn(&str) -> Option<String>,
    allowed: &[(&str, T)],
    default: T,
    invalid: &mut Vec<InvalidSetting>,
) -> T {
    let Some(value) = variable(name).filter(|value| !value.trim().is_empty()) else { return default };
    if let Some((_, chosen)) = allowed.iter().find(|(word, _)| value.trim().eq_ignore_ascii_case(word)) {
        return *chosen;
    }
    let words: Vec<&str> = allowed.iter().map(|(word, _)| *word).collect();
    let used = allowed.iter().find(|(_, each)| *each == default).map_or("the default", |(word, _)| word);
    let allowed = format!("one of {}", words.join(", "));
    invalid.push(InvalidSetting { variable: name, value, allowed, used: used.to_owned() });
    default
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str, variables: &[(&str, &str)]) -> (Settings, Vec<InvalidSetting>) {
        let arguments = HostArgs::new(line.split(' ').map(Into::into));
        let get = |name: &str| {
            variables.iter().find(|(each, _)| *each == name).map(|(_, value)| (*value).to_owned())
        };
        Settings::read(&arguments, get)
    }

    #[test]
    fn the_mode_follows_the_servers_feature_unless_it_is_set() {
        assert_eq!(read("--log-level info", &[]).0.mode, Mode::Standalone);
        assert_eq!(read("--features=EnableCSI", &[]).0.mode, Mode::Alongside);
        assert_eq!(
            read("--features=EnableCSI", &[("CSI_ACTIONS_MODE", "standalone")]).0.mode,
            Mode::Standalone
        );
        assert_eq!(read("", &[("CSI_ACTIONS_MODE", " Alongside ")]).0.mode, Mode::Alongside);
    }

    #[test]
    fn a_senseless_value_is_told_and_the_default_holds() {
        let (settings, invalid) = read("", &[("CSI_ACTIONS_MODE", "both"), ("CSI_ACTIONS_KEEP_FAILED", "")]);
        assert_eq!((settings.mode, settings.keep_failed), (Mode::Standalone, false));
        assert_eq!(invalid.len(), 1);
        assert!(invalid[0].to_string().contains("standalone, alongside"), "{}", invalid[0]);
    }

    #[test]
    fn archives_carry_velero_s_label_unless_told_otherwise() {
        let label = |value| read("", &[("CSI_ACTIONS_ARCHIVE_LABEL", value)]).0.archive_label;
        assert_eq!((label(""), label("own")), (ArchiveLabel::Velero, ArchiveLabel::Own));
        assert_eq!((label("velero"), label("mine")), (ArchiveLabel::Velero, ArchiveLabel::Velero));
    }

    #[test]
    fn operations_are_on_contents_and_events_are_written_unless_it_is_set_otherwise() {
        let (settings, _) = read("", &[]);
        assert_eq!((settings.operation_on, settings.events), (OperationOn::Contents, true));
        let set = [("CSI_ACTIONS_OPERATION_ON", "volumesnapshots"), ("CSI_ACTIONS_EVENTS", "false")];
        let (settings, invalid) = read("", &set);
        assert_eq!((settings.operation_on, settings.events), (OperationOn::Snapshots, false));
        assert!(invalid.is_empty());
    }

    #[test]
    fn a_claim_waits_as_long_as_is_set_and_the_server_allows() {
        let wait = |line, value| read(line, &[("CSI_ACTIONS_RESTORE_WAIT", value)]).0.restore_wait.as_secs();
        assert_eq!(wait("", ""), 300);
        assert_eq!(wait("", "90s"), 90);
        assert_eq!(wait("", "1h"), 3600);
        assert_eq!(wait("--resource-timeout=2m", ""), 120);
        assert_eq!(wait("--resource-timeout=2m", "1h"), 120);
        for senseless in ["soon", "0s", "-5m"] {
            let (settings, invalid) = read("", &[("CSI_ACTIONS_RESTORE_WAIT", senseless)]);
            assert_eq!((settings.restore_wait.as_secs(), invalid.len()), (300, 1), "{senseless}");
        }
    }
}
