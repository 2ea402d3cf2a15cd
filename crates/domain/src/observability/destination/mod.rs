//! Managing destinations.

mod change_destinations;
mod errors;
mod fields;
mod ports;
mod read_destinations;
mod url;

pub use change_destinations::{CreateDestination, DeleteDestination, TestDestination, UpdateDestination};
pub use errors::*;
pub use fields::{DestinationFields, checked_header};
pub use ports::DestinationPorts;
pub use read_destinations::{FindDestinationKeys, GetDestination, ListDestinations};
pub use url::{MASK, checked_url};

#[cfg(test)]
mod tests;
