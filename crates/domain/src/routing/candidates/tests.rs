use super::*;
use crate::decision::{DecisionDraft, DecisionRequest, QuestionType};
use crate::json::Json;
use crate::routing::{Admission, DataPolicy, HealthPolicy, MaxPrice, Observation, Quantization, Wire};
use crate::testing::ScriptedRandomness;

mod balance;
mod filters;
mod order;
mod properties;
mod resting;

/// A second after the beginning, so that there is a time before it.
const NOW: Duration = Duration::from_secs(100);

fn price(text: &str) -> Price {
    text.parse().unwrap()
}

/// Of `acme/judge`, by the provider of that slug, with the slug as the model's name there.
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

/// Everything that a choice depends on.
struct Field {
    models: Vec<(Vec<Candidate>, Option<Sort>)>,
    preferences: RoutingPreferences,
    request: DecisionRequest,
    board: HealthBoard,
    draws: Vec<u64>,
}

struct Outcome {
    chosen: Result<Chosen, Emptied>,
    funnel: RoutingFunnel,
}

impl Field {
    fn new(candidates: Vec<Candidate>) -> Self {
        Self {
            models: vec![(candidates, None)],
            preferences: RoutingPreferences::default(),
            request: request(EACH_TYPE),
            board: HealthBoard::new(8, HealthPolicy::default()),
            draws: Vec::new(),
        }
    }

    /// Three providers, a, b and c, from dear to cheap.
    fn of_three() -> Self {
        Self::new(vec![candidate(0, "a", "3e-6"), candidate(1, "b", "2e-6"), candidate(2, "c", "1e-6")])
    }

    fn wanting(mut self, want: impl FnOnce(&mut RoutingPreferences)) -> Self {
        want(&mut self.preferences);
        self
    }

    fn report(&self, index: usize, observation: Observation, at: Duration) {
        let Admission::Admitted(permit) = self.board.admit(index, at) else { panic!("it is closed") };
        self.board.report(permit, observation, at);
    }

    fn open(&self, index: usize) {
        self.report(index, Observation::Unauthorised, NOW);
    }

    fn choose(&self) -> Outcome {
        let random = ScriptedRandomness::new(self.draws.clone());
        let selection = Selection {
            preferences: &self.preferences,
            inquiry: &self.request.inquiry,
            health: &self.board,
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
    candidates.iter().map(|candidate| candidate.endpoint.upstream_model.clone()).collect()
}

fn slugs(list: &[&str]) -> Vec<String> {
    list.iter().map(|slug| (*slug).to_owned()).collect()
}
