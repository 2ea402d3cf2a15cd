//! The texts of an inquiry, in the order in which they are sent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::scan::{Form, Node, NodeKind};
use super::tokens::{Token, Tokens, content};
use crate::decision::{Asset, Attachments, Inquiry};
use crate::json::Json;

/// One text of an inquiry.
#[derive(Debug)]
pub(super) struct Document<'i> {
    pub(super) place: Place,
    /// What paths in it begin with.
    pub(super) root: String,
    pub(super) body: Body<'i>,
    /// Where the first medium in it is, where there are any.
    pub(super) medium: Option<Node>,
}

/// Whose text it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    State,
    Questions,
    /// The name of the asset of that place.
    AssetName(usize),
    /// The media type of the part that it came in.
    AssetType(usize),
    /// What is said about it.
    AssetEntry(usize),
    /// Its content, as a part of its own.
    AssetPart(usize),
    /// Its content, in its entry.
    AssetInline(usize),
    /// Media that nobody can read.
    Media,
}

/// What there is to look through.
#[derive(Debug)]
pub(super) enum Body<'i> {
    Readable(std::borrow::Cow<'i, str>, Form<'i>),
    Unreadable,
}

/// Every text of an inquiry.
pub(super) fn of(inquiry: &Inquiry) -> Vec<Document<'_>> {
    let json = |place: Place, root: &str, json: &'_ Json| (place, root.to_owned(), json.text().to_owned());
    let mut documents = Vec::new();
    let mut add = |(place, root, text): (Place, String, String), form| {
        let medium = None;
        documents.push(Document { place, root, body: Body::Readable(text.into(), form), medium });
    };
    if let Some(state) = &inquiry.state {
        add(json(Place::State, "state", state), Form::Json);
    }
    let form = inquiry.questions.typed.as_deref().map_or(Form::Json, Form::Questions);
    add(json(Place::Questions, "questions", &inquiry.questions.json), form);
    match &inquiry.attachments {
        Attachments::None => {}
        Attachments::InState => {
            let found = documents.iter_mut().find_map(|document| {
                let Body::Readable(text, _) = &document.body else { return None };
                let medium = medium(text)?;
                document.medium = Some(medium);
                Some(())
            });
            if found.is_none() {
                documents.insert(0, unreadable("state"));
            }
        }
        Attachments::Images(_) => documents.push(unreadable("images")),
        Attachments::Assets(assets) => {
            for (index, asset) in assets.iter().enumerate() {
                of_asset(index, asset, &mut documents);
            }
        }
    }
    documents
}

fn unreadable(root: &str) -> Document<'static> {
    Document { place: Place::Media, root: root.to_owned(), body: Body::Unreadable, medium: None }
}

fn of_asset<'i>(index: usize, asset: &'i Asset, documents: &mut Vec<Document<'i>>) {
    let root = format!("assets.(key {})", index + 1);
    let mut add = |place: Place, root: String, text: std::borrow::Cow<'i, str>, form: Form<'i>| {
        documents.push(Document { place, root, body: Body::Readable(text, form), medium: None });
    };
    add(Place::AssetName(index), "assets (key)".to_owned(), asset.name.as_str().into(), Form::Text);
    if let Some(media_type) = &asset.media_type {
        add(Place::AssetType(index), root.clone(), media_type.as_str().into(), Form::Text);
    }
    let Some(content) = content_of(asset) else {
        documents.push(unreadable(&root));
        return;
    };
    let place = if asset.data.is_empty() { Place::AssetInline(index) } else { Place::AssetPart(index) };
    add(Place::AssetEntry(index), root.clone(), without_content(asset).into(), Form::Json);
    let form = if is_json(asset) && Json::parse(&content).is_ok() { Form::Json } else { Form::Text };
    add(place, root, content.into(), form);
}

/// Members of an asset's entry that hold its content.
const CONTENT: &[&str] = &["data", "data_base64", "base64"];
/// Members that say what kind of content it is.
const MEDIA_TYPES: &[&str] = &["media_type", "mime_type", "content_type"];

