//! Media beside the state.

use std::sync::Arc;

use crate::decision::{Asset, Attachments, InvalidDecision};
use crate::json::{Json, JsonKind};

/// The content of an asset that came as a part of its own beside the JSON.
#[derive(Clone, PartialEq, Eq)]
pub struct AssetPart {
    /// The name of the part, to which the asset's entry refers.
    pub name: String,
    /// Its media type, where one was given.
    pub media_type: Option<String>,
    /// Its bytes.
    pub data: Arc<[u8]>,
}

impl std::fmt::Debug for AssetPart {
    /// Without the content.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let part = &mut f.debug_struct("AssetPart");
        part.field("media_type", &self.media_type).field("bytes", &self.data.len()).finish_non_exhaustive()
    }
}

/// Assets, images, or neither. Each part belongs to exactly one asset.
pub(super) fn read(
    assets: Option<&Json>,
    parts: Vec<AssetPart>,
    images: Option<Json>,
) -> Result<Attachments, InvalidDecision> {
    let assets = match assets {
        Some(assets) => of_assets(assets, parts)?,
        None if parts.is_empty() => Vec::new(),
        None => return Err(InvalidDecision::new("assets", "is required where the body has parts beside the request")),
    };
    let images = match images {
        Some(images) if images.kind() != JsonKind::Array => {
            return Err(InvalidDecision::new("images", "must be an array"));
        }
        other => other.filter(|images| images.elements().is_some_and(|elements| !elements.is_empty())),
    };
    match (assets.is_empty(), images) {
        (true, None) => Ok(Attachments::None),
        (true, Some(images)) => Ok(Attachments::Images(images)),
        (false, None) => Ok(Attachments::Assets(assets)),
        (false, Some(_)) => Err(InvalidDecision::new("images", "and assets are both there; use one of them")),
    }
}

fn of_assets(assets: &Json, mut parts: Vec<AssetPart>) -> Result<Vec<Asset>, InvalidDecision> {
    let members =
        assets.members().ok_or_else(|| InvalidDecision::new("assets", "must be an object with an asset a member"))?;
    let mut names = std::collections::HashSet::new();
    let mut read = Vec::with_capacity(members.len());
    for (name, entry) in members {
        let path = super::member_path("assets", &name);
        if !names.insert(name.clone()) {
            return Err(InvalidDecision::new(path, "stands in the object more than once"));
        }
        let Some(fields) = entry.members() else { return Err(InvalidDecision::new(path, "must be an object")) };
        let part = super::once(&fields, "part", &path)?.map(|part| {
            part.as_string().ok_or_else(|| InvalidDecision::new(format!("{path}.part"), "must be a string"))
        });
        let asset = match part.transpose()? {
            None => Asset { name, entry, data: Arc::from([]), media_type: None },
            Some(wanted) => {
                let place = parts.iter().position(|part| part.name == wanted).ok_or_else(|| {
                    InvalidDecision::new(
                        format!("{path}.part"),
                        "names no part of the body, or one that another asset has",
                    )
                })?;
                let part = parts.remove(place);
                Asset { name, entry, data: part.data, media_type: part.media_type }
            }
        };
        read.push(asset);
    }
    if !parts.is_empty() {
        return Err(InvalidDecision::new("assets", "does not name every part of the body"));
    }
    Ok(read)
}
