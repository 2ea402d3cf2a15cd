//! `tollgate status`: the running servers, or the one of `--url`.

use api_actix::{ConfiguredEndpoint, LastError, ProcessStatus, ProviderHealth, ServerState, ServerStatus, Status};

use super::servers::{RunningServer, STATUS};
use super::{api, servers};
use crate::cli::ServerArgs;
use crate::commands::prelude::*;
use crate::output::{Line, table_lines};

/// The response to `GET /status`, for all running servers.
#[derive(Serialize)]
pub struct StatusView {
    /// The status.
    pub data: JoinedStatus,
}

/// The status of all running servers of a database.
#[derive(Serialize)]
pub struct JoinedStatus {
    /// True if a server runs, and all running servers accept requests.
    pub ok: bool,
    /// The database.
    pub database: String,
    /// The running servers.
    pub servers: Vec<ServerView>,
    /// The live processes of the database; null if it cannot be read.
    pub processes: Option<Vec<ProcessStatus>>,
    /// The configured endpoints of the first server that answered.
    pub endpoints: Vec<ConfiguredEndpoint>,
}

/// A running server.
#[derive(Serialize)]
#[serde(untagged)]
pub enum ServerView {
    /// It answered.
    Answered(Box<ServerStatus>),
    /// It did not answer.
    Silent {
        /// The id of its start.
        id: String,
        /// The reason.
        error: String,
    },
}

