//! Go programs: which module makes what, when it has to be built again, and the build.
//!
//! Each program has a Go module of its own, because they ask for versions that exclude each other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use nix::fcntl::{Flock, FlockArg};
use sha2::{Digest, Sha256};

use super::Cache;
use crate::minor::Minor;
use crate::screen::Screen;

/// One folder with a go.mod and what is made of it.
#[derive(Debug)]
pub struct Module {
    /// The folder that holds the module's.
    root: &'static str,
    folder: &'static str,
    programs: &'static [Program],
    /// The module whose version the programs report, and the variables that hold it.
    version_of: &'static str,
    version_in: &'static [(&'static str, Part)],
    /// A module whose folder of custom resource definitions is kept beside the programs.
    crds_of: Option<&'static str>,
}

/// A program and the Go package that it is made of, as seen from the module's folder.
#[derive(Debug)]
pub struct Program {
    /// The file's name.
    pub name: &'static str,
    /// The package's path, or `.`.
    pub package: &'static str,
}

/// Which part of `v1.36.3` a variable takes.
#[derive(Debug)]
enum Part {
    Whole,
    Major,
    Minor,
}

/// The modules of this crate.
const GO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/go");

const SNAPSHOTTER_CLIENT: &str = "github.com/kubernetes-csi/external-snapshotter/client/v8";

impl Module {
    /// The module in `root/folder`, which requires the module `version_of`.
    pub const fn new(
        root: &'static str,
        folder: &'static str,
        programs: &'static [Program],
        version_of: &'static str,
    ) -> Self {
        Self { root, folder, programs, version_of, version_in: &[], crds_of: None }
    }
}

pub(crate) const KUBERNETES: Module = Module {
    root: GO,
    folder: "kubernetes",
    programs: &[Program { name: "kubernetes", package: "." }],
    version_of: "k8s.io/kubernetes",
    // Without them /version says v0.0.0-master, which clients take for an ancient server.
    version_in: &[
        ("k8s.io/component-base/version.gitVersion", Part::Whole),
        ("k8s.io/component-base/version.gitMajor", Part::Major),
        ("k8s.io/component-base/version.gitMinor", Part::Minor),
    ],
    crds_of: None,
};

pub(crate) const SIDECARS: Module = Module {
    root: GO,
    folder: "sidecars",
    programs: &[
        Program {
            name: "snapshot-controller",
            package: "github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller",
        },
        Program {
            name: "csi-snapshotter",
            package: "github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter",
        },
        Program {
            name: "csi-provisioner",
            package: "github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner",
        },
    ],
    version_of: "github.com/kubernetes-csi/external-snapshotter/v8",
    version_in: &[("main.version", Part::Whole)],
    crds_of: Some(SNAPSHOTTER_CLIENT),
};

/// Velero's plugin for S3 and EBS.
pub const OBJECT_STORE_PLUGIN: Module = Module {
    root: GO,
    folder: "velero-plugin-for-aws",
    programs: &[Program {
        name: "velero-plugin-for-aws",
        package: "github.com/vmware-tanzu/velero-plugin-for-aws/velero-plugin-for-aws",
    }],
    version_of: "github.com/vmware-tanzu/velero-plugin-for-aws",
    version_in: &[],
    crds_of: None,
};

pub(crate) const CSI_SANITY: Module = Module {
    root: GO,
    folder: "csi-sanity",
    programs: &[Program {
        name: "csi-sanity",
        package: "github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity",
    }],
    version_of: "github.com/kubernetes-csi/csi-test/v5",
    version_in: &[],
    crds_of: None,
};

