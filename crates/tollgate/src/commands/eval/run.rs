//! `tollgate eval run`: asks every model about every item that has no answer in the result file.

use std::cell::Cell;
use std::collections::BTreeMap;

use adapters_system::SystemClock;
use domain::decision::TokenFactor;
use domain::money::{Charge, Price};
use domain::question::Questions;
use domain::statistics::EscalatedQuestions;
use domain::system::Clock as _;
use futures_util::stream::{self, StreamExt as _};
use http_client::HttpClientSettings;
use serde_json::value::RawValue;

use super::dataset::{self, Item};
use super::results::{FailureRow, Header, ResultRow, Results};
use super::{live, report};
use crate::cli::{EvalCommand, EvalRunArgs};
use crate::commands::api;
use crate::commands::ask::{self, GRACE, api_key, error_message};
use crate::commands::context::confirm;
use crate::commands::door::split_url;
use crate::commands::prelude::*;
use crate::commands::server_client::{ServerClient, ServerResponse};

/// The longest wait before a request is repeated.
const MAX_WAIT: Duration = Duration::from_mins(1);
/// The most repetitions of a request that a server or a provider cannot serve now.
const MAX_REPETITIONS: u32 = 20;
/// The most different errors that are shown.
const MAX_SHOWN: usize = 10;
/// The errors after which a command without any answer stops.
const MAX_FAILURES: usize = 20;
/// The additional tokens that a provider may count for a request, unless the configuration has more for the model.
const OVERHEAD_TOKENS: u64 = 128;
/// The wire that asks each question with the whole state.
const CHAT: &str = "chat-completions";

/// Runs a command on evaluations.
pub async fn run(context: &Context, command: EvalCommand) -> anyhow::Result<ExitCode> {
    match command {
        EvalCommand::Run(args) => evaluate(context, args).await,
        EvalCommand::Report(args) => match (&args.results, &args.preset) {
            (Some(results), _) => report::show_results(context, &Results::read(results)?, &args.report),
            (None, preset) => {
                let preset = preset.as_deref().unwrap_or_default();
                api::run(context, &args.server, async |api| live::show_evidence(api, preset, &args).await).await
            }
        },
    }
}

async fn evaluate(context: &Context, args: EvalRunArgs) -> anyhow::Result<ExitCode> {
    let server = Server::open(context, &args).await?;
    let preset = server.get(&format!("/presets/{}", segment(&args.preset))).await;
    let preset = preset.with_context(|| format!("the preset {:?} cannot be read", args.preset))?;
    let header = Header::of_preset(&args.preset, &preset)?;
    let questions = header.questions()?;
    let dataset = dataset::read(&args.dataset, questions.typed.as_deref().unwrap_or_default())?;
    if let Some(sentence) = dataset.repetition() {
        note(&sentence);
    }
    let items = dataset.items;
    let mut models = Vec::new();
    for name in &args.model {
        let model = Model::read(context, &server, name).await?;
        // Aliases would be asked, and paid, twice for one group.
        if let Some(other) = models.iter().find(|other: &&Model| other.id == model.id) {
            bail!("--model {:?} and --model {name:?} are one model, {}", other.name, model.id);
        }
        models.push(model);
    }
    let mut results = Results::open(&args.results, &header)?;
    let answered = results.take_labels(&items)?;
    let pairs = items.iter().flat_map(|item| models.iter().map(move |model| (item, model)));
    let pending: Vec<(&Item, &Model)> =
        pairs.filter(|(item, model)| !answered.contains(&(item.id.clone(), model.id.clone()))).collect();
    if !pending.is_empty() {
        let cost = highest_cost(&pending, &questions, context.config.money.max_tokens_per_byte);
        // A chat model receives prompts of the server, and another server may have other settings.
        let is_exact = args.url.is_none() && pending.iter().all(|(_, model)| !model.is_chat());
        let cost = match cost {
            Some(cost) if is_exact => format!("{cost} USD at most"),
            Some(cost) => format!("about {cost} USD"),
            None => "an unknown amount".to_owned(),
        };
        let requests = counted(pending.len() as u64, "request");
        let facts = format!("Sending {requests} costs {cost}, without repeated attempts");
        if args.yes {
            note(&facts);
        } else {
            let is_confirmed = confirm(&context.output, &facts, "Send them?", "--yes confirms")?;
            ensure!(is_confirmed, "nothing was asked");
        }
        ask_all(&server, &questions, &pending, usize::from(args.concurrency), &mut results).await?;
    }
    report::show_results(context, &results, &args.report)
}

/// The server that is asked.
struct Server {
    client: ServerClient,
    base_path: String,
    key: String,
    clock: SystemClock,
    /// The monotonic time at which a request passed the limits last.
    passed_at: Cell<Duration>,
    /// The time without such a request after which a limit ends the command.
    max_silence: Duration,
}

