//! Actions on the items of a backup that is being deleted, one file per resource.

pub mod volumesnapshotcontent;

mod drivers;
mod going;
mod live;
mod release;
mod target;
mod way;

pub use drivers::Patience;
