//! `cargo codegen`: rewrites the generated gRPC code in place.

use codegen::{TARGETS, generate, workspace};

fn main() -> anyhow::Result<()> {
    for target in TARGETS {
        if workspace().join(target.protos).is_dir() {
            generate(target, &workspace().join(target.output))?;
        }
    }
    Ok(())
}