impl Server {
    async fn open(context: &Context, args: &EvalRunArgs) -> anyhow::Result<Self> {
        let key = api_key(context, args.key_file.as_deref())?;
        let timeout = context.config.limits.request_timeout + GRACE;
        let (client, base_path) = if let Some(url) = &args.url {
            let (origin, base_path) = split_url(url)?;
            let settings = HttpClientSettings { proxy: context.config.proxy.clone(), ..HttpClientSettings::default() };
            let base_path = base_path.unwrap_or_else(|| context.config.server.base_path.clone());
            (ServerClient::of_origin(origin, &settings, timeout)?, base_path)
        } else {
            let (address, base_path) = ask::server(context).await?;
            (ServerClient::new(address, timeout)?, base_path)
        };
        let clock = SystemClock::new();
        let passed_at = Cell::new(clock.monotonic());
        Ok(Self { client, base_path, key, clock, passed_at, max_silence: timeout + MAX_WAIT })
    }

    async fn send(&self, method: &Method, path: &str, json: Option<String>) -> anyhow::Result<ServerResponse> {
        self.client.send(method, &format!("{}{path}", self.base_path), Some(&self.key), json).await
    }

    /// Reads a resource.
    async fn get(&self, path: &str) -> anyhow::Result<Json> {
        loop {
            let response = self.send(&Method::GET, path, None).await?;
            if let Some(wait) = self.wait_for_limit(&response) {
                tokio::time::sleep(wait).await;
                continue;
            }
            ensure!(response.status == 200, "{}", sentence(&response));
            return Ok(Json::parse(&response.body)?);
        }
    }

    /// Returns the time after which a limit may accept the request. Other requests may take what becomes free before it,
    /// so it is repeated as long as any request passes. `None` if no limit rejected it, or if it would wait in vain.
    fn wait_for_limit(&self, response: &ServerResponse) -> Option<Duration> {
        let wait = match response.status {
            // Other requests hold the money until they end; a limit that is exhausted has no such header.
            402 => response.retry_after,
            429 => Some(response.retry_after.unwrap_or(Duration::from_secs(1))),
            _ => None,
        };
        let now = self.clock.monotonic();
        if wait.is_none() {
            self.passed_at.set(now);
        }
        let silence = now.saturating_sub(self.passed_at.get());
        wait.filter(|wait| *wait <= MAX_WAIT && silence <= self.max_silence)
    }
}

/// A model that is asked.
struct Model {
    name: String,
    /// The id of the model in the catalogue.
    id: String,
    endpoints: Vec<ModelEndpoint>,
    overhead: u64,
}

/// An endpoint of a model.
struct ModelEndpoint {
    /// The provider's slug.
    provider: String,
    /// The provider's name, which answers have. Several providers may have it.
    provider_name: String,
    wire: String,
    /// The higher price of a token; `None` for a variable one.
    price: Option<Price>,
    /// The most questions of a call; `None` without a limit.
    max_questions: Option<u64>,
    /// The questions that it receives of an escalated request.
    escalated_questions: EscalatedQuestions,
}

impl ModelEndpoint {
    /// Returns what tells the figures of its answers from those of others.
    fn group(&self) -> (&str, &str, EscalatedQuestions) {
        (&self.provider, &self.wire, self.escalated_questions)
    }
}

impl Model {
    async fn read(context: &Context, server: &Server, name: &str) -> anyhow::Result<Self> {
        let (author, slug) = name.split_once('/').with_context(|| format!("--model {name:?} is not AUTHOR/SLUG"))?;
        let found = server.get(&format!("/models/{}/{}/endpoints", segment(author), segment(slug))).await;
        let found = found.with_context(|| format!("the model {name:?} cannot be read"))?;
        let endpoints = pointer(&found, "/data/endpoints").and_then(|list| list.elements()).unwrap_or_default();
        ensure!(!endpoints.is_empty(), "the model {name:?} has no endpoint");
        let read = |endpoint: &Json| {
            let text = |at: &str| text_at(endpoint, at).unwrap_or_default();
            let price = |at: &str| text(at).parse::<Price>().ok().filter(|price| !price.is_variable());
            let dearest = price("/pricing/prompt").zip(price("/pricing/completion")).map(|(one, other)| one.max(other));
            let is_independent = pointer(endpoint, "/independent_questions").is_some_and(|flag| flag.text() == "true");
            ModelEndpoint {
                provider: text("/tag"),
                provider_name: text("/provider_name"),
                wire: text("/wire"),
                price: dearest,
                max_questions: pointer(endpoint, "/limits/max_questions").and_then(|most| most.text().parse().ok()),
                escalated_questions: if is_independent { EscalatedQuestions::Open } else { EscalatedQuestions::All },
            }
        };
        let configured = context.config.endpoints.iter().filter(|endpoint| endpoint.model.as_str() == name);
        let overhead = configured.map(|endpoint| endpoint.prompt_overhead_tokens).fold(OVERHEAD_TOKENS, u64::max);
        let id = text_at(&found, "/data/id").with_context(|| format!("the model {name:?} has no id"))?;
        Ok(Self { name: name.to_owned(), id, endpoints: endpoints.iter().map(read).collect(), overhead })
    }

