//! What would become of a request, without anything being sent, reserved or charged.

use std::sync::Arc;

use super::SubmitDecision;
use super::thrift::Thrift;
use crate::decision::{DecisionRequest, SubmitDecisionError, Unpriced};
use crate::guardrail::Policy;
use crate::ids::WorkspaceId;
use crate::model::{CatalogueSnapshot, ModelId};
use crate::money::Usd;
use crate::routing::Candidate;

/// What a request would be tried with.
pub(crate) struct Preview {
    /// The first of its models.
    pub(crate) model: ModelId,
    /// Every endpoint of its models, in no order, whatever stands in the way.
    pub(crate) candidates: Vec<Candidate>,
    /// The catalogue that the names were looked up in.
    pub(crate) catalogue: Arc<CatalogueSnapshot>,
    /// What becomes of endpoints without a price.
    pub(crate) unpriced: Unpriced,
    /// What would be reserved at first, and what where a limit leaves no room for that, down to the least; or why the
    /// request would be refused.
    pub(crate) outcome: Result<Vec<Usd>, SubmitDecisionError>,
}

impl SubmitDecision {
    /// Routes a request whose inquiry is the one that may be sent, as [`Self::execute`] would.
    ///
    /// # Errors
    /// A model that nobody has, or that cannot be asked.
    pub(crate) fn preview(
        &self,
        request: &DecisionRequest,
        policy: &Policy,
        is_limited: bool,
        workspace: WorkspaceId,
    ) -> Result<Preview, SubmitDecisionError> {
        let router = &self.router;
        let catalogue = router.ports.catalogue.snapshot();
        let first = router.resolve(&catalogue, &request.model)?;
        let (model, mut candidates) = (first.model, first.candidates);
        let mut models = vec![model.clone()];
        for name in &request.fallback_models {
            let fallback = router.resolve(&catalogue, name)?;
            if !models.contains(&fallback.model) {
                models.push(fallback.model);
                candidates.extend(fallback.candidates);
            }
        }
        let route = router.route(request, Some(policy), is_limited, workspace);
        Ok(Preview {
            model,
            candidates,
            catalogue,
            unpriced: if is_limited { router.settings.unpriced } else { Unpriced::Free },
            outcome: route.map(|route| Thrift::new(router, &route.parts, &router.planned(&route.parts)).totals()),
        })
    }
}
