//! A blob store on the local disk, and media types detected from content.

mod copy;
mod local;
mod media_types;
mod source;
mod tree;

pub use local::LocalBlobStore;
pub use media_types::detect_media_type;
