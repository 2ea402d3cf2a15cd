//! The public JSON shape of a catalogue row, read and written.
//!
//! One place for what three others need: the import reads it, the store keeps it, the HTTP layer shows it.
//! Prices are read in every number notation, as strings or numbers, and written as strings in plain notation;
//! members that no rule looks into are kept byte for byte.

mod fault;
mod read;
mod write;

pub use fault::RowFault;
pub use read::{read_row, read_rows};
pub use write::{write_architecture, write_listed, write_pricing, write_row, write_stored};
