//! The blob store on an S3-compatible object store, over this project's own HTTP client.

mod build;
mod copy;
mod create;
mod failure;
mod list;
mod names;
mod reader;
mod settings;
mod store;
mod transport;
mod upload;

pub use create::create_missing_bucket;
pub use failure::BucketCheck;
pub use settings::{S3Credentials, S3Error, S3Settings};
pub use store::S3BlobStore;