/// The server, client and built-in plugins of `minor`.
pub fn velero(minor: Minor) -> Module {
    Module {
        root: GO,
        folder: match minor {
            Minor::V1_14 => "velero-1.14",
            Minor::V1_15 => "velero-1.15",
            Minor::V1_16 => "velero-1.16",
            Minor::V1_17 => "velero-1.17",
            Minor::V1_18 => "velero-1.18",
        },
        programs: &[Program { name: "velero", package: "github.com/vmware-tanzu/velero/cmd/velero" }],
        version_of: "github.com/vmware-tanzu/velero",
        version_in: &[("github.com/vmware-tanzu/velero/pkg/buildinfo.Version", Part::Whole)],
        crds_of: None,
    }
}

/// What to install when Go is missing; nothing when it is there.
pub fn missing_tool() -> Option<String> {
    let found = Command::new("go").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => None,
        _ => {
            Some("go is missing: install Go 1.26 or newer (https://go.dev/dl) and have it in PATH".to_owned())
        }
    }
}

/// The folder of the module's programs, if they were built from the files as they are now.
///
/// # Errors
/// When the module's files cannot be read.
pub fn built(cache: &Cache, module: &Module) -> Result<Option<PathBuf>> {
    let folder = cache.entry(module.folder, &key(module)?);
    Ok(folder.is_dir().then_some(folder))
}

/// Builds the module unless that was done before; gives the folder of its programs.
///
/// # Errors
/// When a download or the compiler fails; the compiler's words have gone to the terminal by then.
pub fn build(cache: &Cache, module: &Module, screen: &Screen) -> Result<PathBuf> {
    let target = cache.entry(module.folder, &key(module)?);
    if target.is_dir() {
        return Ok(target);
    }
    let parent = cache.root().join("bin");
    fs::create_dir_all(&parent)
        .with_context(|| format!("cannot make the cache folder {}", parent.display()))?;
    let lock_path = parent.join(format!("{}.lock", module.folder));
    let lock =
        fs::File::create(&lock_path).with_context(|| format!("cannot lock {}", lock_path.display()))?;
    let _lock = Flock::lock(lock, FlockArg::LockExclusive)
        .map_err(|(_, errno)| errno)
        .with_context(|| format!("cannot lock {}", lock_path.display()))?;
    if target.is_dir() {
        return Ok(target); // another run built it while this one waited
    }

    let began = Instant::now();
    screen.line(module.folder, "building; the first time takes minutes");
    // Built beside the target and renamed, so that an interrupted build never looks like a finished one.
    let unfinished = tempfile::Builder::new().prefix(module.folder).tempdir_in(&parent)?;
    for program in module.programs {
        compile(module, program, unfinished.path())?;
    }
    if let Some(source) = module.crds_of {
        copy_crds(module, source, &unfinished.path().join("crds"))?;
    }
    fs::rename(unfinished.keep(), &target)
        .with_context(|| format!("cannot move the build to {}", target.display()))?;
    screen.line(module.folder, &format!("built in {} s", began.elapsed().as_secs()));
    Ok(target)
}

fn compile(module: &Module, program: &Program, into: &Path) -> Result<()> {
    let status = go(module)
        .env("CGO_ENABLED", "0")
        .args(["build", "-trimpath", "-ldflags", &linker_flags(module)?, "-o"])
        .arg(into.join(program.name))
        .arg(program.package)
        .status()
        .context("cannot start go")?;
    ensure!(status.success(), "go build of {} in go/{} ended with {status}", program.package, module.folder);
    Ok(())
}

/// Keeps the definitions beside the programs: a later run then needs no Go.
fn copy_crds(module: &Module, source: &str, into: &Path) -> Result<()> {
    let listed =
        go(module).args(["list", "-m", "-f", "{{.Dir}}", source]).output().context("cannot start go")?;
    ensure!(listed.status.success(), "go list of {source} ended with {}", listed.status);
    let folder = PathBuf::from(String::from_utf8(listed.stdout)?.trim()).join("config").join("crd");
    fs::create_dir_all(into)?;
    let mut copied = 0;
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("snapshot.storage.k8s.io_") || name.starts_with("groupsnapshot.storage.k8s.io_") {
            fs::write(into.join(&name), fs::read(&path)?)?;
            copied += 1;
        }
    }
    ensure!(
        copied >= 3,
        "{} holds {copied} custom resource definitions, at least 3 are needed",
        folder.display()
    );
    Ok(())
}

