//! Answers one question in another program. docs/embedding.md shows this file.
#![expect(clippy::print_stdout, reason = "it shows the answer")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use adapters_system::{OsRandomness, OsSecrets, SystemClock, TokioTimer, UuidV7Ids};
use async_trait::async_trait;
use domain::api_key::{ApiKeyScope, Authenticate, CreateApiKey, NewApiKey};
use domain::authority::Authority;
use domain::change::Change;
use domain::decision::{
    DecisionDraft, DecisionProvider, DecisionSettings, NeverDisconnects, ProviderAnswer, ProviderCall, SubmitDecision,
};
use domain::json::Json;
use domain::model::{Model, Pricing};
use domain::pricing::ReportedUsage;
use domain::routing::{AttemptFailure, Endpoint, Wire};
use domain::system::{Clock, IdGenerator, TimeSource};
use domain::testing::{MemoryStore, decision_ports};
use domain::workspace::CreateWorkspace;

/// Your model: it answers yes to every question.
struct AlwaysYes;

#[async_trait]
impl DecisionProvider for AlwaysYes {
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        let questions = call.provider_input.questions.typed.as_deref().into_iter().flatten();
        let answers = Json::object(questions.map(|question| (question.name.as_str(), r#"{"type":"noul","noul":1}"#)));
        let usage = Some(ReportedUsage { input_tokens: 42, output_tokens: 0 });
        Ok(ProviderAnswer { answers, usage, sent_bytes: 0 })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (clock, ids, store) = (Arc::new(SystemClock::new()), Arc::new(UuidV7Ids), MemoryStore::new());

    // A workspace and a key, as a command creates them; then a request proves that it has the secret.
    let by = Authority::system();
    let workspace = CreateWorkspace::new(store.workspaces(), clock.clone(), ids.clone()).default(&by).await?;
    let scope = ApiKeyScope::Inference(workspace.id);
    let new = NewApiKey::named("app", scope);
    let keys = CreateApiKey::new(store.api_keys(), clock.clone(), ids.clone(), Arc::new(OsSecrets));
    let (_, secret) = keys.execute(&Change::plain(&by), new).await?;
    let caller = Authenticate::new(store.key_grants(), clock.clone()).execute(secret.expose()).await?;

    // Every port over the store in memory, then those of this machine in their place.
    let model = Model::minimal("acme/judge".parse()?, Pricing::per_token("0.000000042".parse()?, "0".parse()?));
    let endpoint = Endpoint::new(model.id.clone(), "acme".parse()?, Wire::SystemOne, "judge");
    let mut ports = decision_ports(&store, vec![model], vec![endpoint]);
    ports.provider = Arc::new(AlwaysYes);
    ports.routing.random = Arc::new(OsRandomness::new()?);
    ports.usage.ids = ids.clone();
    ports.time = TimeSource { clock: clock.clone(), timer: Arc::new(TokioTimer) };
    let submit = SubmitDecision::new(ports, DecisionSettings::new(Duration::from_secs(30)));

    let request = DecisionDraft {
        model: Some(Json::parse(r#""acme/judge""#)?),
        questions: Some(Json::parse(r#"{"refund":{"type":"noul","instructions":"Is a refund asked for?"}}"#)?),
        state: Some(Json::parse(r#""I want my money back.""#)?),
        ..DecisionDraft::default()
    };
    let (key, id) = (caller.inference()?, ids.request_id(clock.now()).into());
    let decision = submit.execute(key, id, request.check()?, Arc::new(NeverDisconnects)).await?;
    println!("{} for {} USD", decision.answers.json().text(), decision.cost);
    Ok(())
}
