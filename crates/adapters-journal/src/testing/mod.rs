//! Test support for this and other crates: a disk that fails and loses data, and a machine with journals on it.

mod machine;
mod volatile_disk;

pub use machine::LocalMachine;
pub use volatile_disk::VolatileDisk;
