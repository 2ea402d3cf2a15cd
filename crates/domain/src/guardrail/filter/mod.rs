//! Content filters: the patterns that are searched in a request, and the actions on their matches.
//!
//! | module | content |
//! |---|---|
//! | `compile` | checks and compiles the filters of several guardrails |
//! | `pattern`, `builtin` | find matches in one text |
//! | `text`, `map`, `normalize` | give a string of a JSON text a plain and a normalised view |
//! | `scan`, `number`, `run` | scan every string, name and number of a text, and text split over neighbours |
//! | `found`, `spans`, `marks`, `bits` | hold the matches of a text in bounded memory |
//! | `rewrite`, `paths` | redact the matches, and report their paths |
//! | `apply`, `documents`, `aliases` | filter a whole provider input, and restore names in answers |
//! | `attachment`, `media` | decide which parts of assets and items are readable |
//! | `labels` | redact session, user and trace labels for trace destinations |

mod aliases;
mod apply;
mod attachment;
mod bits;
mod builtin;
mod compile;
mod documents;
mod errors;
mod found;
mod label;
mod labels;
mod map;
mod marks;
mod media;
mod normalize;
mod number;
mod paths;
mod pattern;
mod rewrite;
mod run;
mod scan;
mod spans;
mod text;

pub use aliases::*;
pub use apply::*;
pub use compile::CompiledFilters;
pub use errors::*;

#[cfg(test)]
mod tests;
