//! Managing destinations.

mod create_destination;
mod delete_destination;
mod errors;
mod fields;
mod ports;
mod read_destinations;
mod test_destination;
mod update_destination;
mod url;

pub use create_destination::CreateDestination;
pub use delete_destination::DeleteDestination;
pub use errors::*;
pub use fields::{DestinationFields, checked_header};
pub use ports::DestinationPorts;
pub use read_destinations::{FindDestinationKeys, GetDestination, ListDestinations};
pub use test_destination::TestDestination;
pub use update_destination::UpdateDestination;
pub use url::{MASK, checked_url};

#[cfg(test)]
mod tests;
