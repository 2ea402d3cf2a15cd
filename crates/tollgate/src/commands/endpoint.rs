//! `tollgate endpoint …` and `tollgate provider …`

use api_actix::{ConfiguredEndpoint, EndpointHealth, EndpointLimits, LastError};
use domain::money::Price;

use super::servers::STATUS;
use super::status::{self, JoinedStatus, ServerView, per_cent};
use super::{add_provider, api};
use crate::cli::{EndpointCommand, ProviderCommand, ServerArgs};
use crate::commands::prelude::*;
use crate::output::{per_million_tokens, table_lines};

/// Runs a command on endpoints.
pub async fn run(context: &Context, server: &ServerArgs, command: EndpointCommand) -> anyhow::Result<ExitCode> {
    match command {
        EndpointCommand::List { model } => list(context, server, model.as_deref()).await,
    }
}

async fn list(context: &Context, server: &ServerArgs, model: Option<&str>) -> anyhow::Result<ExitCode> {
    let status = status::read(context, server, &with_query(STATUS, &[("model", model)])).await?;
    let list = List { data: endpoints(status)? };
    context.output.show_lines(&list, || {
        let rows: Vec<_> = list.data.iter().map(EndpointView::line).collect();
        table_lines(HEAD, &rows, |row| list.data[row].is_failing())
    })
}

/// Returns the endpoints with their health in the running servers; notes why it is unknown otherwise.
///
/// # Errors
/// Servers run, and none answered.
fn endpoints(status: JoinedStatus) -> anyhow::Result<Vec<EndpointView>> {
    if status.servers.is_empty() {
        note("No server is running: the health of the endpoints is unknown.");
    }
    let (mut servers, mut silent) = (Vec::new(), Vec::new());
    for server in status.servers {
        match server {
            ServerView::Answered(server) => servers.push(server),
            ServerView::Silent { id, error } => silent.push((id, error)),
        }
    }
    if let ([], [(_, error), ..]) = (&servers[..], &silent[..]) {
        bail!("{error}");
    }
    for (id, error) in silent {
        note(&format!("The server {id} does not show its status: {error}"));
    }
    let view = |endpoint: ConfiguredEndpoint| {
        let health = servers.iter().filter_map(|server| {
            let is_own =
                |one: &&EndpointHealth| one.is_of(&endpoint.model, &endpoint.provider, &endpoint.upstream_model);
            let health = server.endpoints.iter().find(is_own)?.clone();
            Some(ServerEndpointHealth { server: server.id.clone(), health })
        });
        let health = (!servers.is_empty()).then(|| health.collect());
        EndpointView { endpoint, health }
    };
    Ok(status.endpoints.into_iter().map(view).collect())
}

/// An endpoint with its health.
#[derive(Serialize)]
struct EndpointView {
    #[serde(flatten)]
    endpoint: ConfiguredEndpoint,
    /// Its health in each running server that has it; null if no server runs.
    health: Option<Vec<ServerEndpointHealth>>,
}

/// The health of an endpoint in a running server.
#[derive(Serialize)]
struct ServerEndpointHealth {
    /// The id of the server's start.
    server: String,
    #[serde(flatten)]
    health: EndpointHealth,
}

/// The column heads of [`EndpointView::line`].
const HEAD: [&str; 11] = [
    "MODEL",
    "PROVIDER",
    "WIRE",
    "USD/M TOKENS IN",
    "USD/M TOKENS OUT",
    "LIMITS",
    "DATA",
    "ACCEPTED",
    "LATENCY MS",
    "BOUND",
    "LAST ERROR",
];

impl EndpointView {
    /// Returns true if the last attempt of a running server failed.
    fn is_failing(&self) -> bool {
        self.health.iter().flatten().any(|one| one.health.last_attempt_failed)
    }

    /// Returns the health in the server with the lowest accept rate.
    fn worst_health(&self) -> Option<&EndpointHealth> {
        let rate = |health: &EndpointHealth| health.accept_rate.unwrap_or(f64::INFINITY);
        let all = self.health.iter().flatten().map(|one| &one.health);
        all.min_by(|one, other| rate(one).total_cmp(&rate(other)))
    }

    /// Returns the most by which a running server raises the bound.
    fn raised_bound(&self) -> Option<String> {
        let ratios = self.health.iter().flatten().filter_map(|one| one.health.bound_ratio);
        ratios.max_by(f64::total_cmp).map(|ratio| format!("× {ratio:.1}"))
    }

    /// Returns a table row, with the health in the server with the lowest accept rate.
    fn line(&self) -> [String; 11] {
        let (endpoint, health) = (&self.endpoint, self.worst_health());
        let latency = health.and_then(|health| health.latency_ms).map(|latency| format!("{latency:.1}"));
        let last_error = health.and_then(|health| health.last_error.as_ref()).map(LastError::to_string);
        let prices = endpoint.prices.as_ref();
        let data = match (endpoint.zdr, endpoint.data_collection.as_str()) {
            (true, _) => "zero retention",
            (false, "deny") => "no data collection",
            _ => "may retain",
        };
        let unknown = || "-".to_owned();
        [
            endpoint.model.clone(),
            endpoint.provider.clone(),
            endpoint.wire.clone(),
            prices.map_or_else(unknown, |prices| usd_per_million(&prices.prompt)),
            prices.map_or_else(unknown, |prices| usd_per_million(&prices.completion)),
            limits_in_words(&endpoint.limits),
            data.to_owned(),
            per_cent(health.and_then(|health| health.accept_rate)),
            latency.unwrap_or_else(unknown),
            self.raised_bound().unwrap_or_else(unknown),
            last_error.unwrap_or_else(unknown),
        ]
    }
}

