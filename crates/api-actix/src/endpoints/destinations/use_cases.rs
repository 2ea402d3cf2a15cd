//! The use cases of destinations.

use std::sync::Arc;

use domain::observability::{
    CreateDestination, DeleteDestination, DestinationPorts, FindDestinationKeys, GetDestination, ListDestinations,
    UpdateDestination,
};

/// The use cases of destinations.
pub struct DestinationUseCases {
    pub(super) create: CreateDestination,
    pub(super) list: ListDestinations,
    pub(super) get: GetDestination,
    pub(super) update: UpdateDestination,
    pub(super) delete: DeleteDestination,
    pub(super) keys: FindDestinationKeys,
}

impl DestinationUseCases {
    /// Creates the use cases over their ports.
    pub fn new(ports: &DestinationPorts) -> Self {
        Self {
            create: CreateDestination::new(ports.clone()),
            list: ListDestinations::new(Arc::clone(&ports.destinations)),
            get: GetDestination::new(Arc::clone(&ports.destinations)),
            update: UpdateDestination::new(ports.clone()),
            delete: DeleteDestination::new(ports.clone()),
            keys: FindDestinationKeys::new(Arc::clone(&ports.keys)),
        }
    }
}
