//! Work where it is asked for.

use async_trait::async_trait;

use super::{Work, WorkLost, WorkOwner, Workers};

/// Does all work where it is asked for, whose panics are the caller's: for who serves nobody else meanwhile, and for
/// tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct InPlace;

#[async_trait]
impl Workers for InPlace {
    async fn run(&self, _: WorkOwner, work: Work) -> Result<(), WorkLost> {
        work();
        Ok(())
    }
}
