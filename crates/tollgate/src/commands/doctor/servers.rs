//! Checks of the running servers, and the audit of the ledger.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use api_actix::{ServerState, ServerStatus};
use chrono::{DateTime, Utc};
use domain::budget::{Discrepancy, LedgerAudit, LedgerMaintenance as _};

use super::report::{Check, Status};
use crate::commands::prelude::*;
use crate::commands::servers::{self, RunningServer, STATUS};
use crate::config::used_variables;
use crate::output::UsdNumber;

/// The running servers of the database, with the checks of each.
pub struct ServerChecks {
    /// The servers that answered.
    pub servers: Vec<ServerStatus>,
    /// The checks.
    pub checks: Vec<Check>,
}

impl ServerChecks {
    /// Asks the running servers.
    pub async fn run(context: &Context) -> Self {
        match servers::running(context, STATUS).await {
            Err(error) => Self::of_checks(vec![Check::new("servers", Status::Warning, format!("{error:#}"))]),
            Ok(found) if found.is_empty() => Self::of_checks(vec![Check::new(
                "servers",
                Status::Ok,
                "no server is running on this machine and data folder",
            )]),
            Ok(found) => Self::of_found(context, found),
        }
    }

    fn of_checks(checks: Vec<Check>) -> Self {
        Self { servers: Vec::new(), checks }
    }

    fn of_found(context: &Context, found: Vec<RunningServer>) -> Self {
        let mut all = Self::of_checks(Vec::new());
        let here = used_variables(&context.config, &context.environment);
        for server in found {
            let silent = format!("server {}", server.id);
            match server.own_status() {
                Err(error) => all.checks.push(Check::of(silent, Err::<String, _>(error))),
                Ok(status) => {
                    let name = format!("server {}", status.id);
                    all.checks.push(readiness(&name, &status));
                    let warnings = [
                        other_version(&status),
                        other_file(&status, context.config.file.as_deref()),
                        changed_file(&status),
                        other_variables(&status, &here),
                    ];
                    let warnings = warnings.into_iter().flatten();
                    all.checks.extend(warnings.map(|detail| Check::new(name.clone(), Status::Warning, detail)));
                    all.checks.extend(rejected_credentials(&status));
                    all.servers.push(status);
                }
            }
        }
        all
    }

    /// Returns the variables that are set in a running server.
    pub fn variables(&self) -> BTreeSet<&str> {
        self.servers.iter().flat_map(|server| &server.variables).map(String::as_str).collect()
    }
}

fn readiness(name: &str, server: &ServerStatus) -> Check {
    let ServerStatus { version, uptime_seconds, pid, .. } = server;
    let address = server.address.as_deref().unwrap_or_default();
    let mut detail =
        format!("{}: version {version}, pid {pid}, http://{address}, up {uptime_seconds} s", server.state.as_str());
    for store in server.stores.iter().filter(|store| !store.ready) {
        let reason = store.error.as_deref().unwrap_or("no reason");
        // Writing to a string cannot fail.
        let _ = write!(detail, "; store {} unavailable: {reason}", store.name);
    }
    let status = match server.state {
        ServerState::Ready => Status::Ok,
        ServerState::Degraded | ServerState::Draining => Status::Warning,
        ServerState::Unavailable => Status::Broken,
    };
    Check::new(name, status, detail)
}

fn other_version(server: &ServerStatus) -> Option<String> {
    let own = env!("CARGO_PKG_VERSION");
    let ServerStatus { version, .. } = server;
    (version != own).then(|| format!("the server is of version {version}, this command of version {own}"))
}

fn other_file(server: &ServerStatus, own: Option<&Path>) -> Option<String> {
    let own = own.map(|file| std::path::absolute(file).unwrap_or_else(|_| file.to_owned()));
    let own = own.as_ref().map(|file| file.display().to_string());
    let name = |file: &Option<String>| file.clone().unwrap_or_else(|| "no file".to_owned());
    (server.config_file != own).then(|| {
        let (of_server, own) = (name(&server.config_file), name(&own));
        format!("the server was configured with {of_server}, and this command with {own}")
    })
}

