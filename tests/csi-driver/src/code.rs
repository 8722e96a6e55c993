//! gRPC status codes under their names on the wire of the control API, e.g. `UNAVAILABLE`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A status code that reads and writes itself as its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(pub tonic::Code);

/// The names, at the positions of their numbers.
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

impl Code {
    /// Its name.
    pub fn name(self) -> &'static str {
        usize::try_from(i32::from(self.0)).ok().and_then(|number| NAMES.get(number)).unwrap_or(&"UNKNOWN")
    }

    /// The code with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let number = NAMES.iter().position(|known| *known == name)?;
        i32::try_from(number).ok().map(|number| Self(tonic::Code::from_i32(number)))
    }
}

impl From<tonic::Code> for Code {
    fn from(code: tonic::Code) -> Self {
        Self(code)
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::from_name(&name).ok_or_else(|| {
            de::Error::custom(format!("{name:?} is no gRPC code, use a name like UNAVAILABLE"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_name() {
        for (number, name) in (0..).zip(NAMES) {
            let code = Code(tonic::Code::from_i32(number));
            assert_eq!((code.name(), Code::from_name(name)), (name, Some(code)));
        }
        assert_eq!(Code(tonic::Code::Unauthenticated).name(), "UNAUTHENTICATED");
        assert_eq!(Code::from_name("Unavailable"), None);
    }
}
