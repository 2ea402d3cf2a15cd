//! Which endpoints may be tried, and in which order.

mod ordering;

use std::sync::Arc;
use std::time::Duration;

use super::{
    Admission, Endpoint, HealthBoard, RoutingPreferences, Sort, ThrottledEndpoint, ThrottledEndpoints,
    UnsupportedQuestions,
};
use crate::ids::WorkspaceId;
use crate::model::{ModelId, Pricing};
use crate::pricing::TokenPrices;
use crate::question::{ProviderInput, Question};
use crate::system::Randomness;

/// How many endpoints each step of routing left.
pub type RoutingFunnel = Vec<(&'static str, usize)>;

/// An endpoint that may be tried, and what it charges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The catalogue row that it serves.
    pub model: ModelId,
    /// The endpoint.
    pub endpoint: Arc<Endpoint>,
    /// Its prices: its own, else those of the catalogue's row.
    pub prices: TokenPrices,
    /// False if neither the operator nor the catalogue sets a price: `prices` are then zeros or the default price.
    pub is_priced: bool,
}

impl Candidate {
    /// Creates the candidate of an endpoint; `pricing` is that of the model's catalogue row. Returns `None` if neither
    /// has prices.
    pub(crate) fn new(model: &ModelId, endpoint: &Arc<Endpoint>, pricing: Option<&Pricing>) -> Option<Self> {
        let (prices, is_priced) = match (endpoint.prices, pricing) {
            (Some(own), _) => (own, true),
            (None, Some(row)) => (TokenPrices { prompt: row.prompt, completion: row.completion }, row.is_known),
            (None, None) => return None,
        };
        Some(Self { model: model.clone(), endpoint: Arc::clone(endpoint), prices, is_priced })
    }
}

/// The inputs of a choice of endpoints.
pub struct Selection<'a> {
    /// The preferences of the client.
    pub preferences: &'a RoutingPreferences,
    /// The input to send.
    pub provider_input: &'a ProviderInput,
    /// The health of the endpoints.
    pub health: &'a HealthBoard,
    /// The workspace of the request. Its own failures throttle only this workspace.
    pub workspace: WorkspaceId,
    /// The random numbers for balancing and throttling.
    pub random: &'a dyn Randomness,
    /// The monotonic clock.
    pub now: Duration,
}

/// The candidates that may be tried, and those that throttling rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedCandidates {
    /// Candidates that are not throttled, in order.
    pub candidates: Vec<Candidate>,
    /// Throttled candidates that were admitted by chance, in order. They are tried after the others.
    pub throttled: Vec<Candidate>,
    /// Throttled candidates that were rejected, in order.
    pub rejected: Vec<Candidate>,
    /// The rejected endpoints for error messages; `None` if none was rejected.
    pub rejections: Option<ThrottledEndpoints>,
}

/// The reason why no candidate is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCandidates {
    /// No endpoint serves the model.
    NoEndpoint,
    /// The client's preferences exclude every endpoint.
    Preferences,
    /// No endpoint can carry the request.
    Unsupported(UnsupportedQuestions),
    /// Every endpoint is throttled or paused and rejected the request.
    Throttled(ThrottledEndpoints),
}

