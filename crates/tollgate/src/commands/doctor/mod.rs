//! `tollgate doctor`

mod checks;
mod report;
mod servers;
mod warnings;

use std::collections::BTreeSet;

use self::report::{Check, Report};
use self::servers::ServerChecks;

use crate::commands::prelude::*;
use crate::config::JournalSync;

pub use servers::audit;

/// Runs all checks and prints the report; the exit code is a failure if any check failed.
pub async fn run(context: &Context) -> anyhow::Result<ExitCode> {
    let mut found = vec![checks::configuration(context)];
    let mut servers = ServerChecks::run(context).await;
    found.append(&mut servers.checks);
    match context.stores_as_they_are().await {
        Ok(stores) => {
            found.push(checks::migrations(&stores).await);
            found.extend(checks::unfinished_copy(&stores).await);
            found.push(checks::database(context, &stores).await);
            found.push(checks::blobs(context, &stores).await);
            found.push(checks::destinations(&stores).await);
            found.extend(checks::endpoints(context, &stores).await);
            found.extend(checks::models(context, &stores).await);
        }
        Err(error) => found.push(checks::unopened_stores(context, error)),
    }
    if !context.config.storage.read_only && context.config.journal.sync != JournalSync::Store {
        found.push(checks::journal(context));
    }
    found.extend(checks::rate_limits(context, &servers.variables()).await);
    found.extend(checks::proxy(context));
    found.extend(checks::providers(context, &servers.variables()).await);
    found.extend(checks::quoted(context));
    found.extend(warnings::exposed(&context.config));
    show(context, found)
}

/// Checks the configuration without a store or a connection.
pub fn check_configuration(context: &Context) -> anyhow::Result<ExitCode> {
    let mut found = vec![checks::configuration(context), checks::provider_settings(context, &BTreeSet::new())];
    found.extend(checks::encryption_key(context));
    found.extend(checks::bucket_settings(context));
    found.extend(checks::certificate_files(context));
    found.extend(checks::setting_warnings(context));
    found.extend(checks::quoted(context));
    found.extend(warnings::exposed(&context.config));
    show(context, found)
}

fn show(context: &Context, found: Vec<Check>) -> anyhow::Result<ExitCode> {
    let report = Report::new(found);
    context.output.show(&report, || report.text())?;
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
