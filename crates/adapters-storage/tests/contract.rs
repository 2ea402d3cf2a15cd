//! The contract of every port, on SQLite: over one handle, and over two as two processes would have them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::processes;
use domain::testing::contract::{self, Stores};

async fn one_process() -> Stores {
    processes(1).await
}

async fn two_processes() -> Stores {
    processes(2).await
}

macro_rules! suites {
    ($($suite:ident),* $(,)?) => {
        mod in_one_process {
            $(#[tokio::test]
            async fn $suite() {
                super::contract::$suite(super::one_process).await;
            })*
        }
        mod in_two_processes {
            $(#[tokio::test]
            async fn $suite() {
                super::contract::$suite(super::two_processes).await;
            })*
        }
    };
}

suites!(
    audit_log,
    workspace_repository,
    api_key_repository,
    key_grants,
    guardrail_repository,
    guardrail_assignments,
    document_repository,
    model_repository,
    change_feed,
    usage_repository,
    ledger,
    destination_repository,
    outbox,
);
