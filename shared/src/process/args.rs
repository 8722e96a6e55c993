//! What Velero tells a plugin through its arguments.

use std::ffi::OsString;

use tracing::level_filters::LevelFilter;

/// The arguments that a plugin was started with.
///
/// Up to Velero 1.14 these are exactly `--log-level L` and, where features are on, `--features F`. Since 1.15 they are the
/// server's own, with flags that this build has never heard of. Nothing in here fails: a plugin that refuses a
/// flag keeps the server from starting.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostArgs {
    words: Vec<String>,
}

impl HostArgs {
    /// The arguments of this process.
    pub fn from_env() -> Self {
        Self::new(std::env::args_os().skip(1))
    }

    /// From words without the program's name.
    pub fn new(words: impl IntoIterator<Item = OsString>) -> Self {
        Self { words: words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect() }
    }

    /// The value of `--flag value` or `--flag=value`; the last one holds.
    pub fn value(&self, flag: &str) -> Option<&str> {
        let mut found = None;
        for (index, word) in self.words.iter().enumerate() {
            if word == "--" {
                break;
            }
            let Some(rest) = word.strip_prefix("--").and_then(|word| word.strip_prefix(flag)) else {
                continue;
            };
            if let Some(value) = rest.strip_prefix('=') {
                found = Some(value);
            } else if rest.is_empty() {
                found = self.words.get(index + 1).map(String::as_str).or(found);
            }
        }
        found
    }

    /// Whether a feature of the server is on, such as `EnableCSI`.
    pub fn has_feature(&self, feature: &str) -> bool {
        self.value("features").is_some_and(|features| features.split(',').any(|on| on.trim() == feature))
    }

    /// Whether the arguments have the form that servers before 1.15 give.
    ///
    /// A newer server started with nothing but `--log-level L` looks the same.
    pub fn before_1_15(&self) -> bool {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        matches!(words.as_slice(), ["--log-level", _] | ["--log-level", _, "--features", _])
    }

    /// The level of `--log-level`, in logrus' words; info where it is absent or unknown.
    pub(crate) fn log_level(&self) -> LevelFilter {
        match self.value("log-level").unwrap_or_default().to_ascii_lowercase().as_str() {
            "trace" => LevelFilter::TRACE,
            "debug" => LevelFilter::DEBUG,
            "warn" | "warning" => LevelFilter::WARN,
            "error" | "fatal" | "panic" => LevelFilter::ERROR,
            _ => LevelFilter::INFO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &str) -> HostArgs {
        HostArgs::new(words.split_whitespace().map(OsString::from))
    }

    #[test]
    fn unknown_flags_are_passed_over_and_the_last_level_holds() {
        let table = [
            (
                "--features=EnableCSI --uploader-type=kopia --client-qps 50 --log-level debug --future",
                LevelFilter::DEBUG,
            ),
            ("--log-level=debug --log-level=warning", LevelFilter::WARN),
            ("--restore-only -v=4 --log-level trace positional", LevelFilter::TRACE),
            ("--log-level", LevelFilter::INFO),
            ("--log-level=loud", LevelFilter::INFO),
            ("--log-levels=debug --log-level-x debug", LevelFilter::INFO),
            ("-- --log-level debug", LevelFilter::INFO),
            ("--log-level=panic", LevelFilter::ERROR),
            ("", LevelFilter::INFO),
        ];
        for (words, level) in table {
            assert_eq!(args(words).log_level(), level, "{words:?}");
        }
    }

    #[test]
    fn features_are_found_in_both_forms() {
        assert!(args("--features=EnableCSI,Other").has_feature("EnableCSI"));
        assert!(args("--features Other,EnableCSI --log-level info").has_feature("EnableCSI"));
        assert!(!args("--features= --log-level info").has_feature("EnableCSI"));
        assert!(!args("--features=EnableCSIx").has_feature("EnableCSI"));
    }

    #[test]
    fn old_servers_are_told_by_the_exact_form() {
        assert!(args("--log-level info").before_1_15());
        assert!(args("--log-level info --features EnableCSI").before_1_15());
        assert!(!args("--log-level=info").before_1_15());
        assert!(!args("--features EnableCSI --log-level info").before_1_15());
        assert!(!args("").before_1_15());
    }
}
