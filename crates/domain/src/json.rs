//! Opaque JSON: validated JSON text that is forwarded byte for byte, numbers included.

mod checker;
mod lexer;
mod object;
mod precheck;
mod value;

pub use checker::{JsonText, read_object};
pub(crate) use lexer::string_content;
pub use lexer::{Token, Tokens, count_commas};
pub use object::ObjectWriter;
pub use precheck::{MAX_DEPTH, PrecheckError, precheck, unknown_member, unknown_name};
pub use value::{InvalidJson, Json, JsonKind, push_string};
pub(crate) use value::{JsonPart, Member, first_duplicate};
