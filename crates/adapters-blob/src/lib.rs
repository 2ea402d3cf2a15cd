//! A blob store on the local disk, and media types detected from content.

mod copy;
mod listing;
mod local;
mod media_types;
mod partial;
mod reader;
mod root;
mod source;
mod tree;
mod writers;

pub use local::LocalBlobStore;
pub use media_types::detect_media_type;
