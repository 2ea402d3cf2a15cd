//! Content filters: what is looked for in the texts of a request, and what becomes of it.
//!
//! | module | what |
//! |---|---|
//! | `compile` | filters of several guardrails, checked and ready for use |
//! | `pattern`, `builtin` | what finds matches in one text |
//! | `tokens`, `text`, `fold` | a JSON text to the strings in it, as they are read and as they look, with the way back |
//! | `scan`, `number`, `run` | every string, name and number of a text, and text that is split over neighbours |
//! | `rewrite`, `paths` | matches to the redacted text, and to the places that are told |
//! | `apply`, `documents`, `aliases` | a provider input through all of it, and the names of its answers |
//! | `attachment`, `media` | what of assets and of parts can be read |
//! | `labels` | session, user and trace for destinations |

mod aliases;
mod apply;
mod attachment;
mod builtin;
mod compile;
mod documents;
mod errors;
mod fold;
mod label;
mod labels;
mod media;
mod number;
mod paths;
mod pattern;
mod rewrite;
mod run;
mod scan;
mod text;
mod tokens;

pub use aliases::*;
pub use apply::*;
pub use compile::CompiledFilters;
pub use errors::*;

pub use crate::usage::Finding;

#[cfg(test)]
mod tests;
