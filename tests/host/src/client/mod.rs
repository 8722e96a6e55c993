//! Typed clients of every kind of plugin, with the conversions that the server's own clients make.
//!
//! Each client calls through a session's process and so is served by a new one when the old one died; the call that
//! saw the death fails and is not repeated.

pub mod backup_item_action;
pub mod delete_item_action;
pub mod item_block_action;
pub mod object_store;
pub mod progress;
pub mod restore_item_action;
pub mod volume_snapshotter;

mod error;
mod plugin;
mod resource;

pub use backup_item_action::BackupItemAction;
pub use delete_item_action::DeleteItemAction;
pub use error::{CallError, RpcError};
pub use item_block_action::ItemBlockAction;
pub use object_store::ObjectStore;
pub use plugin::Plugin;
pub use progress::Progress;
pub(crate) use resource::group_resource;
pub use resource::{ResourceIdentifier, Selection};
pub use restore_item_action::RestoreItemAction;
pub use volume_snapshotter::VolumeSnapshotter;
