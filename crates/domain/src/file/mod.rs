//! Documents, and the promotion of container files to documents.

mod delete_document;
mod errors;
mod manage_container_files;
mod model;
mod ports;
mod promote_container_file;
mod read_documents;
mod release_abandoned_promotions;
mod sweep_documents;

pub use delete_document::*;
pub use errors::*;
pub use manage_container_files::*;
pub use model::*;
pub use ports::*;
pub use promote_container_file::*;
pub use read_documents::*;
pub use release_abandoned_promotions::*;
pub use sweep_documents::*;
