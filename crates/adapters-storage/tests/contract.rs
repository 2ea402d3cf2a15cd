//! The contract of every port on SQLite: with one handle, with two as for two processes, and on the schema of a later
//! release.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{on_newer_schema, processes};
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

mod on_newer_schema {
    domain::store_contracts!(
        #[tokio::test]
        crate::on_newer_schema
    );
}
