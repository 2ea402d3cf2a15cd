//! The contract of every port on SQLite: with one handle, and with two as for two processes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::processes;
use domain::testing::contract::Stores;

async fn open_single_process() -> Stores {
    processes(1).await
}

async fn two_processes() -> Stores {
    processes(2).await
}

mod in_one_process {
    domain::store_contracts!(
        #[tokio::test]
        crate::open_single_process
    );
}

mod in_two_processes {
    domain::store_contracts!(
        #[tokio::test]
        crate::two_processes
    );
}
