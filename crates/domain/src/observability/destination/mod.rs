//! Managing destinations.

mod change_destinations;
mod errors;
mod fields;
mod manage_destinations;
mod read_destinations;
mod url;

pub use errors::*;
pub use fields::{DestinationFields, checked_header};
pub use manage_destinations::ManageDestinations;
pub use read_destinations::find_key_hashes;
pub use url::{MASK, checked_url};

#[cfg(test)]
mod tests;
