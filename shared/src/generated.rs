//! The generated messages and services, as siblings: their code refers to each other through `super`.
#![allow(clippy::all, clippy::pedantic, missing_docs, unreachable_pub, unused_qualifications)]

/// Messages that all kinds share, and the kinds of version 1.
pub mod generated {
    include!("generated/generated.rs");
}
/// ItemBlockAction.
pub mod v1 {
    include!("generated/v1.rs");
}
/// The item actions and the snapshotter of version 2.
pub mod v2 {
    include!("generated/v2.rs");
}
/// go-plugin's own services.
pub mod plugin {
    include!("generated/plugin.rs");
}
/// The standard health service.
pub mod health {
    include!("generated/grpc.health.v1.rs");
}