/// Shows the status; fails if no server runs, or if one does not accept requests.
pub async fn run(context: &Context, server: &ServerArgs) -> anyhow::Result<ExitCode> {
    let view = StatusView { data: read(context, server, STATUS).await? };
    if view.data.processes.is_none() {
        note("error: the live processes are unknown");
    }
    context.output.show_lines(&view, || view.data.lines())?;
    Ok(if view.data.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads the status of the running servers, or of the one of `--url`; without any, that of the database.
///
/// # Errors
/// The sockets cannot be used, or there is no status of a database without a running server.
pub async fn read(context: &Context, server: &ServerArgs, path: &str) -> anyhow::Result<JoinedStatus> {
    let mut running = Vec::new();
    if server.url.is_none() {
        running = servers::running(context, path).await?;
    }
    if running.is_empty() {
        let status = api::run(context, server, async |api| servers::read(api, path).await).await?;
        return Ok(JoinedStatus::new(status));
    }
    let mut joined: Option<JoinedStatus> = None;
    let mut silent = Vec::new();
    for RunningServer { id, status } in running {
        match (status, &mut joined) {
            (Ok(status), None) => joined = Some(JoinedStatus::new(status)),
            (Ok(status), Some(joined)) => joined.add(status),
            (Err(error), _) => silent.push(ServerView::Silent { id, error: format!("{error:#}") }),
        }
    }
    let mut joined = joined.unwrap_or_else(|| JoinedStatus::unknown(context.config.storage.name()));
    joined.ok &= silent.is_empty();
    joined.servers.append(&mut silent);
    Ok(joined)
}

impl JoinedStatus {
    fn new(Status { ok, database, servers, processes, endpoints }: Status) -> Self {
        let servers = servers.into_iter().map(|server| ServerView::Answered(Box::new(server))).collect();
        Self { ok, database, servers, processes, endpoints }
    }

    fn unknown(database: String) -> Self {
        Self { ok: false, database, servers: Vec::new(), processes: None, endpoints: Vec::new() }
    }

    fn add(&mut self, status: Status) {
        let Self { ok, mut servers, processes, .. } = Self::new(status);
        self.ok &= ok;
        self.servers.append(&mut servers);
        self.processes = self.processes.take().or(processes);
    }

    fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        if self.servers.is_empty() {
            lines.push(Line::new(
                format!("No server is running on this machine and data folder for {}.", self.database),
                true,
            ));
        }
        for server in &self.servers {
            match server {
                ServerView::Silent { id, error } => {
                    lines.push(Line::new(format!("Server {id}: no status: {error}"), true));
                }
                ServerView::Answered(server) => lines.extend(server_lines(server)),
            }
            lines.push(Line::new("", false));
        }
        let processes = self.processes.as_deref().unwrap_or_default();
        if !processes.is_empty() {
            lines.extend(table_lines(PROCESS_HEAD, &processes.iter().map(process_row).collect::<Vec<_>>(), |_| false));
        }
        lines
    }
}

/// The column heads of [`process_row`].
pub const PROCESS_HEAD: [&str; 3] = ["PROCESS", "SEEN AT", "JOURNAL"];

/// Returns the table row of a process.
pub fn process_row(process: &ProcessStatus) -> [String; 3] {
    let journal = if process.has_journal { "on this machine" } else { "not on this machine" };
    [process.id.clone(), process.seen_at.clone(), journal.to_owned()]
}

fn provider_row(health: &ProviderHealth) -> [String; 6] {
    [
        health.provider.clone(),
        health.state.as_str().to_owned(),
        health.endpoints.to_string(),
        health.attempts.to_string(),
        per_cent(health.accept_rate),
        health.last_error.as_ref().map_or("-".to_owned(), LastError::to_string),
    ]
}

/// Returns a share as per cent; a dash without one.
pub fn per_cent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

fn server_lines(status: &ServerStatus) -> Vec<Line> {
    let providers = &status.providers;
    let property = |name: &str, value: String| Line::new(format!("  {name:<15}{value}"), false);
    let mut lines = vec![Line::new(format!("Server {} (pid {})", status.id, status.pid), false)];
    let is_problem = status.state != ServerState::Ready;
    lines.push(Line::new(format!("  {:<15}{}", "State:", status.state.as_str()), is_problem));
    lines.push(property("Version:", status.version.clone()));
    lines.push(property("Uptime:", format!("{}, since {}", uptime(status.uptime_seconds), status.started_at)));
    lines.push(property(
        "Base URL:",
        status.address.as_ref().map_or("no port".to_owned(), |address| format!("http://{address}{}", status.base_path)),
    ));
    lines.push(property("Configuration:", status.config_file.as_deref().unwrap_or("no file").to_owned()));
    lines.push(property("Variables:", join(&status.variables)));
    lines.push(property("Requests:", format!("{} in flight", status.connections_in_request)));
    if let Some(journal) = &status.journal {
        let (entries, bytes) = (journal.unfolded_entries, journal.unfolded_bytes);
        let lag = format!("{entries} entries ({bytes} bytes) not yet in the database");
        let disk = if journal.writable { "" } else { "; no entry is accepted" };
        lines.push(Line::new(format!("  {:<15}{lag}{disk}", "Journal:"), !journal.writable));
    }
    let rows: Vec<[String; 3]> = status
        .stores
        .iter()
        .map(|store| {
            let state = if store.ready { "ready" } else { "unavailable" };
            [store.name.clone(), state.to_owned(), store.error.clone().unwrap_or_default()]
        })
        .collect();
    lines.push(Line::new("", false));
    lines.extend(table_lines(["STORE", "STATE", "ERROR"], &rows, |row| !status.stores[row].ready));
    let rows: Vec<[String; 6]> = providers.iter().map(provider_row).collect();
    let head = ["PROVIDER", "STATE", "ENDPOINTS", "ATTEMPTS", "ACCEPTED", "LAST ERROR"];
    lines.push(Line::new("", false));
    lines.extend(table_lines(head, &rows, |row| providers[row].state.is_problem()));
    lines
}

fn join(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Formats seconds with their two largest units.
fn uptime(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use api_actix::EndpointHealth;
    use serde_json::json;

    use super::*;

    fn endpoint(provider: &str, attempts: u64, last_error: Option<(&str, u16)>, failed: bool) -> EndpointHealth {
        EndpointHealth {
            model: "a/b".to_owned(),
            provider: provider.to_owned(),
            upstream_model: "m".to_owned(),
            paused: false,
            throttled: false,
            throttled_workspaces: 0,
            accept_rate: (attempts > 0).then_some(if failed { 0.0 } else { 1.0 }),
            latency_ms: None,
            retry_in_seconds: None,
            attempts,
            last_error: last_error.map(|(outcome, status)| LastError {
                outcome: outcome.to_owned(),
                upstream_status: Some(status),
                rejected_credential: status == 401,
                cause: None,
            }),
            last_attempt_failed: failed,
            bound_ratio: None,
            bound_extra_tokens: None,
        }
    }

    fn view(endpoints: Vec<EndpointHealth>) -> JoinedStatus {
        let status: Status = serde_json::from_value(json!({"ok": true, "database": "t.db", "servers": [{
            "id": "s", "pid": 7, "version": "1", "started_at": "2027-01-01T00:00:00Z", "uptime_seconds": 61,
            "address": "127.0.0.1:1", "state": "ready",
            "stores": [{"name": "sqlite", "ready": true, "error": null}, {"name": "blobs", "ready": false, "error": "gone"}],
        }]}))
        .unwrap();
        let mut joined = JoinedStatus::new(status);
        if let ServerView::Answered(server) = &mut joined.servers[0] {
            server.providers = ProviderHealth::list(&endpoints);
            server.endpoints = endpoints;
        }
        joined
    }

    #[test]
    fn provider_with_rejected_credential_is_a_problem() {
        let auth = Some(("provider_auth_failed", 401));
        let view = view(vec![
            endpoint("refused", 3, None, false),
            endpoint("refused", 2, auth, true),
            endpoint("recovered", 9, auth, false),
            endpoint("failing", 1, Some(("http_error", 500)), true),
            endpoint("idle", 0, None, false),
        ]);
        let lines = view.lines();
        let row = |start: &str| {
            let line = lines.iter().find(|line| line.text.starts_with(start)).unwrap();
            (line.text.split_whitespace().collect::<Vec<_>>().join(" "), line.is_problem)
        };
        let expected = "refused credential rejected 2 5 0 % provider_auth_failed (401)".to_owned();
        assert_eq!(row("refused"), (expected, true));
        assert_eq!(row("recovered"), ("recovered ok 1 9 100 % provider_auth_failed (401)".to_owned(), false));
        assert_eq!(row("failing"), ("failing failing 1 1 0 % http_error (500)".to_owned(), true));
        assert_eq!(row("idle"), ("idle unused 1 0 - -".to_owned(), false));
        assert_eq!(row("sqlite"), ("sqlite ready".to_owned(), false));
        assert_eq!(row("blobs"), ("blobs unavailable gone".to_owned(), true));
        let json = serde_json::to_value(&view).unwrap();
        assert_eq!(json["servers"][0]["providers"][0]["state"], "credential_rejected");
        assert_eq!(json["servers"][0]["version"], "1");
    }

    #[test]
    fn missing_and_silent_servers_are_problems() {
        let mut view = view(Vec::new());
        view.servers = vec![ServerView::Silent { id: "s".to_owned(), error: "late".to_owned() }];
        assert_eq!(view.lines()[0], Line::new("Server s: no status: late", true));
        view.servers.clear();
        assert_eq!(view.lines(), [Line::new("No server is running on this machine and data folder for t.db.", true)]);
    }

    #[test]
    fn uptime_has_two_units() {
        for (seconds, text) in [(0, "0 s"), (61, "1 min 1 s"), (7_260, "2 h 1 min"), (180_000, "2 d 2 h")] {
            assert_eq!(uptime(seconds), text);
        }
    }
}
