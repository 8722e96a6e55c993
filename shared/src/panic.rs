//! What is known of a panic: the hook that logs it and the place that a call's status tells.

use std::any::Any;
use std::cell::RefCell;

thread_local! {
    static LAST: RefCell<Option<(String, u32)>> = const { RefCell::new(None) };
}

/// Logs each panic as one line and remembers its place. Rust's own text would be invisible: Velero logs plain text
/// at debug level.
pub(crate) fn install_hook() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|location| (location.file().to_owned(), location.line()));
        let shown = place.as_ref().map(|(file, line)| format!("{file}:{line}")).unwrap_or_default();
        LAST.with(|last| last.replace(place));
        // The call fails anyway, so the line adds nothing to what the user's backup or restore becomes.
        tracing::error!(fails_backup = true, place = shown, "plugin panicked: {}", text(info.payload()));
    }));
}

/// A panic that was caught.
#[derive(Debug)]
pub(crate) struct Panic {
    pub(crate) text: String,
    /// Where it was raised; "" where no hook saw it.
    pub(crate) file: String,
    pub(crate) line: u32,
}

impl Panic {
    /// From what was caught, on the thread that caught it.
    pub(crate) fn caught(payload: &(dyn Any + Send)) -> Self {
        let (file, line) = LAST.with(RefCell::take).unwrap_or_default();
        Self { text: text(payload).to_owned(), file, line }
    }
}

/// A panic's text.
fn text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no text)")
}
