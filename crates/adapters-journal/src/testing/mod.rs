//! For tests of this and other crates: a disk that fails and forgets, and a machine of journals on it.

mod machine;
mod volatile_disk;

pub use machine::LocalMachine;
pub use volatile_disk::VolatileDisk;
