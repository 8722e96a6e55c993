//! What a server knows of its plugins: the binaries of a folder, and what each lists.

mod list;
mod scan;
mod validate;

pub use list::{ListError, list};
pub use scan::scan;
pub use validate::{Entry, Note, Refusal, Registry};