/// `go` in the module's folder, as low priority: a build runs beside someone's work.
fn go(module: &Module) -> Command {
    let mut command = Command::new("nice");
    command
        .args(["-n", "10", "go"])
        .current_dir(sources(module))
        .stdin(Stdio::null())
        // A module file that is not complete is a mistake in the commit, never to be mended here.
        .env("GOFLAGS", "-mod=readonly -buildvcs=false");
    command
}

fn sources(module: &Module) -> PathBuf {
    Path::new(module.root).join(module.folder)
}

fn linker_flags(module: &Module) -> Result<String> {
    let version = required_version(&fs::read_to_string(sources(module).join("go.mod"))?, module.version_of)?;
    let mut flags = "-s -w".to_owned();
    for (variable, part) in module.version_in {
        let value = match part {
            Part::Whole => &version,
            Part::Major => version.trim_start_matches('v').split('.').next().unwrap_or_default(),
            Part::Minor => version.split('.').nth(1).unwrap_or_default(),
        };
        flags.extend([" -X ", variable, "=", value]);
    }
    Ok(flags)
}

/// The version that a go.mod requires of `path`.
fn required_version(go_mod: &str, path: &str) -> Result<String> {
    for line in go_mod.lines() {
        let mut words = line.split_whitespace().filter(|word| *word != "require");
        if words.next() == Some(path)
            && let Some(version) = words.next().filter(|version| version.starts_with('v'))
        {
            return Ok(version.to_owned());
        }
    }
    bail!("go.mod does not require {path}");
}

/// Digest of everything that decides what comes out of a build, except the Go release.
fn key(module: &Module) -> Result<String> {
    let folder = sources(module);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .with_context(|| format!("cannot read the Go module {}", folder.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    let mut digest = Sha256::new();
    for file in files {
        digest.update(file.file_name().unwrap_or_default().as_encoded_bytes());
        digest.update([0]);
        digest.update(fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?);
        digest.update([0]);
    }
    for program in module.programs {
        digest.update(format!("{} {}\n", program.name, program.package));
    }
    digest.update(linker_flags(module)?);
    Ok(super::short(digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_go_mod_requires() {
        let go_mod = "module a\nrequire example.com/x v1.2.3\nrequire (\n\texample.com/y v2.0.1 // indirect\n)\n\
                      replace example.com/z => example.com/z v9.9.9\n";
        for (path, version) in
            [("example.com/x", Some("v1.2.3")), ("example.com/y", Some("v2.0.1")), ("example.com/z", None)]
        {
            assert_eq!(required_version(go_mod, path).ok().as_deref(), version, "{path}");
        }
    }

    #[test]
    fn each_module_is_there_and_its_version_known() {
        let mut modules = vec![KUBERNETES, SIDECARS, OBJECT_STORE_PLUGIN, CSI_SANITY];
        modules.extend(Minor::ALL.map(velero));
        for module in modules {
            let flags = linker_flags(&module).expect(module.folder);
            assert!(flags.starts_with("-s -w"), "{}: {flags}", module.folder);
            assert_eq!(key(&module).expect(module.folder).len(), 16, "{}", module.folder);
        }
    }

    #[test]
    fn each_velero_module_requires_a_release_of_its_minor() {
        for minor in Minor::ALL {
            let go_mod = fs::read_to_string(sources(&velero(minor)).join("go.mod")).expect("go.mod");
            let version = required_version(&go_mod, "github.com/vmware-tanzu/velero").expect("required");
            assert!(version.starts_with(&format!("v{minor}.")), "{minor}: {version}");
        }
    }
}
