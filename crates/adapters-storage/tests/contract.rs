//! The contract of every port, on SQLite: over one handle, and over two as two processes would have them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Folder, open, stores};
use domain::testing::contract::{self, Stores};

async fn one_process() -> Stores {
    let folder = Folder::new();
    let database = folder.open().await;
    stores(&[database], folder)
}

async fn two_processes() -> Stores {
    let folder = Folder::new();
    let handles = [open(&folder.settings()).await, open(&folder.settings()).await];
    stores(&handles, folder)
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
    workspace_repository,
    api_key_repository,
    key_grants,
    guardrail_repository,
    document_repository,
    model_repository,
    change_feed,
    usage_repository,
    destination_repository,
    outbox,
);
