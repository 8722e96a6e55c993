//! The binary that Velero starts, and people for `csi-actions doctor`.

fn main() -> std::process::ExitCode {
    csi_actions::plugin().run()
}