/// Changes of the configuration file need a reload or a restart.
fn changed_file(server: &ServerStatus) -> Option<String> {
    let file = server.config_file.as_deref()?;
    let changed: DateTime<Utc> = std::fs::metadata(file).ok()?.modified().ok()?.into();
    let read: DateTime<Utc> = server.configured_at.as_ref().unwrap_or(&server.started_at).parse().ok()?;
    (changed > read).then(|| format!("{file} was changed after the server read it; SIGHUP reloads it"))
}

/// Returns a warning for variables that override settings or select a proxy in one of the two processes only.
fn other_variables(server: &ServerStatus, here: &[String]) -> Option<String> {
    let is_setting = |name: &&str| name.starts_with("TOLLGATE__") || name.to_ascii_uppercase().ends_with("_PROXY");
    let set = |names: &'_ [String]| -> BTreeSet<String> {
        names.iter().map(String::as_str).filter(is_setting).map(str::to_owned).collect()
    };
    let (there, here) = (set(&server.variables), set(here));
    let list = |names: Vec<&String>| names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    let (lacking, added) = (list(there.difference(&here).collect()), list(here.difference(&there).collect()));
    let parts = [(lacking, "only the server has"), (added, "only this command has")];
    let parts: Vec<String> =
        parts.iter().filter(|(names, _)| !names.is_empty()).map(|(names, owner)| format!("{owner} {names}")).collect();
    (!parts.is_empty()).then(|| format!("other variables, so settings may differ: {}", parts.join("; ")))
}

/// Returns an error for each provider that rejected the server's credential last.
fn rejected_credentials(server: &ServerStatus) -> Vec<Check> {
    let mut rejected: Vec<(&str, String)> = server
        .endpoints
        .iter()
        .filter(|endpoint| endpoint.is_credential_rejected())
        .filter_map(|endpoint| Some((endpoint.provider.as_str(), endpoint.last_error.as_ref()?.to_string())))
        .collect();
    rejected.dedup();
    let check = |(provider, error): (&str, String)| {
        let detail = format!("it rejected the credential of the running server: {error}");
        Check::new(format!("provider {provider}"), Status::Broken, detail)
    };
    rejected.into_iter().map(check).collect()
}

/// Compares every counter with the ledger and every charge with its tokens and prices; fails on any difference. Reads
/// one snapshot of the database, also while a server runs.
pub async fn audit(context: &Context) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
    let found = stores.reports().audit().await?;
    let report = Report::of(&found);
    context.output.show(&report, || report.text())?;
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    records: u64,
    counters: u64,
    allowances: u64,
    sums: u64,
    discrepancies: Vec<Row>,
}

/// A difference.
#[derive(Debug, Serialize)]
struct Row {
    what: String,
    expected_usd: UsdNumber,
    found_usd: UsdNumber,
}

impl Report {
    fn of(found: &LedgerAudit) -> Self {
        let row = |Discrepancy { what, expected, found }: &Discrepancy| Row {
            what: what.clone(),
            expected_usd: UsdNumber(*expected),
            found_usd: UsdNumber(*found),
        };
        Self {
            ok: found.discrepancies.is_empty(),
            records: found.records,
            counters: found.counters,
            allowances: found.allowances,
            sums: found.sums,
            discrepancies: found.discrepancies.iter().map(row).collect(),
        }
    }

    /// Returns the text for a terminal.
    fn text(&self) -> String {
        let Self { records, counters, allowances, sums, .. } = self;
        let looked_at = format!(
            "{records} records, {counters} counters, {allowances} allowances of processes, {sums} sums of usage"
        );
        if self.ok {
            return format!("ledger consistent: {looked_at}\n");
        }
        let row = |row: &Row| [row.what.clone(), row.expected_usd.0.to_string(), row.found_usd.0.to_string()];
        let rows: Vec<_> = self.discrepancies.iter().map(row).collect();
        let count = self.discrepancies.len();
        let title = format!("ledger inconsistent, {count} findings: {looked_at}");
        format!("{title}\n{}", table(["WHAT", "EXPECTED USD", "FOUND USD"], &rows))
    }
}

