//! System One requests.

use domain::decision::{AssetPart, DecisionDraft};
use domain::json::Json;

use crate::client::Body;

/// Returns the request, which is already in canonical form. `questions` and `state` keep their exact bytes.
pub fn read(body: &Body<'_>, parts: Vec<AssetPart>) -> DecisionDraft {
    DecisionDraft {
        questions: body.questions.map(Json::from),
        state: body.state.map(Json::from),
        assets: body.assets.map(Json::from),
        images: body.images.map(Json::from),
        asset_parts: parts,
        ..body.draft()
    }
}
