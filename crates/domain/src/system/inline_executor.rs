//! An executor that runs work inline.

use async_trait::async_trait;

use super::{TaskError, Work, WorkOwner, Workers};

/// Runs work on the calling thread, where its panics surface as well. For tests, and for processes that serve no other
/// requests.
#[derive(Debug, Clone, Copy, Default)]
pub struct InlineExecutor;

#[async_trait]
impl Workers for InlineExecutor {
    async fn run(&self, _: WorkOwner, work: Work) -> Result<(), TaskError> {
        work();
        Ok(())
    }
}
