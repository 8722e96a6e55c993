//! The binary that Velero starts.

fn main() -> std::process::ExitCode {
    csi_actions::plugin().run()
}
