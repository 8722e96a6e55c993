//! Scripts that lead into a running stack: kubectl, velero and any other command, inside its sandbox.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use crate::inside::Job;
use crate::sandbox::Sandbox;
use crate::wait::{Look, until};

pub(crate) fn folder(job_folder: &Path) -> PathBuf {
    job_folder.join("bin")
}

/// Writes the scripts for the job whose sandbox was started as process `pid`.
pub(crate) async fn write(job: &Job, pid: u32) -> Result<()> {
    let folder = folder(&job.folder);
    fs::create_dir_all(&folder)?;
    let enter = match job.sandbox {
        Sandbox::Loopback => String::new(),
        Sandbox::Namespaces { .. } => job.sandbox.enter(first_process(pid).await?),
    };
    let kubeconfig = job.folder.join("stack-1").join("kubeconfig");
    let kubernetes = job.programs.kubernetes.display();
    let velero = job.programs.velero.display();
    for (name, command) in [
        ("kubectl", format!("{kubernetes} kubectl \"$@\"")),
        ("velero", format!("{velero} \"$@\"")),
        ("enter", "\"${@:-sh}\"".to_owned()),
    ] {
        let file = folder.join(name);
        let text =
            format!("#!/bin/sh\nexport KUBECONFIG='{}'\nexec {enter} {command}\n", kubeconfig.display());
        fs::write(&file, text)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// `unshare` stays outside; its child is the first process of the sandbox.
async fn first_process(unshare: u32) -> Result<u32> {
    until("the sandbox's first process", Duration::from_secs(10), || async {
        let children =
            fs::read_to_string(format!("/proc/{unshare}/task/{unshare}/children")).unwrap_or_default();
        Ok(match children.split_whitespace().next().and_then(|child| child.parse().ok()) {
            Some(child) => Look::Found(child),
            None => Look::NotYet("it has no child".to_owned()),
        })
    })
    .await
}
