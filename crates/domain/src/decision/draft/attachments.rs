//! Media beside the state: assets and images.

use std::sync::Arc;

use super::path::Path;
use super::preferences::once;
use super::questions::DUPLICATE_MEMBER;
use crate::decision::InvalidDecision;
use crate::json::{Json, JsonKind, Member, first_duplicate};
use crate::question::{Asset, Attachments, inline_contents};

/// The content of an asset that was sent as a separate part beside the JSON.
#[derive(Clone, PartialEq, Eq)]
pub struct AssetPart {
    /// The name of the part, which the asset's entry references.
    pub name: String,
    /// Its media type, if one was sent.
    pub media_type: Option<String>,
    /// Its bytes.
    pub data: Arc<[u8]>,
}

impl std::fmt::Debug for AssetPart {
    /// Omits the content.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let part = &mut f.debug_struct("AssetPart");
        part.field("media_type", &self.media_type).field("bytes", &self.data.len()).finish_non_exhaustive()
    }
}

/// Reads assets, images, or neither. Each part must belong to exactly one asset.
pub(super) fn read(
    assets: Option<&Json>,
    parts: Vec<AssetPart>,
    images: Option<Json>,
) -> Result<Attachments, InvalidDecision> {
    let assets = match assets {
        Some(assets) => read_assets(assets, parts)?,
        None if parts.is_empty() => Vec::new(),
        None => return Err(InvalidDecision::new("assets", "is required if the body has more parts than the request")),
    };
    let images = match images {
        Some(images) if images.kind() != JsonKind::Array => {
            return Err(InvalidDecision::new("images", "must be an array"));
        }
        other => other.filter(|images| images.as_part().iter_elements().next().is_some()),
    };
    match (assets.is_empty(), images) {
        (true, None) => Ok(Attachments::None),
        (true, Some(images)) => Ok(Attachments::Images(images)),
        (false, None) => Ok(Attachments::Assets(assets)),
        (false, Some(_)) => Err(InvalidDecision::new("images", "and assets are both given; use one of them")),
    }
}

fn read_assets(assets: &Json, mut parts: Vec<AssetPart>) -> Result<Vec<Asset>, InvalidDecision> {
    let root = Path::Root("assets");
    let members =
        assets.as_part().members().ok_or_else(|| root.fault("must be an object that maps asset names to assets"))?;
    let repeated = first_duplicate(&members);
    let mut read = Vec::with_capacity(members.len());
    for (index, member) in members.into_iter().enumerate() {
        let path = Path::Member(&root, &member.name);
        if repeated == Some(index) {
            return Err(path.fault(DUPLICATE_MEMBER));
        }
        let Some(fields) = member.value.members() else { return Err(path.fault("must be an object")) };
        let part_path = Path::Member(&path, "part");
        let wanted = once(member.value, "part", &path)?
            .map(|part| part.as_str().ok_or_else(|| part_path.fault("must be a string")))
            .transpose()?;
        check_single_content(&fields, wanted.is_some(), &path)?;
        let (data, media_type) = match wanted {
            None => (Arc::from([]), None),
            Some(wanted) => {
                let position = parts
                    .iter()
                    .position(|part| part.name == wanted)
                    .ok_or_else(|| part_path.fault("names no part of the body, or a part of another asset"))?;
                let part = parts.remove(position);
                (part.data, part.media_type)
            }
        };
        let (name, entry) = (member.name.into_owned(), member.value.to_json());
        read.push(Asset { name, entry, data, media_type });
    }
    if !parts.is_empty() {
        return Err(root.fault("does not name every part of the body"));
    }
    Ok(read)
}

/// Rejects an asset with two contents: providers differ in which one they use, and filters would scan only one.
fn check_single_content(fields: &[Member<'_>], has_part: bool, path: &Path<'_>) -> Result<(), InvalidDecision> {
    let mut contents = inline_contents(fields);
    let Some(first) = contents.next() else { return Ok(()) };
    let fault = |name, others| {
        Path::Member(path, name)
            .fault(format!("is inline content, but {others} is given too; an asset has one content"))
    };
    match contents.next() {
        _ if has_part => Err(fault(first, "a part")),
        Some(second) => Err(fault(second, "other inline content")),
        None => Ok(()),
    }
}
