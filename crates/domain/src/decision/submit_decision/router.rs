//! From a request to the ends of its parts: which endpoints, which questions where, all parts at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::SubmitDecisionPorts;
use super::attempt_log::AttemptLog;
use super::part::{Course, PartEnd};
use super::plan::{MAX_PARTS, Part, Precedence, plan};
use super::purse::{Payers, Purse};
use super::record_quota::RecordQuota;
use super::target::Target;
use crate::decision::{
    CallerPresence, DecisionRequest, Inquiry, RouterSettings, RoutingFunnel, SubmitDecisionError, Unpriced,
};
use crate::guardrail::Policy;
use crate::ids::WorkspaceId;
use crate::model::{CatalogueSnapshot, ModelId};
use crate::routing::{AttemptFailureKind, Candidate, Chosen, Emptied, EndpointDirectory, Selection, TokenPrices};
use crate::usage::AttemptRecord;

/// Routes requests.
pub(super) struct Router {
    pub(super) ports: SubmitDecisionPorts,
    pub(super) endpoints: Arc<EndpointDirectory>,
    pub(super) settings: RouterSettings,
    pub(super) record_quota: RecordQuota,
}

/// Where a request goes.
pub(super) struct Route {
    /// The first of its models.
    pub(super) model: ModelId,
    /// True where what has no price is treated otherwise than for those who are not limited.
    pub(super) prices_differ: bool,
    pub(super) parts: Vec<Part>,
    pub(super) funnel: RoutingFunnel,
}

/// What became of a request.
#[derive(Debug)]
pub(super) struct Routed {
    /// In the order of the parts; without those that were given up because another one failed.
    pub(super) ends: Vec<PartEnd>,
    pub(super) attempts: Arc<[AttemptRecord]>,
}

/// A part that is asked, with its number.
type Asked<'a> = BoxFuture<'a, (u32, Part, Option<PartEnd>)>;

impl Router {
    /// Resolves the models, chooses endpoints that the policy permits, and plans the parts. Nothing is sent.
    pub(super) fn route(
        &self,
        request: &DecisionRequest,
        policy: Option<&Policy>,
        is_limited: bool,
        workspace: WorkspaceId,
    ) -> Result<Route, SubmitDecisionError> {
        let snapshot = self.ports.catalogue.snapshot();
        let mut targets = vec![self.resolve(&snapshot, &request.model)?];
        for name in &request.fallback_models {
            let target = self.resolve(&snapshot, name)?;
            if targets.iter().all(|other| other.model != target.model) {
                targets.push(target);
            }
        }
        let model = targets[0].model.clone();
        let configured = targets.iter().map(|target| target.configured).sum();
        let priced = targets.iter().map(|target| target.candidates.len()).sum();
        let mut funnel: RoutingFunnel = vec![("model", configured), ("price", priced)];
        if let Some(policy) = policy {
            permitted(&mut targets, policy, &snapshot, &mut funnel)?;
        }
        let prices_differ = is_limited && self.price_what_has_none(&mut targets, &mut funnel)?;
        let selection = Selection {
            preferences: &request.preferences,
            inquiry: &request.inquiry,
            health: &self.ports.health,
            workspace,
            random: &*self.ports.random,
            now: self.ports.clock.monotonic(),
        };
        let sorted = request.preferences.sort.is_some() || targets[0].sort.is_some();
        let precedence = Precedence {
            first_endpoint: sorted || !request.preferences.order.is_empty(),
            across_models: request.preferences.sort.is_some_and(|sort| sort.across_models),
        };
        let candidates = targets.into_iter().map(|Target { candidates, sort, .. }| (candidates, sort)).collect();
        let planned = selection
            .choose(candidates, &mut funnel)
            .and_then(|chosen| plan_chosen(&request.inquiry, chosen, precedence));
        match planned {
            Ok(parts) => Ok(Route { model, prices_differ, parts, funnel }),
            Err(Emptied::NoEndpoint) => Err(SubmitDecisionError::NoEndpoint { model, funnel }),
            Err(Emptied::Preferences) => Err(SubmitDecisionError::NothingWanted { model, funnel }),
            Err(Emptied::Incapable(incapable)) => Err(SubmitDecisionError::Incapable { model, incapable, funnel }),
            Err(Emptied::Throttled(endpoints)) => Err(SubmitDecisionError::Throttled { model, endpoints, funnel }),
        }
    }

    /// What has no price, and what becomes of it where money is limited; true where that is another thing than elsewhere.
    fn price_what_has_none(
        &self,
        targets: &mut [Target],
        funnel: &mut RoutingFunnel,
    ) -> Result<bool, SubmitDecisionError> {
        let Some(model) = unpriced(targets).next().map(|candidate| candidate.model.clone()) else { return Ok(false) };
        match self.settings.unpriced {
            Unpriced::Free => Ok(false),
            Unpriced::Cap(price) => {
                let candidates = targets.iter_mut().flat_map(|target| &mut target.candidates);
                for candidate in candidates.filter(|candidate| !candidate.is_priced) {
                    candidate.prices = TokenPrices { prompt: price, completion: price };
                }
                Ok(true)
            }
            Unpriced::Refuse => {
                for target in targets.iter_mut() {
                    target.candidates.retain(|candidate| candidate.is_priced);
                }
                let left = targets.iter().map(|target| target.candidates.len()).sum();
                funnel.push(("unpriced", left));
                if left == 0 { Err(SubmitDecisionError::Unpriced(model)) } else { Ok(true) }
            }
        }
    }

