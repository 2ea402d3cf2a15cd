//! System One requests.

use domain::decision::{AssetPart, DecisionDraft};
use domain::json::Json;

use crate::wires::Body;

/// A request in canonical form already: nothing is parsed, and `questions` and `state` stay the bytes that they are.
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
