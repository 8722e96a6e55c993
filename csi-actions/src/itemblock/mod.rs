//! Actions that say which items belong together in a backup, one file per resource.

pub mod persistentvolumeclaim;
