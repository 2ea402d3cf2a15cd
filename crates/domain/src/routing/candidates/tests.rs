use super::*;
use crate::decision::{DecisionDraft, DecisionRequest};
use crate::json::Json;
use crate::money::Price;
use crate::question::QuestionType;
use crate::routing::{
    AttemptFailure, AttemptReport, DataPolicy, HealthPolicy, MaxPrice, Observation, Quantization, Wire,
};
use crate::testing::ScriptedRandomness;

mod balance;
mod filters;
mod order;
mod properties;
mod throttling;

/// A time after the start of the clock, so that there are earlier times.
const NOW: Duration = Duration::from_secs(100);

fn price(text: &str) -> Price {
    text.parse().unwrap()
}

/// A candidate of `acme/judge` at this provider. The slug is also the model's name at the provider.
fn candidate(index: usize, provider: &str, prompt: &str) -> Candidate {
    let model: ModelId = "acme/judge".parse().unwrap();
    let endpoint =
        Endpoint { index, ..Endpoint::new(model.clone(), provider.parse().unwrap(), Wire::SystemOne, provider) };
    Candidate {
        model,
        endpoint: Arc::new(endpoint),
        prices: TokenPrices { prompt: price(prompt), completion: price("0") },
        is_priced: true,
    }
}

fn changed(candidate: Candidate, change: impl FnOnce(&mut Endpoint)) -> Candidate {
    let mut endpoint = (*candidate.endpoint).clone();
    change(&mut endpoint);
    Candidate { endpoint: Arc::new(endpoint), ..candidate }
}

fn unauthorised() -> Observation {
    Observation::from(&AttemptFailure::from_status(401, None))
}

fn failed() -> Observation {
    Observation::from(&AttemptFailure::from_status(500, None))
}

/// One question of each common type.
const EACH_TYPE: &str = r#"{"n":{"type":"noul","instructions":"?"},
    "c":{"type":"choice","criteria":{"x":null,"y":null}},"s":{"type":"score","criteria":["a","b"]}}"#;

fn request(questions: &str) -> DecisionRequest {
    let draft = DecisionDraft {
        model: Json::parse("\"acme/judge\"").ok(),
        questions: Json::parse(questions).ok(),
        state: Json::parse("\"s\"").ok(),
        ..DecisionDraft::default()
    };
    draft.check().unwrap()
}

/// The inputs of a choice of candidates.
struct SelectionFixture {
    models: Vec<(Vec<Candidate>, Option<Sort>)>,
    preferences: RoutingPreferences,
    request: DecisionRequest,
    board: HealthBoard,
    workspace: WorkspaceId,
    draws: Vec<u64>,
}

struct Outcome {
    chosen: Result<SelectedCandidates, NoCandidates>,
    funnel: RoutingFunnel,
}

impl SelectionFixture {
    fn new(candidates: Vec<Candidate>) -> Self {
        Self {
            models: vec![(candidates, None)],
            preferences: RoutingPreferences::default(),
            request: request(EACH_TYPE),
            board: HealthBoard::new(8, HealthPolicy::default()),
            workspace: WorkspaceId::from_uuid(uuid::Uuid::from_u128(1)),
            draws: Vec::new(),
        }
    }

    /// Three providers: a, b and c, from the highest price to the lowest.
    fn of_three() -> Self {
        Self::new(vec![candidate(0, "a", "3e-6"), candidate(1, "b", "2e-6"), candidate(2, "c", "1e-6")])
    }

    fn with_preferences(mut self, change: impl FnOnce(&mut RoutingPreferences)) -> Self {
        change(&mut self.preferences);
        self
    }

    fn report(&self, endpoint: usize, observation: Observation, at: Duration) {
        self.board.report(&AttemptReport { endpoint, workspace: self.workspace, began: at, observation }, at);
    }

    /// Begins a back-off for all workspaces.
    fn reject_credentials(&self, index: usize) {
        self.report(index, unauthorised(), NOW);
    }

    fn choose(&self) -> Outcome {
        let random = ScriptedRandomness::new(self.draws.clone());
        let selection = Selection {
            preferences: &self.preferences,
            provider_input: &self.request.provider_input,
            health: &self.board,
            workspace: self.workspace,
            random: &random,
            now: NOW,
        };
        let mut funnel = RoutingFunnel::new();
        let chosen = selection.choose(self.models.clone(), &mut funnel);
        Outcome { chosen, funnel }
    }

    fn names(&self) -> Vec<String> {
        self.choose().names()
    }
}

impl Outcome {
    fn names(self) -> Vec<String> {
        names(&self.chosen.unwrap().candidates)
    }
}

fn names(candidates: &[Candidate]) -> Vec<String> {
    candidates.iter().map(|candidate| candidate.endpoint.upstream_model.to_string()).collect()
}

fn slugs(list: &[&str]) -> Vec<String> {
    list.iter().map(|slug| (*slug).to_owned()).collect()
}
