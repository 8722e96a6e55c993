//! csi-actions killed, refused and cut off at every request that it makes, one at a time.
//!
//! A dry run of a flow notes the requests of the plugin's process. Then, for each of them and for each fault, a fresh
//! cluster with a fresh storage runs the flow again with that fault at that request; the host does what Velero does next;
//! and at the end no snapshot in the storage is lost, leaked, or another's. The process is a real one each time: what
//! dies with it must really be gone, and what it logs is read as a server reads it.
//!
//! | file | holds |
//! |---|---|
//! | `fault` | the faults, and which requests each makes sense for |
//! | `enumerate` | the dry runs and the runs of all cases, side by side |
//! | `world`, `plugin` | cluster, storage and host of one case, and the process that can be killed |
//! | `foreign` | snapshots that are not the backup's, and that nobody touched them |
//! | `group` | claims that are cut at one moment |
//! | `restoring` | a restore as Velero carries it out |
//! | `backups`, `groups`, `given_up`, `deletions`, `restores` | the flows, and what must hold after each |

#![allow(clippy::unwrap_used, reason = "a lock that another case's panic spoiled fails this one too")]

mod backups;
mod deletions;
mod enumerate;
mod fault;
mod foreign;
mod given_up;
mod group;
mod groups;
mod plugin;
mod restores;
mod restoring;
mod world;
