//! What Velero hands to a plugin and what it takes back, as values that can't be filled in wrongly.

mod document;
mod identifier;
mod item;
mod operation;
mod request;
mod selector;

pub use document::{Document, EditError};
pub use identifier::{IdentifierError, ResourceIdentifier};
pub use item::{Item, ItemError};
pub use operation::{OperationId, OperationIdError, Progress};
pub use request::{Backup, BackupPhase, Restore};
pub use selector::{LabelSelector, ResourceSelector, SelectorError};
