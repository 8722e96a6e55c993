//! The server's rules, as functions of values.

pub(crate) mod apply;
pub(crate) mod defaults;
pub(crate) mod names;
pub(crate) mod patch;
pub(crate) mod selector;
pub(crate) mod snapshots;
pub(crate) mod update;
