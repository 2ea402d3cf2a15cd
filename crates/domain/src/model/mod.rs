//! Models: the catalogue and how names resolve in it.

mod callable;
mod catalogue;
mod count_models;
mod errors;
mod filter;
mod get_model;
mod import_catalogue;
mod list_models;
mod modality;
#[expect(clippy::module_inception, reason = "every area has a model.rs; here the area is called model too")]
mod model;
mod resolve;
mod slug;

pub use callable::*;
pub use catalogue::*;
pub use count_models::*;
pub use errors::*;
pub use filter::*;
pub use get_model::*;
pub use import_catalogue::*;
pub use list_models::*;
pub use modality::*;
pub use model::*;
pub use slug::*;
