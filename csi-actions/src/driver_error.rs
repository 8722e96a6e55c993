//! What an error text of a CSI driver says about trying again.

/// Whether asking the driver again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The sidecar tries again, and it may work: throttling, time-outs, conflicts, and all that is not known.
    Passing,
    /// The driver will say the same each time: a limit reached, a request that it can't do.
    Permanent,
}

/// gRPC codes after which the same request fails the same way.
const PERMANENT: [&str; 7] = [
    "InvalidArgument",
    "NotFound",
    "Unimplemented",
    "PermissionDenied",
    "Unauthenticated",
    "FailedPrecondition",
    "OutOfRange",
];

/// Words that mark trouble that passes, whatever the code says.
const PASSING: [&str; 10] = [
    "throttl",
    "rate limit",
    "ratelimit",
    "rate exceeded",
    "rateexceeded",
    "toomanyrequests",
    "too many requests",
    "object has been modified",
    "conflict",
    "try again later",
];

/// The class of an error text, by its words and its outermost gRPC code (`rpc error: code = NotFound desc = …`).
pub fn classify(message: &str) -> Class {
    let lower = message.to_ascii_lowercase();
    if PASSING.iter().any(|word| lower.contains(word)) || has_word(message, "429") {
        return Class::Passing;
    }
    let code = message.split_once("code = ").map(|(_, rest)| leading_word(rest));
    if code.is_some_and(|code| PERMANENT.contains(&code)) { Class::Permanent } else { Class::Passing }
}

/// Whether the storage was asked for a snapshot and has none: the sidecar's words for an empty list, or the driver's code.
pub fn is_absent(message: &str) -> bool {
    message.contains("can not find snapshot for snapshotID") || message.contains("code = NotFound")
}

/// The text cut to what fits one line of `velero backup describe`.
pub fn shortened(message: &str) -> String {
    const LONGEST: usize = 240;
    let line = message.trim().replace(['\n', '\r'], " ");
    if line.len() <= LONGEST {
        return line;
    }
    format!("{}…", &line[..line.floor_char_boundary(LONGEST)])
}

fn leading_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    &text[..end]
}

/// Whether `word` stands in `text` by itself, not inside an id such as `vol-0429ab`.
fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_pass_are_told_from_those_that_stay() {
        use Class::{Passing, Permanent};
        let table = [
            ("rpc error: code = Internal desc = api error SnapshotCreationPerVolumeRateExceeded: x", Passing),
            ("rpc error: code = ResourceExhausted desc = busy", Passing),
            ("rpc error: code = DeadlineExceeded desc = context deadline exceeded", Passing),
            ("rpc error: code = FailedPrecondition desc = Throttling: Rate exceeded", Passing),
            ("rpc error: code = InvalidArgument desc = status 429", Passing),
            ("rpc error: code = NotFound desc = vol-0429ab is missing", Permanent),
            ("the object has been modified; please apply your changes to the latest version", Passing),
            ("rpc error: code = FailedPrecondition desc = reaches the configured maximum (3)", Permanent),
            ("failed: \"rpc error: code = Unimplemented desc = no snapshots\"", Permanent),
            ("rpc error: code = Internal desc = caused by: rpc error: code = NotFound desc = x", Passing),
            ("rpc error: code = InvalidArgumentish desc = x", Passing),
            ("cannot generate the operation", Passing),
            ("unspecified driver error", Passing),
            ("", Passing),
        ];
        for (message, class) in table {
            assert_eq!(classify(message), class, "{message:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_at_a_character_and_stays_one_line() {
        let short = shortened(&"ä\n".repeat(300));
        assert!(short.len() < 250 && short.ends_with('…') && !short.contains('\n'), "{short}");
        assert_eq!(shortened(" a\nb "), "a b");
    }
}
