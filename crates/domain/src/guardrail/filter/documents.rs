//! The documents of a provider input: its texts, in the order in which they are sent.

use super::attachment;
use super::media::Media;
use super::scan::Form;
use crate::json::Json;
use crate::question::{Asset, Attachments, ProviderInput};

/// One text of a provider input.
#[derive(Debug)]
pub(super) struct Document<'i> {
    pub(super) place: Place,
    /// The root of paths in it.
    pub(super) root: String,
    pub(super) body: Body<'i>,
}

/// The origin of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    State,
    Questions,
    /// The name of the asset with this index.
    AssetName(usize),
    /// The media type of the asset's part.
    AssetType(usize),
    /// The asset's entry, without its inline content.
    AssetEntry(usize),
    /// The asset's content from a separate part.
    AssetPart(usize),
    /// The asset's inline content.
    AssetInline(usize),
    /// Unreadable media.
    Media,
}

/// The content of a document.
#[derive(Debug)]
pub(super) enum Body<'i> {
    Readable(std::borrow::Cow<'i, str>, Form<'i>),
    Unreadable,
}

/// Returns every document of a provider input.
pub(super) fn collect_documents<'i>(provider_input: &'i ProviderInput) -> Vec<Document<'i>> {
    let readable = |place: Place, root: &str, json: &'i Json, form: Form<'i>| Document {
        place,
        root: root.to_owned(),
        body: Body::Readable(json.text().into(), form),
    };
    let mut documents = Vec::new();
    if let Some(state) = &provider_input.state {
        let form = Form::Json(Media::for_form(provider_input.state_form));
        documents.push(readable(Place::State, "state", state, form));
    }
    let form = provider_input.questions.typed.as_deref().map_or(Form::Json(Media::InPlainJson), Form::Questions);
    documents.push(readable(Place::Questions, "questions", &provider_input.questions.json, form));
    match &provider_input.attachments {
        // The scan of the state finds media in it.
        Attachments::None | Attachments::InState => {}
        Attachments::Images(_) => documents.push(unreadable("images")),
        Attachments::Assets(assets) => {
            for (index, asset) in assets.iter().enumerate() {
                collect_asset(index, asset, &mut documents);
            }
        }
    }
    documents
}

fn unreadable(root: &str) -> Document<'static> {
    Document { place: Place::Media, root: root.to_owned(), body: Body::Unreadable }
}

fn collect_asset<'i>(index: usize, asset: &'i Asset, documents: &mut Vec<Document<'i>>) {
    let root = format!("assets.(key {})", index + 1);
    let mut add = |place: Place, root: String, text: std::borrow::Cow<'i, str>, form: Form<'i>| {
        documents.push(Document { place, root, body: Body::Readable(text, form) });
    };
    add(Place::AssetName(index), "assets (key)".to_owned(), asset.name.as_str().into(), Form::Text);
    if let Some(media_type) = &asset.media_type {
        add(Place::AssetType(index), root.clone(), media_type.as_str().into(), Form::Text);
    }
    let Some(content) = attachment::readable_content(asset) else {
        documents.push(unreadable(&root));
        return;
    };
    let place = if attachment::has_part(asset) { Place::AssetPart(index) } else { Place::AssetInline(index) };
    let entry = attachment::without_content(asset);
    add(Place::AssetEntry(index), root.clone(), entry.into(), Form::Json(Media::Ignored));
    let is_json = attachment::is_json(asset) && Json::parse(&content).is_ok();
    let form = if is_json { Form::Json(Media::Ignored) } else { Form::Text };
    add(place, root, content.into(), form);
}
