//! What the server's own command line, which every plugin gets, tells.
//!
//! Velero 1.14 hands on `--log-level L [--features F]` in words of their own, 1.15 and later all its arguments as they
//! are.

use std::path::PathBuf;

/// The arguments that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    /// `--features`: the feature flags that are on.
    pub features: Vec<String>,
    /// `--kubeconfig`: where it differs from the environment's.
    pub kubeconfig: Option<PathBuf>,
    /// `--kubecontext`: the context in it.
    pub context: Option<String>,
}

impl Arguments {
    /// Of this process.
    pub fn of_process() -> Self {
        Self::read(std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()))
    }

    /// Reads a command line. Nothing in it is an error: it is the server's, and what is not known here is not for us.
    pub fn read(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut read = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let Some(flag) = argument.strip_prefix("--") else { continue };
            let (flag, value) = match flag.split_once('=') {
                Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
                None => (flag.to_owned(), None),
            };
            if !matches!(flag.as_str(), "features" | "kubeconfig" | "kubecontext") {
                continue;
            }
            let Some(value) = value.or_else(|| arguments.next()).filter(|value| !value.is_empty()) else {
                continue;
            };
            match flag.as_str() {
                "features" => {
                    read.features.extend(
                        value.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned),
                    );
                }
                "kubeconfig" => read.kubeconfig = Some(value.into()),
                _ => read.context = Some(value),
            }
        }
        read
    }

    /// Whether Velero runs its own CSI actions.
    pub fn enable_csi(&self) -> bool {
        self.features.iter().any(|feature| feature == "EnableCSI")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Arguments {
        Arguments::read(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn the_feature_is_found_in_either_form() {
        for line in [
            "--log-level info --features EnableCSI",
            "--features=EnableCSI",
            "--uploader-type=kopia --features=A,EnableCSI --log-level=debug",
            "--features A --features EnableCSI",
        ] {
            assert!(read(line).enable_csi(), "{line}");
        }
        for line in [
            "",
            "--log-level info",
            "--features=",
            "--features",
            "--features=EnableCSIx",
            "features=EnableCSI",
        ] {
            assert!(!read(line).enable_csi(), "{line}");
        }
    }

    #[test]
    fn the_kubeconfig_of_the_server_is_taken() {
        let arguments = read("--kubeconfig /a/b --kubecontext=c");
        assert_eq!((arguments.kubeconfig, arguments.context), (Some("/a/b".into()), Some("c".to_owned())));
    }
}
