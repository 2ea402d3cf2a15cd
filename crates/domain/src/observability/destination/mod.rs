//! Managing destinations.

mod audited;
mod check;
mod create_destination;
mod delete_destination;
mod errors;
mod fields;
mod headers;
mod origin_change;
mod ports;
mod read_destinations;
mod sampling_rate;
mod test_destination;
mod update_destination;
mod url;

pub use create_destination::CreateDestination;
pub use delete_destination::DeleteDestination;
pub use errors::*;
pub use fields::DestinationFields;
pub use headers::checked as checked_header;
pub use ports::DestinationPorts;
pub use read_destinations::{FindDestinationKeys, GetDestination, ListDestinations};
pub use test_destination::TestDestination;
pub use update_destination::UpdateDestination;
pub use url::checked as checked_url;

/// The mask that is shown in place of a secret. In an update it keeps the stored secret.
pub const MASK: &str = "********";

#[cfg(test)]
mod tests;
