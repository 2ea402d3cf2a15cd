//! The key of a shared call. Pure.

use sha2::{Digest, Sha256};

use crate::decision::DecisionRequest;
use crate::guardrail::Policy;
use crate::ids::WorkspaceId;
use crate::model::ModelId;
use crate::money::Usd;
use crate::question::{Attachments, QuestionKind, Questions};

/// Identifies a call. Requests with the same key share an answer and hold the same amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CallKey {
    /// A digest over the workspace, the model and everything that reaches a provider or decides which one, or at which
    /// price.
    request: [u8; 32],
    /// The bounds of all attempts that the plan allows. It changes with the endpoints that are throttled.
    ceiling: Usd,
}

impl CallKey {
    /// Returns the key of a request, whose input is the one that will be sent. `route` is its model, and true if its
    /// candidates differ from those of an unlimited request.
    pub(super) fn new(
        workspace: WorkspaceId,
        policy: Option<&Policy>,
        route: (&ModelId, bool),
        ceiling: Usd,
        request: &DecisionRequest,
    ) -> Self {
        Self { request: digest(workspace, policy, route, request), ceiling }
    }
}

fn digest(
    workspace: WorkspaceId,
    policy: Option<&Policy>,
    route: (&ModelId, bool),
    request: &DecisionRequest,
) -> [u8; 32] {
    let mut pieces = DigestInput(Sha256::new());
    let provider_input = &request.provider_input;
    let (model, prices_differ) = route;
    pieces.add(workspace.uuid().as_bytes());
    let guardrails = policy.map(Policy::guardrails).unwrap_or_default();
    pieces.count(guardrails.len());
    for guardrail in guardrails {
        pieces.add(guardrail.id.uuid().as_bytes());
        pieces.add(&guardrail.version.to_le_bytes());
    }
    pieces.add(&[u8::from(prices_differ)]);
    pieces.add(model.as_str().as_bytes());
    pieces.add(request.model.as_bytes());
    pieces.add_all(request.fallback_models.iter().map(String::as_bytes));
    // Preferences and forms contain nothing of the client's text but provider names.
    pieces.add(format!("{:?} {:?} {}", request.preferences, provider_input.state_form, request.partial).as_bytes());
    pieces.add(provider_input.questions.json.text().as_bytes());
    pieces.add(&booleans(&provider_input.questions));
    pieces.add_all(provider_input.state.iter().map(|state| state.text().as_bytes()));
    match &provider_input.attachments {
        Attachments::None => pieces.add(b"none"),
        Attachments::InState => pieces.add(b"in state"),
        Attachments::Images(images) => {
            pieces.add(b"images");
            pieces.add(images.text().as_bytes());
        }
        Attachments::Assets(assets) => {
            pieces.add(b"assets");
            for asset in assets {
                pieces.add(asset.name.as_bytes());
                pieces.add(asset.entry.text().as_bytes());
                pieces.add_all(asset.media_type.iter().map(String::as_bytes));
                pieces.add(&asset.data);
            }
        }
    }
    pieces.0.finalize().into()
}

/// Bytes to digest, each piece after its length and each list after its count, so that different requests never have
/// the same bytes.
struct DigestInput(Sha256);

impl DigestInput {
    fn count(&mut self, count: usize) {
        self.0.update(u64::try_from(count).unwrap_or(u64::MAX).to_le_bytes());
    }

    fn add(&mut self, piece: &[u8]) {
        self.count(piece.len());
        self.0.update(piece);
    }

    fn add_all<'a>(&mut self, pieces: impl ExactSizeIterator<Item = &'a [u8]>) {
        self.count(pieces.len());
        for piece in pieces {
            self.add(piece);
        }
    }
}

/// Returns the boolean values of options, which the text of the questions does not contain.
fn booleans(questions: &Questions) -> Vec<u8> {
    let typed = questions.typed.as_deref().into_iter().flatten();
    let options = typed.filter_map(|question| match &question.kind {
        QuestionKind::Choice { options } => Some(options),
        _ => None,
    });
    options.flatten().map(|option| option.boolean.map_or(2, u8::from)).collect()
}

#[cfg(test)]
mod tests;
