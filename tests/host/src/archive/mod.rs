//! A backup's tarball: where items lie in it, how it is written, read, and written again with newer items.

mod path;
mod reader;
mod writer;

pub(crate) use path::PREFERRED;
pub use path::item_path;
pub use reader::{Archive, ArchiveError, StoredItem};
pub use writer::ArchiveWriter;
pub(crate) use writer::FORMAT;
