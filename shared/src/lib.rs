//! The plugin side of Velero's plugin protocol.
