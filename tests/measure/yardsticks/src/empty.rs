//! The floor: a program that is started, writes a line in the form of a handshake, and waits to be ended.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(b"1|2|unix|/nowhere|grpc|\n")?;
    loop {
        std::thread::park();
    }
}