    /// Returns the endpoint of an answer.
    ///
    /// # Errors
    /// Several providers, or several endpoints of one, may have answered: figures of two of them are never pooled.
    fn endpoint(&self, provider: &str) -> anyhow::Result<&ModelEndpoint> {
        let mut found = self.endpoints.iter().filter(|endpoint| endpoint.provider_name == provider);
        let first = found.next().filter(|first| found.all(|other| other.group() == first.group()));
        first.with_context(|| {
            format!(
                "the endpoint of the answer by {provider:?} is not known: {} needs a model, or a guardrail of the key, with \
                 one endpoint that receives all questions at once",
                self.name
            )
        })
    }

    fn is_chat(&self) -> bool {
        self.endpoints.iter().any(|endpoint| endpoint.wire == CHAT)
    }

    /// Returns the most that a request costs, of a chat model without its prompts; `None` for a variable price.
    fn highest_cost(&self, bytes: u64, questions: u64, factor: TokenFactor) -> Option<Charge> {
        let tokens = factor.times(bytes.saturating_add(self.overhead));
        // Each call has the whole state.
        let of_endpoint = |ModelEndpoint { wire, price, max_questions, .. }: &ModelEndpoint| {
            let calls =
                if wire == CHAT { questions } else { questions.div_ceil(max_questions.unwrap_or(u64::MAX).max(1)) };
            (*price)?.times(tokens.saturating_mul(calls.max(1)))
        };
        let costs: Option<Vec<Charge>> = self.endpoints.iter().map(of_endpoint).collect();
        costs?.into_iter().max()
    }
}

fn highest_cost(pending: &[(&Item, &Model)], questions: &Questions, factor: TokenFactor) -> Option<Usd> {
    let mut costs = pending.iter().map(|(item, model)| {
        let bytes = body(item, model, questions).len() as u64;
        model.highest_cost(bytes, questions.count() as u64, factor)
    });
    let first = costs.next()??;
    costs.try_fold(first, |sum, cost| sum.checked_add(cost?))?.round_up()
}

fn body(item: &Item, model: &Model, questions: &Questions) -> String {
    let name = Json::string(&model.name);
    let members = [("model", name.text()), ("questions", questions.json.text()), ("state", item.state.text())];
    Json::object(members).text().to_owned()
}

/// Sends the requests and adds their answers to the result file.
///
/// # Errors
/// The requests cannot go on. The answers so far are in the file.
async fn ask_all(
    server: &Server,
    questions: &Questions,
    pending: &[(&Item, &Model)],
    concurrency: usize,
    results: &mut Results,
) -> anyhow::Result<()> {
    let progress = Progress::requests("Asking", pending.len() as u64);
    // Requests under way are awaited after a stop: they are charged.
    let is_stopped = Cell::new(false);
    server.passed_at.set(server.clock.monotonic());
    let asked = pending.iter().map(|(item, model)| ask(server, questions, item, model, &is_stopped));
    let mut asked = stream::iter(asked).buffer_unordered(concurrency);
    let mut counts = Counts::default();
    while let Some(outcome) = asked.next().await {
        counts.add(outcome, results);
        progress.add(1);
        is_stopped.set(counts.stop.is_some());
    }
    progress.end();
    let failed = counts.failed();
    if failed > 0 {
        note(&format!(
            "{failed} of {} failed; the same command repeats them:",
            counted(pending.len() as u64, "request")
        ));
    }
    for (sentence, count) in counts.failures.iter().take(MAX_SHOWN) {
        note(&format!("  {} {sentence}", counted(*count as u64, "time")));
    }
    let (answered, all) = (counts.answered, counted(pending.len() as u64, "request"));
    let stopped = |reason| {
        anyhow!(
            "{reason}: stopped after {answered} of {all}; the same command continues, and `tollgate eval report \
             --results` shows the answers so far"
        )
    };
    counts.stop.map_or(Ok(()), |reason| Err(stopped(reason)))
}

/// The outcomes of requests.
#[derive(Default)]
struct Counts {
    answered: usize,
    /// Failed requests whose items were not refused.
    unanswered: usize,
    /// The numbers of failed requests by error.
    failures: BTreeMap<String, usize>,
    /// The reason to send no more requests.
    stop: Option<String>,
}

