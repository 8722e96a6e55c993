//! csi-actions as it is shipped, built with these tests, so that they have its process to kill.

fn main() -> std::process::ExitCode {
    csi_actions::plugin().run()
}
