//! The domain of Tollgate: types with their invariants, port traits and use cases.
//!
//! One folder per area, each with `model.rs` (types), `ports.rs` (what the area needs from outside), `errors.rs`
//! and one file per use case. The five operations of the interface are:
//!
//! | operation | use case |
//! |---|---|
//! | promote a container file | [`file::PromoteContainerFile`] |
//! | submit a Decisions request | [`decision::SubmitDecision`] |
//! | assign keys to a guardrail | [`guardrail::AssignKeysToGuardrail`] |
//! | read one model | [`model::GetModel`] |
//! | count models | [`model::CountModels`] |
//!
//! The crate performs no I/O, reads no clock and draws no random number: all of that comes through ports.
//! With the feature `mock` every port has a mockall mock (`MockClock`, …); with `testing` every port has an
//! in-memory fake (`Memory…`) and a contract suite that real adapters run as well.
#![deny(missing_docs)]

/// Declares an enum whose variants have names. The names are listed once: `ALL`, `as_str` and `from_name` follow. With
/// `or Variant` behind the enum, `from_name` returns that variant for a name that this release does not know.
#[macro_export]
macro_rules! named_enum {
    (@type $(#[$meta:meta])* $vis:vis enum $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        $vis enum $type {
            $($(#[$doc])* $variant,)+
        }

        impl $type {
            /// All variants, in the order of their declaration.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the name in records, in configuration and on all interfaces.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis enum $type:ident { $($variants:tt)+ }) => {
        $crate::named_enum! { @type $(#[$meta])* $vis enum $type { $($variants)+ } }

        impl $type {
            /// Returns the variant with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|known| known.as_str() == name)
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis enum $type:ident { $($variants:tt)+ } or $unknown:ident) => {
        $crate::named_enum! { @type $(#[$meta])* $vis enum $type { $($variants)+ } }

        impl $type {
            /// Returns the variant with this name.
            pub fn from_name(name: &str) -> Self {
                Self::ALL.into_iter().find(|known| known.as_str() == name).unwrap_or(Self::$unknown)
            }
        }
    };
}

/// Gives access to the text that each type wraps.
macro_rules! text_access {
    ($($type:ident),+) => {
        $(
            impl $type {
                /// Returns the text.
                pub fn as_str(&self) -> &str {
                    &self.0
                }
            }

            impl std::fmt::Display for $type {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str(&self.0)
                }
            }
        )+
    };
}

/// Declares a name that people read: at most `$max` characters, no control characters, not blank.
macro_rules! display_name {
    ($(#[$doc:meta])* $type:ident, $max:literal, $invalid:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $type(String);

        impl $type {
            /// Validates length and characters.
            pub fn try_new(name: &str) -> Result<Self, $invalid> {
                let fits = name.chars().count() <= $max && !name.chars().any(char::is_control);
                if fits && !name.trim().is_empty() { Ok(Self(name.to_owned())) } else { Err($invalid) }
            }
        }

        text_access!($type);
    };
}

pub mod api_key;
pub mod audit;
pub mod authority;
pub mod budget;
pub mod change;
pub mod change_feed;
pub mod container;
pub mod cursor;
pub mod decision;
pub mod edit;
pub mod error;
pub mod evaluation;
pub mod evidence;
pub mod file;
pub mod guardrail;
pub mod ids;
pub mod json;
pub mod model;
pub mod money;
pub mod naming;
pub mod observability;
pub mod operation;
pub mod preset;
pub mod pricing;
pub mod question;
pub mod rate;
pub mod repetition;
pub mod retention;
pub mod routing;
pub mod secret;
pub mod statistics;
pub mod system;
pub mod text;
pub mod usage;
pub mod version;
pub mod workspace;

#[cfg(feature = "testing")]
#[path = "../testing/mod.rs"]
pub mod testing;
