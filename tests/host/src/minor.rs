//! The releases of Velero that can be played, and what a plugin sees of the difference.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use velero_plugin::Kind;

/// A minor release of the server; each stands for its newest patch release.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, ValueEnum,
)]
#[allow(missing_docs, reason = "version numbers")]
pub enum Minor {
    #[value(name = "1.14")]
    V1_14,
    #[value(name = "1.15")]
    V1_15,
    #[value(name = "1.16")]
    V1_16,
    #[value(name = "1.17")]
    V1_17,
    #[default]
    #[value(name = "1.18")]
    V1_18,
}

impl Minor {
    /// Every one, oldest first.
    pub const ALL: [Self; 5] = [Self::V1_14, Self::V1_15, Self::V1_16, Self::V1_17, Self::V1_18];

    /// As in "1.18".
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1_14 => "1.14",
            Self::V1_15 => "1.15",
            Self::V1_16 => "1.16",
            Self::V1_17 => "1.17",
            Self::V1_18 => "1.18",
        }
    }

    /// Whether a server of this release starts with a plugin that lists `kind`.
    pub fn knows(self, kind: Kind) -> bool {
        match kind {
            Kind::ItemBlockAction => self >= Self::V1_15,
            Kind::VolumeSnapshotterV2 => false,
            _ => true,
        }
    }

    /// Whether plugins get the server's own arguments. Older servers give `--log-level L [--features F]`.
    pub(crate) fn passes_server_arguments(self) -> bool {
        self >= Self::V1_15
    }

    /// Whether a line that begins like a Go panic, and every untagged one after it, is an error (go-plugin 1.7).
    pub(crate) fn reads_panics(self) -> bool {
        self >= Self::V1_18
    }

    /// Whether the annotation `velero.io/skip-from-backup` drops an item.
    pub(crate) fn knows_skip_annotation(self) -> bool {
        self >= Self::V1_18
    }
}

impl fmt::Display for Minor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
