//! Content filters: the patterns that are searched in a request, and the actions on their matches.
//!
//! | module | content |
//! |---|---|
//! | `compile` | checks and compiles the filters of several guardrails |
//! | `pattern`, `builtin` | find matches in one text |
//! | `search` | select the filters that may match a request, and search a text by them |
//! | `text`, `map`, `normalize` | give a string of a JSON text a plain and a normalised view |
//! | `scan`, `run` | scan every string, name and number of a text, and text split over neighbours |
//! | `found`, `spans` | hold the matches of a text in bounded memory |
//! | `rewrite` | redact the matches, and report their paths |
//! | `apply`, `aliases` | filter a whole provider input, and restore names in answers |
//! | `attachment` | decide which parts of assets and items are readable |
//! | `labels` | redact session, user and trace labels for trace destinations |

mod aliases;
mod apply;
mod attachment;
mod builtin;
mod compile;
mod errors;
mod found;
mod labels;
mod map;
mod normalize;
mod pattern;
mod rewrite;
mod run;
mod scan;
mod search;
mod spans;
mod text;

pub use aliases::*;
pub use apply::*;
pub use compile::CompiledFilters;
pub use errors::*;

#[cfg(test)]
mod tests;