/// The entry, but for content in it, which is looked at by itself.
fn without_content(asset: &Asset) -> String {
    let members = asset.entry.members().unwrap_or_default();
    if !asset.data.is_empty() || !members.iter().any(|(name, _)| CONTENT.contains(&name.as_str())) {
        return asset.entry.text().to_owned();
    }
    let emptied = members
        .iter()
        .map(|(name, json)| (name.as_str(), if CONTENT.contains(&name.as_str()) { "\"\"" } else { json.text() }));
    Json::object(emptied).text().to_owned()
}

fn media_type(asset: &Asset) -> Option<String> {
    Some(whole_media_type(asset)?.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

fn whole_media_type(asset: &Asset) -> Option<String> {
    let named = || {
        let members = asset.entry.members()?;
        let member = members.iter().find(|(name, _)| MEDIA_TYPES.contains(&name.as_str()))?;
        member.1.as_string()
    };
    asset.media_type.clone().or_else(named)
}

/// True where the bytes may be read as UTF-8, or the media type does not say how to.
fn is_utf8(asset: &Asset) -> bool {
    let whole = whole_media_type(asset).unwrap_or_default().to_ascii_lowercase();
    let mut sets = whole.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    sets.all(|(name, value)| {
        let known = ["utf-8", "utf8", "us-ascii", "ascii"];
        name.trim() != "charset" || known.contains(&value.trim().trim_matches('"'))
    })
}

fn is_json(asset: &Asset) -> bool {
    media_type(asset).is_some_and(|kind| kind == "application/json" || kind.ends_with("+json"))
}

/// The content where it is text that can be read.
fn content_of(asset: &Asset) -> Option<String> {
    if !is_utf8(asset) {
        return None;
    }
    if !is_json(asset) && !media_type(asset).is_some_and(|kind| kind.starts_with("text/")) {
        return None;
    }
    if !asset.data.is_empty() {
        return std::str::from_utf8(&asset.data).ok().map(str::to_owned);
    }
    let inline = inline(asset)?;
    String::from_utf8(STANDARD.decode(inline).ok()?).ok()
}

/// The content in an entry; `None` where there is none, or more than one.
fn inline(asset: &Asset) -> Option<String> {
    let members = asset.entry.members()?;
    let mut found = members.iter().filter(|(name, _)| CONTENT.contains(&name.as_str()));
    let first = found.next()?;
    if found.next().is_some() { None } else { first.1.as_string() }
}

/// The asset with another entry, in which inline content is as it was.
pub(super) fn with_entry(asset: &Asset, entry: &str) -> Option<Asset> {
    let kept = inline(asset).map(|content| Json::string(&content)).filter(|_| asset.data.is_empty());
    let entry = Json::parse(entry).ok()?;
    let entry = match kept {
        Some(content) => put(&entry, &content)?,
        None => entry,
    };
    Some(Asset { entry, ..asset.clone() })
}

/// The asset with other content.
pub(super) fn with_content(asset: &Asset, content: &str) -> Option<Asset> {
    if !asset.data.is_empty() {
        return Some(Asset { data: content.as_bytes().into(), ..asset.clone() });
    }
    let entry = put(&asset.entry, &Json::string(&STANDARD.encode(content)))?;
    Some(Asset { entry, ..asset.clone() })
}

fn put(entry: &Json, content: &Json) -> Option<Json> {
    let members = entry.members()?;
    let replaced = members.iter().map(|(name, json)| {
        (name.as_str(), if CONTENT.contains(&name.as_str()) { content.text() } else { json.text() })
    });
    Some(Json::object(replaced))
}

/// Types of items and parts that are no text.
const MEDIA: &[&str] = &[
    "image",
    "audio",
    "video",
    "document",
    "file",
    "input_image",
    "input_audio",
    "input_video",
    "input_file",
    "image_url",
];

/// The first item or part of a state that is a medium.
fn medium(text: &str) -> Option<Node> {
    let mut open = Vec::new();
    let mut is_type = false;
    for (token, span) in Tokens::of(text) {
        match token {
            Token::Object | Token::Array => {
                open.push(span);
                is_type = false;
            }
            Token::Close => drop(open.pop()),
            Token::Key => is_type = &text[content(span)] == "type",
            Token::String if std::mem::take(&mut is_type) && MEDIA.contains(&&text[content(span)]) => {
                let object = open.last()?;
                return Some(Node { kind: NodeKind::String, start: object.start, end: object.end, object: 0 });
            }
            _ => is_type = false,
        }
    }
    None
}
