//! From a request to the ends of its parts: which endpoints, which questions where, all parts at once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};

use super::SubmitDecisionPorts;
use super::attempt_log::AttemptLog;
use super::part::{Course, PartEnd};
use super::plan::{Part, plan};
use super::target::Target;
use crate::decision::{CallerPresence, DecisionRequest, RouterSettings, RoutingFunnel, SubmitDecisionError};
use crate::model::ModelId;
use crate::routing::{Emptied, EndpointDirectory, Selection};
use crate::usage::AttemptRecord;

/// Routes requests.
pub(super) struct Router {
    pub(super) ports: SubmitDecisionPorts,
    pub(super) endpoints: Arc<EndpointDirectory>,
    pub(super) settings: RouterSettings,
}

/// Where a request goes.
pub(super) struct Route {
    /// The first of its models.
    pub(super) model: ModelId,
    pub(super) parts: Vec<Part>,
    pub(super) funnel: RoutingFunnel,
}

/// What became of a request.
#[derive(Debug)]
pub(super) struct Routed {
    /// In the order of the parts; without those that were given up because another one failed.
    pub(super) ends: Vec<PartEnd>,
    pub(super) attempts: Vec<AttemptRecord>,
}

impl Router {
    /// Resolves the models, chooses endpoints and plans the parts. Nothing is sent.
    pub(super) fn route(&self, request: &DecisionRequest) -> Result<Route, SubmitDecisionError> {
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
        let selection = Selection {
            preferences: &request.preferences,
            inquiry: &request.inquiry,
            health: &self.ports.health,
            random: &*self.ports.random,
            now: self.ports.clock.monotonic(),
        };
        let candidates = targets.into_iter().map(|Target { candidates, sort, .. }| (candidates, sort)).collect();
        let planned = selection.choose(candidates, &mut funnel).and_then(|chosen| {
            plan(&request.inquiry, &chosen.candidates).map_err(|incapable| {
                // What those that rest could answer is not beyond all of them.
                let all = [&chosen.candidates[..], &chosen.resting[..]].concat();
                if chosen.resting.is_empty() || plan(&request.inquiry, &all).is_err() {
                    return Emptied::Incapable(incapable);
                }
                Emptied::BreakersOpen { retry_in: selection.retry_in(&chosen.resting) }
            })
        });
        match planned {
            Ok(parts) => Ok(Route { model, parts, funnel }),
            Err(Emptied::NoEndpoint) => Err(SubmitDecisionError::NoEndpoint { model, funnel }),
            Err(Emptied::Preferences) => Err(SubmitDecisionError::NothingWanted { model, funnel }),
            Err(Emptied::Incapable(incapable)) => Err(SubmitDecisionError::Incapable { model, incapable, funnel }),
            Err(Emptied::BreakersOpen { retry_in }) => {
                Err(SubmitDecisionError::BreakersOpen { model, retry_in, funnel })
            }
        }
    }

    /// Asks all parts, so many at a time. A part that fails ends the others, unless the caller takes what there is.
    pub(super) async fn run(
        self: Arc<Self>,
        route: Route,
        request: Arc<DecisionRequest>,
        caller: Arc<dyn CallerPresence>,
        began: Duration,
    ) -> Routed {
        let log = AttemptLog::new(&self.ports.health, self.settings.unknown_usage, began);
        let course = Course { log: &log, caller: &caller, began };
        let mut ends: Vec<(usize, PartEnd)> = Vec::with_capacity(route.parts.len());
        if let [part] = &route.parts[..] {
            ends.extend(self.ask_part(part, 0, &course).await.map(|end| (0, end)));
        } else {
            let mut asked: Vec<BoxFuture<'_, (usize, Option<PartEnd>)>> = Vec::with_capacity(route.parts.len());
            for (place, part) in route.parts.iter().enumerate() {
                let asking = self.ask_part(part, u32::try_from(place).unwrap_or(u32::MAX), &course);
                asked.push(Box::pin(asking.map(move |end| (place, end))));
            }
            let mut ended = stream::iter(asked).buffer_unordered(self.settings.max_parts_in_flight.max(1));
            while let Some((place, end)) = ended.next().await {
                let Some(end) = end else { continue };
                let failed = matches!(end, PartEnd::Failed { .. });
                ends.push((place, end));
                if failed && !request.partial {
                    break;
                }
            }
        }
        ends.sort_by_key(|(place, _)| *place);
        let attempts = log.close(self.ports.clock.monotonic());
        Routed { ends: ends.into_iter().map(|(_, end)| end).collect(), attempts }
    }
}
