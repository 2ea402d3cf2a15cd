//! Servers that tests start in temporary folders, on free loopback ports, and stop.
//!
//! A missing program is an error that names the package: a test never skips.

mod certificates;
mod faulty_postgres;
mod guarded;
mod pgbouncer;
mod ports;
mod postgres;
mod process;
mod user;
mod valkey;

pub use certificates::{Authority, Certificate};
pub use faulty_postgres::{FaultyPostgres, StopMode};
pub use pgbouncer::PgBouncer;
pub use postgres::{CERTIFIED_USER, Postgres};
pub use valkey::Valkey;
