//! Actions on the items of a backup that is being deleted, one file per resource.

pub mod volumesnapshotcontent;

mod going;
mod live;
mod target;
