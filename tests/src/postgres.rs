//! The PostgreSQL server of a run whose instances are on it.

use std::sync::OnceLock;

use anyhow::{Context, Result};
use test_servers::{PgBouncer, Postgres};

/// The variable that puts every instance of a test run on a PostgreSQL server: `postgres`, or `pooler` for one behind
/// PgBouncer.
const DATABASE: &str = "TOLLGATE_TEST_DATABASE";

static SERVER: OnceLock<Result<Postgres, String>> = OnceLock::new();
static POOLER: OnceLock<Result<PgBouncer, String>> = OnceLock::new();

/// Creates a database for an instance; `None` if instances use files.
pub(crate) fn chosen_database() -> Result<Option<String>> {
    match choice().as_deref() {
        Some("postgres") => create_database().map(Some),
        Some("pooler") => {
            let database = create_database()?;
            let start = || PgBouncer::start(server()?).map_err(|error| format!("{error:#}"));
            let pooler = POOLER.get_or_init(start).as_ref().map_err(|error| anyhow::anyhow!(error.clone()))?;
            Ok(Some(pooler.url(&database)))
        }
        _ => Ok(None),
    }
}

/// Creates an empty database on the server of this run.
pub(crate) fn create_database() -> Result<String> {
    let server = server().map_err(anyhow::Error::msg)?;
    server.create_database().context("no database for a test")
}

fn server() -> Result<&'static Postgres, String> {
    let server = SERVER.get_or_init(|| Postgres::start().map_err(|error| format!("{error:#}")));
    server.as_ref().map_err(Clone::clone)
}

#[expect(clippy::disallowed_methods, reason = "the test run chooses the database for all of its instances")]
fn choice() -> Option<String> {
    std::env::var(DATABASE).ok()
}
