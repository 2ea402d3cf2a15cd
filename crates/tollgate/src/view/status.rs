//! Views of running servers.

use serde::Serialize;

use super::ProcessView;
use crate::control::{LastError, ProviderHealth, RunningServer, ServerState, ServerStatus};
use crate::output::{Line, table_lines};

/// The status of all servers of a database.
#[derive(Serialize)]
pub struct StatusView {
    /// True if a server runs, and all running servers accept requests.
    pub ok: bool,
    /// The database's file.
    pub database: String,
    /// The running servers.
    pub servers: Vec<ServerView>,
    /// The live processes of the database; null if it cannot be read.
    pub processes: Option<Vec<ProcessView>>,
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

impl From<RunningServer> for ServerView {
    fn from(server: RunningServer) -> Self {
        match server.status {
            Ok(status) => Self::Answered(Box::new(status)),
            Err(error) => Self::Silent { id: server.id, error: format!("{error:#}") },
        }
    }
}

impl ServerView {
    /// Returns true if the server accepts requests.
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Answered(server) if server.state.is_ready())
    }

    fn lines(&self) -> Vec<Line> {
        match self {
            Self::Silent { id, error } => vec![Line::new(format!("Server {id}: no status: {error}"), true)],
            Self::Answered(server) => server_lines(server),
        }
    }
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
        let disk = if journal.writable { "" } else { "; the disk accepts no entries" };
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

impl StatusView {
    /// Returns the lines for a terminal.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        if self.servers.is_empty() {
            lines.push(Line::new(format!("No server is running on the database {}.", self.database), true));
        }
        for server in &self.servers {
            lines.extend(server.lines());
            lines.push(Line::new("", false));
        }
        match self.processes.as_deref() {
            Some([]) | None => {}
            Some(processes) => {
                let rows: Vec<[String; 3]> = processes.iter().map(ProcessView::row).collect();
                lines.extend(table_lines(ProcessView::HEAD, &rows, |_| false));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::EndpointHealth;

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

    fn view(endpoints: Vec<EndpointHealth>) -> StatusView {
        let status: ServerStatus = serde_json::from_value(serde_json::json!({
            "id": "s", "pid": 7, "version": "1", "started_at": "2027-01-01T00:00:00Z", "uptime_seconds": 61,
            "address": "127.0.0.1:1", "state": "ready",
            "stores": [{"name": "sqlite", "ready": true, "error": null}, {"name": "blobs", "ready": false, "error": "gone"}],
        }))
        .unwrap();
        let status = Ok(ServerStatus { providers: ProviderHealth::list(&endpoints), endpoints, ..status });
        let servers = vec![ServerView::from(RunningServer { id: "s".to_owned(), status })];
        StatusView { ok: true, database: "t.db".to_owned(), servers, processes: None }
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
        view.servers = vec![RunningServer { id: "s".to_owned(), status: Err(anyhow::anyhow!("late")) }.into()];
        assert_eq!(view.lines()[0], Line::new("Server s: no status: late", true));
        assert!(!view.servers[0].is_ready());
        view.servers.clear();
        assert_eq!(view.lines(), [Line::new("No server is running on the database t.db.", true)]);
    }

    #[test]
    fn uptime_has_two_units() {
        for (seconds, text) in [(0, "0 s"), (61, "1 min 1 s"), (7_260, "2 h 1 min"), (180_000, "2 d 2 h")] {
            assert_eq!(uptime(seconds), text);
        }
    }
}
