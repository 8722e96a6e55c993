//! The minor releases of Velero that the plugins are proven on.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// One minor release; which patch release stands for it is in its Go module's go.mod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ValueEnum)]
#[allow(missing_docs, reason = "each is its own description")]
pub enum Minor {
    #[value(name = "1.14")]
    V1_14,
    #[value(name = "1.15")]
    V1_15,
    #[value(name = "1.16")]
    V1_16,
    #[value(name = "1.17")]
    V1_17,
    #[value(name = "1.18")]
    V1_18,
}

impl Minor {
    /// Newest first: what most people run is tried first.
    pub const ALL: [Self; 5] = [Self::V1_18, Self::V1_17, Self::V1_16, Self::V1_15, Self::V1_14];

    /// `1.18`.
    pub fn text(self) -> &'static str {
        match self {
            Self::V1_14 => "1.14",
            Self::V1_15 => "1.15",
            Self::V1_16 => "1.16",
            Self::V1_17 => "1.17",
            Self::V1_18 => "1.18",
        }
    }
}

impl fmt::Display for Minor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