impl Selection<'_> {
    /// Returns the candidates that may be tried, in order: model by model, unless the client sorts across models. Adds
    /// each step and the number of candidates that it leaves to `funnel`. The client's sort overrides a model's own.
    ///
    /// # Errors
    /// The reason why no candidate is left.
    pub fn choose(&self, models: Vec<Group>, funnel: &mut RoutingFunnel) -> Result<SelectedCandidates, NoCandidates> {
        let wanted = self.preferences;
        let mut groups = models;
        if count(&groups) == 0 {
            return Err(NoCandidates::NoEndpoint);
        }
        self.keep_wanted(&mut groups, funnel);
        if count(&groups) == 0 {
            return Err(NoCandidates::Preferences);
        }
        self.keep_capable(&mut groups, funnel)?;
        for (_, sort) in &mut groups {
            *sort = wanted.sort.or(*sort);
        }
        if wanted.sort.is_some_and(|sort| sort.across_models) {
            groups = vec![(groups.into_iter().flat_map(|(group, _)| group).collect(), wanted.sort)];
        }
        groups.retain(|(group, _)| !group.is_empty());
        // Without fallbacks, an order selects its first candidate, throttled or not.
        let sorted = groups.first().is_some_and(|(_, sort)| sort.is_some());
        let fixed = !wanted.order.is_empty() || sorted;
        let mut groups = groups.into_iter().map(|(group, sort)| self.ordered(group, sort));
        let mut ordered = groups.next().unwrap_or_default();
        groups.for_each(|group| ordered.extend(group));
        if !wanted.allow_fallbacks && fixed {
            ordered.truncate(1);
        }
        let mut chosen = self.admitted(ordered, funnel)?;
        if !wanted.allow_fallbacks {
            chosen.candidates.truncate(1);
            chosen.throttled.truncate(1 - chosen.candidates.len());
            chosen.rejected.clear();
            chosen.rejections = None;
        }
        Ok(chosen)
    }

    fn keep_wanted(&self, groups: &mut [Group], funnel: &mut RoutingFunnel) {
        let wanted = self.preferences;
        let names = |list: &[String], endpoint: &Endpoint| list.iter().any(|slug| endpoint.provider.as_str() == slug);
        if wanted.zdr || wanted.deny_data_collection {
            keep(groups, funnel, "data_policy", |candidate| {
                let policy = candidate.endpoint.data_policy;
                (!wanted.zdr || policy.zdr) && (!wanted.deny_data_collection || !policy.collects || policy.zdr)
            });
        }
        if let Some(only) = &wanted.only {
            keep(groups, funnel, "only", |candidate| names(only, &candidate.endpoint));
        }
        if !wanted.allow_fallbacks && !wanted.order.is_empty() {
            // Without fallbacks, only the named providers may be tried.
            keep(groups, funnel, "order", |candidate| names(&wanted.order, &candidate.endpoint));
        }
        if !wanted.ignore.is_empty() {
            keep(groups, funnel, "ignore", |candidate| !names(&wanted.ignore, &candidate.endpoint));
        }
        if let Some(formats) = &wanted.quantizations {
            keep(groups, funnel, "quantizations", |candidate| formats.contains(&candidate.endpoint.quantization));
        }
        let max = wanted.max_price;
        if max.prompt.is_some() || max.completion.is_some() {
            keep(groups, funnel, "max_price", |candidate| {
                let prices = candidate.prices;
                max.prompt.is_none_or(|max| prices.prompt.is_within_per_million(max))
                    && max.completion.is_none_or(|max| prices.completion.is_within_per_million(max))
            });
        }
        if wanted.require_parameters {
            keep(groups, funnel, "require_parameters", |candidate| {
                let typed = self.provider_input.questions.typed.as_deref().into_iter().flatten();
                typed.into_iter().all(|question| candidate.endpoint.wire.supports_natively(question))
            });
        }
    }

    /// Keeps the candidates that accept the state and can answer at least one question; planning later assigns the
    /// questions. Without fallbacks, keeps those that can answer all questions.
    fn keep_capable(&self, groups: &mut [Group], funnel: &mut RoutingFunnel) -> Result<(), NoCandidates> {
        let mut fault = None;
        let before = count(groups);
        for (group, _) in groups.iter_mut() {
            group.retain(|candidate| match self.able(&candidate.endpoint) {
                Ok(()) => true,
                Err(unsupported) => {
                    fault.get_or_insert(unsupported);
                    false
                }
            });
        }
        let after = count(groups);
        if after < before {
            funnel.push(("capability", after));
        }
        match fault {
            Some(unsupported) if after == 0 => Err(NoCandidates::Unsupported(unsupported)),
            _ => Ok(()),
        }
    }

    fn able(&self, endpoint: &Endpoint) -> Result<(), UnsupportedQuestions> {
        endpoint.check_input(self.provider_input)?;
        let Some(typed) = self.provider_input.questions.typed.as_deref() else { return Ok(()) };
        let around = self.provider_input.len_bytes_without_questions();
        let check_question = |question: &Question| {
            endpoint.check_question(question)?;
            // A single question may use the whole size limit.
            let alone = self.provider_input.questions.count() == 1;
            let bytes = if alone { self.provider_input.len_bytes() } else { around + question.len_bytes() };
            if endpoint.has_room_for(bytes) { Ok(()) } else { Err(UnsupportedQuestions::Size) }
        };
        if !self.preferences.allow_fallbacks {
            return typed.iter().try_for_each(check_question);
        }
        let mut fault = None;
        for question in typed {
            match check_question(question) {
                Ok(()) => return Ok(()),
                Err(unsupported) => fault.get_or_insert(unsupported),
            };
        }
        fault.map_or(Ok(()), Err)
    }

    fn admitted(
        &self,
        ordered: Vec<Candidate>,
        funnel: &mut RoutingFunnel,
    ) -> Result<SelectedCandidates, NoCandidates> {
        let mut chosen = SelectedCandidates {
            candidates: Vec::with_capacity(ordered.len()),
            throttled: Vec::new(),
            rejected: Vec::new(),
            rejections: None,
        };
        let (all, mut paused) = (ordered.len(), 0);
        for candidate in ordered {
            if self.health.paused().contains(&candidate.endpoint.provider) {
                ThrottledEndpoints::add_paused(&mut chosen.rejections, &candidate.endpoint.provider);
                chosen.rejected.push(candidate);
                paused += 1;
                continue;
            }
            match self.health.admit(candidate.endpoint.index, self.workspace, self.random, self.now) {
                Admission::Normal => chosen.candidates.push(candidate),
                Admission::Throttled => chosen.throttled.push(candidate),
                Admission::Rejected { retry_in, last_error } => {
                    let provider = candidate.endpoint.provider.as_str().to_owned();
                    let rejected = ThrottledEndpoint { provider, is_paused: false, last_error };
                    ThrottledEndpoints::add(&mut chosen.rejections, rejected, retry_in);
                    chosen.rejected.push(candidate);
                }
            }
        }
        let left = chosen.candidates.len() + chosen.throttled.len();
        let Some(rejections) = &chosen.rejections else { return Ok(chosen) };
        if paused > 0 {
            funnel.push(("paused", all - paused));
        }
        if chosen.rejected.len() > paused {
            funnel.push(("health", left));
        }
        if left == 0 { Err(NoCandidates::Throttled(rejections.clone())) } else { Ok(chosen) }
    }
}

/// The candidates of one model, and their sort order.
type Group = (Vec<Candidate>, Option<Sort>);

fn count(groups: &[Group]) -> usize {
    groups.iter().map(|(group, _)| group.len()).sum()
}

fn keep(groups: &mut [Group], funnel: &mut RoutingFunnel, step: &'static str, wanted: impl Fn(&Candidate) -> bool) {
    for (group, _) in groups.iter_mut() {
        group.retain(&wanted);
    }
    funnel.push((step, count(groups)));
}

#[cfg(test)]
mod tests;
