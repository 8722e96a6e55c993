//! What Go's encoders do to values on their way, where a plugin or a stored file shows it.

pub mod duration;
pub mod json;
pub mod time;