impl Counts {
    /// Counts an outcome, and writes an answer or a failure, also after a stop.
    fn add(&mut self, outcome: Outcome, results: &mut Results) {
        match outcome {
            Outcome::Answer(row) => {
                if let Err(error) = results.check(&row) {
                    let ResultRow { item, asked, .. } = *row;
                    return self
                        .fail(FailureRow { item, asked, error: format!("invalid answers: {error:#}") }, results);
                }
                match results.add(*row) {
                    Ok(()) => self.answered += 1,
                    Err(error) => self.stop = Some(format!("{error:#}")),
                }
            }
            Outcome::Failure(failure) => self.fail(failure, results),
            Outcome::Refused(failure) => self.write(failure, results),
            Outcome::Stop(sentence) => self.stop = Some(sentence),
            Outcome::NotSent => {}
        }
    }

    /// Counts a failure that may be of every request.
    fn fail(&mut self, failure: FailureRow, results: &mut Results) {
        self.unanswered += 1;
        self.write(failure, results);
        if self.answered == 0 && self.unanswered >= MAX_FAILURES {
            self.stop = Some("all requests fail".to_owned());
        }
    }

    fn write(&mut self, failure: FailureRow, results: &mut Results) {
        *self.failures.entry(failure.error.clone()).or_default() += 1;
        if let Err(error) = results.add_failure(failure) {
            self.stop = Some(format!("{error:#}"));
        }
    }

    fn failed(&self) -> usize {
        self.failures.values().sum()
    }
}

/// The outcome of a request.
enum Outcome {
    /// It has an answer.
    Answer(Box<ResultRow>),
    /// It failed, and others may not.
    Failure(FailureRow),
    /// Its item was refused, by a guardrail or a limit of size.
    Refused(FailureRow),
    /// Others would fail, too.
    Stop(String),
    /// It was not sent after a stop.
    NotSent,
}

/// Sends a request, again while a limit asks to wait.
async fn ask(server: &Server, questions: &Questions, item: &Item, model: &Model, is_stopped: &Cell<bool>) -> Outcome {
    let body = body(item, model, questions);
    let row = |error| FailureRow { item: item.id.clone(), asked: model.id.clone(), error };
    let mut repetitions = 0;
    while !is_stopped.get() {
        let sent = server.clock.monotonic();
        let response = server.send(&Method::POST, "/systemone", Some(body.clone())).await;
        let response = match response {
            Ok(response) => response,
            Err(error) => return Outcome::Stop(format!("{error:#}")),
        };
        let latency = server.clock.monotonic().saturating_sub(sent);
        if response.status == 200 {
            server.passed_at.set(server.clock.monotonic());
            let answer = result_row(item, model, &response.body, latency);
            return match answer {
                Ok(answer) => Outcome::Answer(answer.into()),
                Err(error) => Outcome::Failure(row(format!("{error:#}"))),
            };
        }
        if let Some(wait) = server.wait_for_limit(&response) {
            tokio::time::sleep(wait).await;
            continue;
        }
        match (response.status, response.retry_after) {
            (503, Some(wait)) if wait <= MAX_WAIT && repetitions < MAX_REPETITIONS => {
                tokio::time::sleep(wait).await;
                repetitions += 1;
            }
            (401 | 402 | 404 | 429, _) => return Outcome::Stop(sentence(&response)),
            (400 | 403 | 413, _) => return Outcome::Refused(row(sentence(&response))),
            _ => return Outcome::Failure(row(sentence(&response))),
        }
    }
    Outcome::NotSent
}

/// Returns status and message of an error response.
fn sentence(response: &ServerResponse) -> String {
    let message = error_message(&response.body).unwrap_or_else(|| "no message".to_owned());
    format!("{}: {message}", response.status)
}

fn result_row(item: &Item, model: &Model, body: &str, latency: Duration) -> anyhow::Result<ResultRow> {
    let body = Json::parse(body).context("the server answered without JSON")?;
    let member = |at: &str| pointer(&body, at).with_context(|| format!("the answer has no member {}", &at[1..]));
    let text = |at: &str| member(at)?.as_string().with_context(|| format!("the member {} is no text", &at[1..]));
    let raw = |json: &Json| RawValue::from_string(json.text().to_owned());
    let endpoint = model.endpoint(&text("/provider")?)?;
    Ok(ResultRow {
        item: item.id.clone(),
        labels: raw(&item.labels)?,
        state_bytes: item.state.text().len() as u64,
        asked: model.id.clone(),
        id: text("/id")?,
        model: text("/model")?,
        wire: endpoint.wire.clone(),
        escalated_questions: endpoint.escalated_questions.as_str().to_owned(),
        provider: endpoint.provider.clone(),
        answers: raw(&member("/answers")?)?,
        cost: raw(&member("/usage/cost")?)?,
        latency_ms: u64::try_from(latency.as_millis()).unwrap_or(u64::MAX),
    })
}

#[cfg(test)]
mod tests;
