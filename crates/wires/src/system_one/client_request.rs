//! System One requests.

use domain::decision::{AssetPart, DecisionDraft};

use crate::client::Body;

/// Returns the request, which is already in canonical form. `questions` and `state` keep their exact bytes.
pub fn read(body: &Body<'_>, parts: Vec<AssetPart>) -> DecisionDraft {
    DecisionDraft {
        questions: body.own(body.questions),
        state: body.own(body.state),
        assets: body.own(body.assets),
        images: body.own(body.images),
        asset_parts: parts,
        ..body.draft()
    }
}
