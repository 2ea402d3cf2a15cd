//! A type per kind of id, so that ids cannot be confused.

mod map;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

pub use self::map::{IdHasher, IdMap};

/// The error for a malformed id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a well-formed {0} id")]
pub struct InvalidId(pub &'static str);

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID from an id generator or a store.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// Returns the UUID.
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            /// Accepts the hyphenated form only (36 characters, either case).
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                if text.len() != 36 {
                    return Err(InvalidId($what));
                }
                Uuid::try_parse(text).map(Self).map_err(|_| InvalidId($what))
            }
        }
    };
}

uuid_id!(
    /// Names a workspace: the tenant. A bare UUIDv7.
    WorkspaceId,
    "workspace"
);
uuid_id!(
    /// Names a guardrail. A bare UUIDv7.
    GuardrailId,
    "guardrail"
);
uuid_id!(
    /// Names a preset. A bare UUIDv7.
    PresetId,
    "preset"
);
uuid_id!(
    /// Names an API key for its lifetime, independent of its secret. A bare UUIDv7.
    ApiKeyId,
    "key"
);
uuid_id!(
    /// Names a process that draws allowances: a new UUID for each start.
    ProcessId,
    "process"
);
uuid_id!(
    /// Names a destination of traces. A bare UUIDv7.
    DestinationId,
    "destination"
);
uuid_id!(
    /// Names a message to a destination. A bare UUIDv7.
    OutboxId,
    "message"
);

macro_rules! prefixed_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The prefix of every id of this kind.
            pub const PREFIX: &'static str = $prefix;

            /// Creates an id from the prefix and the UUID's 32 hex digits.
            pub fn from_uuid(uuid: Uuid) -> Self {
                const PREFIX: usize = $prefix.len();
                let mut text = [0; PREFIX + uuid::fmt::Simple::LENGTH];
                let (prefix, digits) = text.split_at_mut(PREFIX);
                prefix.copy_from_slice($prefix.as_bytes());
                uuid.simple().encode_lower(digits);
                Self(shared(&text))
            }
        }

        text_access!($name);

        impl FromStr for $name {
            type Err = InvalidId;

            /// Accepts the prefix followed by 1 to 64 characters of `[A-Za-z0-9_-]`.
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let rest = text.strip_prefix($prefix).ok_or(InvalidId($what))?;
                let fits = (1..=64).contains(&rest.len())
                    && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
                if fits { Ok(Self(text.into())) } else { Err(InvalidId($what)) }
            }
        }
    };
}

/// ASCII as text.
fn shared(ascii: &[u8]) -> Arc<str> {
    std::str::from_utf8(ascii).unwrap_or_default().into()
}

prefixed_id!(
    /// Names a durable document: `tgfile_` and opaque characters.
    DocumentId,
    "tgfile_",
    "document"
);
prefixed_id!(
    /// Names one answered (or failed) Decisions request: `gen-dec-` and opaque characters.
    DecisionId,
    "gen-dec-",
    "decision"
);

/// Names one HTTP request across logs, envelopes and records: 1 to 128 characters of `[A-Za-z0-9._-]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Arc<str>);

text_access!(RequestId);

impl RequestId {
    /// Creates an id from a UUID.
    pub fn from_uuid(uuid: Uuid) -> Self {
        let mut text = Uuid::encode_buffer();
        Self((&*uuid.hyphenated().encode_lower(&mut text)).into())
    }
}

impl FromStr for RequestId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let fits = (1..=128).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
        if fits { Ok(Self(text.into())) } else { Err(InvalidId("request")) }
    }
}
