//! Actions on the items of a backup that is being deleted, one file per resource.

pub mod volumesnapshot;
pub mod volumesnapshotcontent;

mod drivers;
mod error;
mod going;
mod group;
mod groups;
mod hidden;
mod left_groups;
mod leftovers;
mod live;
mod passage;
mod release;
mod target;
mod way;

pub use drivers::Patience;
