//! A plugin's log, read with the server's rules.

mod level;
mod line;
mod reader;

pub use level::{Level, UnknownLevel};
pub use line::{Fault, LogLine, Unread};
pub use reader::{BUFFER, LogReader};