    /// Asks all parts, so many at a time. A part that fails is asked in smaller parts of those who take no more; where
    /// nobody is left, it ends the others, unless the caller takes what there is.
    pub(super) async fn run(
        self: Arc<Self>,
        route: Route,
        request: Arc<DecisionRequest>,
        caller: Arc<dyn CallerPresence>,
        money: (Payers, Vec<AttemptRecord>),
        (workspace, began): (WorkspaceId, Duration),
    ) -> Routed {
        let log = AttemptLog::new(&self.ports.health, &self.settings, workspace, began);
        let (payers, planned) = money;
        let purse = Purse::new(payers, planned, &route.parts);
        let course = Course { log: &log, purse: &purse, caller: &caller, workspace, began };
        let at_once = self.settings.max_parts_in_flight.max(1);
        let mut planned = route.parts.len();
        let mut waiting: VecDeque<(u32, Part)> = (0..).zip(route.parts).collect();
        // Most requests are one part, which needs none.
        let mut running: Option<FuturesUnordered<Asked<'_>>> = None;
        let mut ends: Vec<(u32, PartEnd)> = Vec::with_capacity(waiting.len());
        loop {
            let is_idle = running.as_ref().is_none_or(FuturesUnordered::is_empty);
            if is_idle && waiting.is_empty() {
                break;
            }
            let alone = if is_idle && waiting.len() == 1 { waiting.pop_front() } else { None };
            let ended = if let Some((number, part)) = alone {
                Some(self.ask(number, part, &course).await)
            } else {
                let running = running.get_or_insert_default();
                while running.len() < at_once
                    && let Some((number, part)) = waiting.pop_front()
                {
                    running.push(Box::pin(self.ask(number, part, &course)));
                }
                running.next().await
            };
            let Some((number, part, end)) = ended else { break };
            purse.begun(number);
            let Some(end) = end else { continue };
            // Each part sends the state again: there is an end to it.
            if let Some(parts) = self.smaller(&part, &end, began)
                && planned + parts.len() <= 2 * MAX_PARTS
            {
                let next = u32::try_from(planned).unwrap_or(u32::MAX);
                planned += parts.len();
                waiting.extend((next..).zip(parts));
                continue;
            }
            let failed = matches!(end, PartEnd::Failed { .. });
            ends.push((number, end));
            if failed && !request.partial {
                break;
            }
        }
        drop(running);
        ends.sort_by_key(|(number, _)| *number);
        let attempts = log.close(self.ports.clock.monotonic());
        Routed { ends: ends.into_iter().map(|(_, end)| end).collect(), attempts }
    }

    async fn ask(&self, number: u32, part: Part, course: &Course<'_>) -> (u32, Part, Option<PartEnd>) {
        let end = self.ask_part(&part, number, course).await;
        (number, part, end)
    }

    /// What is still to be tried of a part that failed: nothing where the caller has left, the failure is a simulated
    /// one, there was no money for another attempt, or the time is over.
    fn smaller(&self, part: &Part, end: &PartEnd, began: Duration) -> Option<Vec<Part>> {
        let PartEnd::Failed { failures, denied: None, .. } = end else { return None };
        let last = failures.last().map(|(_, failure)| failure.kind);
        let for_nobody = matches!(last, Some(AttemptFailureKind::CallerGone | AttemptFailureKind::Simulated(_)));
        let spent = self.ports.clock.monotonic().saturating_sub(began);
        if for_nobody || spent >= self.settings.deadline { None } else { part.smaller(failures) }
    }
}

/// Plans with the candidates that are not throttled; the throttled ones come after them, or instead of them where they
/// cannot answer everything.
fn plan_chosen(inquiry: &Arc<Inquiry>, chosen: Chosen, precedence: Precedence) -> Result<Vec<Part>, Emptied> {
    let Chosen { candidates, throttled, rejected, rejections } = chosen;
    if throttled.is_empty() || candidates.is_empty() {
        let candidates = if candidates.is_empty() { throttled } else { candidates };
        return plan(inquiry, &candidates, precedence).map_err(|incapable| {
            let Some(rejections) = rejections else { return Emptied::Incapable(incapable) };
            // A request that a throttled endpoint could answer is not impossible.
            let all = [&candidates[..], &rejected[..]].concat();
            match plan(inquiry, &all, precedence) {
                Ok(_) => Emptied::Throttled(rejections),
                Err(_) => Emptied::Incapable(incapable),
            }
        });
    }
    if let Ok(parts) = plan(inquiry, &candidates, precedence) {
        return Ok(parts.into_iter().map(|part| part.then(&throttled)).collect());
    }
    let candidates = [candidates, throttled].concat();
    plan_chosen(inquiry, Chosen { candidates, throttled: Vec::new(), rejected, rejections }, precedence)
}

/// Keeps the candidates that a policy permits.
fn permitted(
    targets: &mut [Target],
    policy: &Policy,
    snapshot: &CatalogueSnapshot,
    funnel: &mut RoutingFunnel,
) -> Result<(), SubmitDecisionError> {
    let mut first = None;
    for target in targets.iter_mut() {
        target.candidates.retain(|candidate| match policy.permits(candidate, snapshot) {
            Ok(()) => true,
            Err(forbidden) => {
                first.get_or_insert_with(|| (candidate.model.clone(), forbidden));
                false
            }
        });
    }
    let left = targets.iter().map(|target| target.candidates.len()).sum();
    funnel.push(("guardrail", left));
    match first {
        Some((model, forbidden)) if left == 0 => {
            Err(SubmitDecisionError::Forbidden { model, forbidden, funnel: funnel.clone() })
        }
        _ => Ok(()),
    }
}

fn unpriced(targets: &[Target]) -> impl Iterator<Item = &Candidate> {
    targets.iter().flat_map(|target| &target.candidates).filter(|candidate| !candidate.is_priced)
}
