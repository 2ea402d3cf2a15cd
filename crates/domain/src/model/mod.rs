//! Models: the catalogue and how names resolve in it.

mod callable;
mod catalogue;
mod errors;
mod import_catalogue;
mod list_models;
mod modality;
#[expect(clippy::module_inception, reason = "every area has a model.rs; here the area is called model too")]
mod model;
mod read_models;
mod resolve;
mod slug;

pub use callable::*;
pub use catalogue::*;
pub use errors::*;
pub use import_catalogue::*;
pub use list_models::*;
pub use modality::*;
pub use model::*;
pub use read_models::*;
pub use slug::*;