fn usd_per_million(usd_per_token: &str) -> String {
    usd_per_token.parse::<Price>().map_or_else(|_| usd_per_token.to_owned(), per_million_tokens)
}

fn limits_in_words(limits: &EndpointLimits) -> String {
    let limits = [
        (limits.max_questions, "questions"),
        (limits.max_options, "options"),
        (limits.max_levels, "levels"),
        (limits.max_body_bytes, "bytes"),
        (limits.max_input_tokens, "tokens"),
    ];
    let words: Vec<String> =
        limits.iter().filter_map(|(limit, word)| limit.map(|limit| format!("{word} {limit}"))).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}

/// Runs a command on providers.
pub async fn run_provider(context: &Context, command: ProviderCommand) -> anyhow::Result<ExitCode> {
    match command {
        ProviderCommand::Add(args) => add_provider::run(context, args).await,
        ProviderCommand::Test { slug, model, server } => {
            api::run(context, &server, async |api| test(api, &slug, model.as_deref()).await).await
        }
    }
}

/// Tests a provider; fails unless its answer is valid.
async fn test(api: &Api<'_>, slug: &str, model: Option<&str>) -> anyhow::Result<ExitCode> {
    let body = object(&[("model", model.map(Json::string))]);
    let report = api.call(Method::POST, &format!("/providers/{}/test", segment(slug)), Some(&body)).await?;
    api.show(&report)?;
    let ok = pointer(&report, "/data/ok").is_some_and(|ok| ok.text() == "true");
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(prices: &serde_json::Value, limits: &serde_json::Value, policy: (bool, &str)) -> EndpointView {
        let (zdr, data_collection) = policy;
        let endpoint = json!({
            "model": "a/b", "provider": "p", "provider_name": "P", "wire": "system-one", "upstream_model": "m",
            "prices": prices, "question_types": ["noul"], "limits": limits, "image_transport": "none",
            "confidence": "computed", "probability_decimals": 6, "zdr": zdr, "data_collection": data_collection,
            "quantization": "unknown", "attempt_timeout_ms": 1_000,
        });
        EndpointView { endpoint: serde_json::from_value(endpoint).unwrap(), health: None }
    }

    #[test]
    fn line_shows_prices_limits_and_data_policy() {
        let prices = json!({"prompt": "0.000000042", "completion": "0", "source": "catalogue"});
        let limits = json!({"max_options": 26, "max_levels": 4});
        for (view, expected) in [
            (view(&prices, &limits, (false, "deny")), ["0.042", "0", "options 26, levels 4", "no data collection"]),
            (view(&json!(null), &json!({}), (true, "deny")), ["-", "-", "-", "zero retention"]),
            (view(&json!(null), &json!({}), (false, "allow")), ["-", "-", "-", "may retain"]),
        ] {
            assert_eq!(view.line()[3..7], expected);
        }
    }

    #[test]
    fn line_shows_health_of_worst_server() {
        let health = |rate: Option<f64>, failed: bool, bound_ratio| ServerEndpointHealth {
            server: "s".to_owned(),
            health: EndpointHealth {
                paused: false,
                model: "a/b".to_owned(),
                provider: "p".to_owned(),
                upstream_model: "m".to_owned(),
                throttled: false,
                throttled_workspaces: 0,
                accept_rate: rate,
                latency_ms: Some(12.34),
                retry_in_seconds: None,
                attempts: 2,
                last_error: failed.then(|| LastError {
                    outcome: "connect_error".to_owned(),
                    upstream_status: None,
                    rejected_credential: false,
                    cause: Some("name_not_found".to_owned()),
                }),
                last_attempt_failed: failed,
                bound_ratio,
                bound_extra_tokens: None,
            },
        };
        let view = |health| EndpointView { health, ..view(&json!(null), &json!({}), (false, "allow")) };
        let cells = |view: &EndpointView| view.line()[7..].join(" ");
        assert_eq!(cells(&view(None)), "- - - -");
        assert!(serde_json::to_value(view(None)).unwrap()["health"].is_null());
        let all =
            vec![health(None, false, Some(2.0)), health(Some(0.25), true, None), health(Some(1.0), false, Some(17.32))];
        let shown = view(Some(all));
        assert_eq!(cells(&shown), "25 % 12.3 × 17.3 connect_error: name not found");
        assert!(shown.is_failing() && !view(Some(vec![health(Some(1.0), false, None)])).is_failing());
        assert_eq!(serde_json::to_value(&shown).unwrap()["health"][1]["server"], "s");
    }
}
