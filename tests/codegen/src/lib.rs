//! Generates the checked-in gRPC code of the workspace from its `.proto` files, without `protoc`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// One folder of `.proto` files and the folder that holds the code made from them.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The folder of the `.proto` files, relative to the workspace. Also the include folder.
    pub protos: &'static str,
    /// The folder of the generated `.rs` files, relative to the workspace. Holds nothing else.
    pub output: &'static str,
}

/// Everything that is generated.
pub const TARGETS: &[Target] = &[
    Target { protos: "shared/proto", output: "shared/src/generated" },
    Target { protos: "tests/csi-driver/proto", output: "tests/csi-driver/src/generated" },
];

/// The workspace's folder, from where this crate lies in it.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Generates `target` into `output`, which is created when absent.
///
/// All files of a target are compiled in one invocation: two of Velero's protos share the package `v2`, and
/// two invocations would overwrite each other's `v2.rs`.
///
/// # Errors
///
/// When a `.proto` file does not parse or a folder can't be read or written.
pub fn generate(target: &Target, output: &Path) -> Result<()> {
    let include = workspace().join(target.protos);
    let mut files = Vec::new();
    for entry in fs::read_dir(&include).with_context(|| format!("read {}", include.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    files.sort();
    let descriptors = protox::compile(&files, [&include])?;
    fs::create_dir_all(output).with_context(|| format!("create {}", output.display()))?;
    tonic_prost_build::configure()
        .build_client(true)
        .build_server(true)
        .build_transport(false)
        .client_mod_attribute(".", "#[cfg(feature = \"client\")]")
        .bytes(".")
        .out_dir(output)
        .compile_fds(descriptors)
        .with_context(|| format!("generate from {}", include.display()))
}

/// The names of files in `output` that differ from what [`generate`] writes now, in either direction.
///
/// # Errors
///
/// As [`generate`].
pub fn stale(target: &Target) -> Result<Vec<String>> {
    let fresh = tempfile::tempdir()?;
    generate(target, fresh.path())?;
    let checked_in = workspace().join(target.output);
    let mut names: Vec<String> = file_names(fresh.path())?;
    names.extend(file_names(&checked_in)?);
    names.sort();
    names.dedup();
    names.retain(|name| fs::read(fresh.path().join(name)).ok() != fs::read(checked_in.join(name)).ok());
    Ok(names)
}

fn file_names(folder: &Path) -> Result<Vec<String>> {
    fs::read_dir(folder)
        .with_context(|| format!("read {}", folder.display()))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn generated_code_is_current() {
        for target in super::TARGETS {
            let stale = super::stale(target).expect("generate");
            assert!(stale.is_empty(), "{}: {stale:?} are stale, run `cargo codegen`", target.output);
        }
    }
}
