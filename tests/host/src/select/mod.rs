//! Which items are meant: globs over names, label selectors, and what an action asked for.

mod globs;
mod labels;
mod resolved;

pub use globs::IncludesExcludes;
pub use labels::{LabelError, Labels};
pub use resolved::ResolvedSelection;
pub(crate) use resolved::resolved;