#[cfg(test)]
mod tests {
    use domain::money::Usd;

    use super::*;

    fn server() -> ServerStatus {
        serde_json::from_value(serde_json::json!({
            "id": "s", "pid": 7, "version": env!("CARGO_PKG_VERSION"), "started_at": "2027-01-01T00:00:00Z",
            "uptime_seconds": 61, "address": "127.0.0.1:1", "state": "ready",
            "variables": ["A_KEY", "TOLLGATE__LOG__FORMAT", "https_proxy"],
        }))
        .unwrap()
    }

    #[test]
    fn readiness_names_unavailable_stores() {
        assert_eq!(readiness("s", &server()).status, Status::Ok);
        let stores = serde_json::from_str(r#"[{"name":"sqlite","ready":false,"error":"no disk"}]"#).unwrap();
        let away = ServerStatus { state: ServerState::Unavailable, stores, ..server() };
        let check = readiness("s", &away);
        assert_eq!(check.status, Status::Broken);
        assert!(check.detail.ends_with("store sqlite unavailable: no disk"), "{}", check.detail);
    }

    #[test]
    fn differences_between_server_and_command_are_named() {
        let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        assert_eq!(other_variables(&server(), &names(&["TOLLGATE__LOG__FORMAT", "https_proxy"])), None);
        let warning = other_variables(&server(), &names(&["https_proxy", "TOLLGATE__X__Y"])).unwrap();
        assert!(warning.contains("only the server has TOLLGATE__LOG__FORMAT"), "{warning}");
        assert!(warning.contains("only this command has TOLLGATE__X__Y") && !warning.contains("A_KEY"), "{warning}");
        assert_eq!(other_version(&server()), None);
        assert!(other_version(&ServerStatus { version: "0.0.1".to_owned(), ..server() }).unwrap().contains("0.0.1"));
        assert_eq!(other_file(&server(), None), None);
        assert!(other_file(&server(), Some(Path::new("/a.toml"))).unwrap().ends_with("with /a.toml"));
    }

    #[test]
    fn changed_file_compares_with_last_reading() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let config_file = Some(file.path().display().to_string());
        let at = |started_at: &str| ServerStatus {
            started_at: started_at.to_owned(),
            config_file: config_file.clone(),
            ..server()
        };
        assert!(changed_file(&at("2000-01-01T00:00:00Z")).unwrap().contains("SIGHUP"));
        assert_eq!(changed_file(&at("2999-01-01T00:00:00Z")), None);
        let configured_at = Some("2999-01-01T00:00:00Z".to_owned());
        assert_eq!(changed_file(&ServerStatus { configured_at, ..at("2000-01-01T00:00:00Z") }), None);
    }

    #[test]
    fn audit_text_lists_exact_differences() {
        let sound = LedgerAudit { records: 3, counters: 8, allowances: 1, sums: 2, ..LedgerAudit::default() };
        let report = Report::of(&sound);
        assert!(report.ok);
        let expected = "ledger consistent: 3 records, 8 counters, 1 allowances of processes, 2 sums of usage\n";
        assert_eq!(report.text(), expected);

        let wrong = Discrepancy {
            what: "key ab daily 2026-11-21: spent".to_owned(),
            expected: Usd::from_pico(1),
            found: Usd::from_pico(-2),
        };
        let report = Report::of(&LedgerAudit { discrepancies: vec![wrong], ..sound });
        assert!(!report.ok);
        let text = report.text();
        assert!(text.starts_with("ledger inconsistent, 1 findings: 3 records"), "{text}");
        for part in ["key ab daily 2026-11-21: spent", "0.000000000001", "-0.000000000002"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(
            json,
            "{\"ok\":false,\"records\":3,\"counters\":8,\"allowances\":1,\"sums\":2,\"discrepancies\":[{\"what\":\
             \"key ab daily 2026-11-21: spent\",\"expected_usd\":0.000000000001,\"found_usd\":-0.000000000002}]}"
        );
    }
}
