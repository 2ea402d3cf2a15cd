//! The preview of a request: filters and plans it without sending, holding or charging.

use std::sync::Arc;

use super::submit::filter::InputFilter;
use super::submit::hold::Holds;
use super::submit::route::RoutePlanner;
use super::{DecisionRequest, FilteringError, SubmitDecisionError, UnpricedModels};
use crate::guardrail::Policy;
use crate::guardrail::filter::{Blocked, FilteredInput};
use crate::ids::WorkspaceId;
use crate::model::{CatalogueSnapshot, ModelId};
use crate::money::Usd;
use crate::question::ProviderInput;
use crate::routing::Candidate;

/// Filters and plans requests without sending them.
pub(crate) struct RequestPreview {
    filter: Arc<InputFilter>,
    planner: Arc<RoutePlanner>,
    holds: Arc<Holds>,
}

/// The plan of a request.
pub(crate) struct PlanPreview {
    /// The first of its models.
    pub(crate) model: ModelId,
    /// Every endpoint of its models, unusable ones included, in no particular order.
    pub(crate) candidates: Vec<Candidate>,
    /// The catalogue that the names were resolved in.
    pub(crate) catalogue: Arc<CatalogueSnapshot>,
    /// The rule for endpoints without a price.
    pub(crate) unpriced: UnpricedModels,
    /// The cost of each plan, from the preferred one to the cheapest; or why the request would be rejected.
    pub(crate) outcome: Result<Vec<Usd>, SubmitDecisionError>,
}

impl RequestPreview {
    pub(super) fn new(filter: Arc<InputFilter>, planner: Arc<RoutePlanner>, holds: Arc<Holds>) -> Self {
        Self { filter, planner, holds }
    }

    /// Applies a policy's filters to an input, without metrics.
    ///
    /// # Errors
    /// The filters did not finish.
    pub(crate) async fn filter(
        &self,
        policy: &Arc<Policy>,
        input: &Arc<ProviderInput>,
    ) -> Result<Result<FilteredInput, Blocked>, FilteringError> {
        self.filter.scan(policy, input).await
    }

    /// Plans a request with a filtered input.
    ///
    /// # Errors
    /// A model that does not exist or does not answer Decisions requests.
    pub(crate) fn plan(
        &self,
        request: &DecisionRequest,
        policy: &Policy,
        is_limited: bool,
        workspace: WorkspaceId,
    ) -> Result<PlanPreview, SubmitDecisionError> {
        let catalogue = self.planner.catalogue.snapshot();
        let models = self.planner.resolve(&catalogue, request)?;
        let model = models[0].model.clone();
        let candidates = models.into_iter().flat_map(|model| model.candidates).collect();
        let plan = self.planner.plan(request, Some(policy), is_limited, workspace);
        let unpriced = if is_limited { self.planner.settings.unpriced } else { UnpricedModels::Free };
        let outcome = plan.map(|plan| self.holds.costs(&plan.sub_requests));
        Ok(PlanPreview { model, candidates, catalogue, unpriced, outcome })
    }
}
