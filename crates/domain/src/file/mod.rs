//! Durable documents, and the promotion of container files into them.

mod errors;
mod model;
mod ports;
mod promote_container_file;
mod sweep_documents;

pub use errors::*;
pub use model::*;
pub use ports::*;
pub use promote_container_file::*;
pub use sweep_documents::*;
