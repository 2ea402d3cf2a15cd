//! Applies filters to the documents of a provider input.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::attachment::Media;
use super::found::{Found, Node};
use super::scan::{Form, Scan, select};
use super::search::Search;
use super::spans::Bits;
use super::{Aliases, Blocked, CompiledFilters, attachment, rewrite};
use crate::json::Json;
use crate::question::{Asset, Attachments, ProviderInput, Questions};
use crate::system::{CancelFlag, Cancelled};
use crate::usage::{FilterAction, Finding};

/// The label of an attachment that no filter can read.
pub const UNREADABLE_ATTACHMENT: &str = "UNREADABLE_ATTACHMENT";

/// The number of times that redacted text is scanned again. A pattern may match next to the placeholder of its own
/// match and needs another scan then; a pattern that still matches after the last one blocks the request.
const MAX_RESCANS: usize = 4;

/// A provider input that may be sent.
#[derive(Debug, Clone)]
pub struct FilteredInput {
    /// The provider input; the unchanged one if nothing was redacted.
    pub provider_input: Arc<ProviderInput>,
    /// The names of questions and options that were replaced.
    pub aliases: Aliases,
    /// The redacted and flagged matches, in the order of the filters.
    pub findings: Vec<Finding>,
}

impl CompiledFilters {
    /// Scans a provider input: every string, name and number at any depth, and text that is split over neighbouring
    /// strings. Returns the input that may be sent. Values without a match stay byte for byte.
    ///
    /// # Errors
    /// As [`Self::apply_until`].
    pub fn apply(&self, provider_input: &Arc<ProviderInput>) -> Result<FilteredInput, Blocked> {
        // This flag is never cancelled. If it were, the request would be blocked.
        let applied = self.apply_until(provider_input, &CancelFlag::default());
        applied.unwrap_or_else(|Cancelled| Err(self.blocked(0, "", "", Node::whole_text(), &Bits::default())))
    }

    /// Applies the filters like [`Self::apply`], until it is cancelled. The flag is checked at every name and value,
    /// before each filter, and at each match.
    ///
    /// # Errors
    /// The outer error is a cancellation. The inner error is the first match of a filter that blocks, an attachment
    /// that a blocking or redacting filter cannot read, or a match that cannot be redacted without changing the
    /// request's meaning.
    pub fn apply_until(
        &self,
        provider_input: &Arc<ProviderInput>,
        cancel: &CancelFlag,
    ) -> Result<Result<FilteredInput, Blocked>, Cancelled> {
        let applied = self.filter_input(provider_input, &Search::new(self, cancel));
        // After a cancellation the result may be incomplete.
        if cancel.is_cancelled() { Err(Cancelled) } else { Ok(applied) }
    }

    fn filter_input(&self, provider_input: &Arc<ProviderInput>, search: &Search<'_>) -> Result<FilteredInput, Blocked> {
        if self.filters.is_empty() {
            let (provider_input, aliases) = (Arc::clone(provider_input), Aliases::default());
            return Ok(FilteredInput { provider_input, aliases, findings: Vec::new() });
        }
        let documents = collect_documents(provider_input);
        let texts = documents.iter().filter_map(|document| match &document.body {
            Body::Readable(text, form) => Some((&**text, *form)),
            Body::Unreadable => None,
        });
        let selected = select(search, texts);
        let mut findings = Findings::default();
        let (mut redacted, mut has_medium) = (Vec::new(), false);
        for document in &documents {
            let Body::Readable(text, form) = &document.body else {
                self.handle_unreadable(&document.root, None, &mut findings)?;
                continue;
            };
            if u32::try_from(text.len()).is_err() {
                // Positions of matches are kept in 32 bits.
                let filter = self.most_severe_filter().unwrap_or_default();
                let node = Node::whole_text();
                let blocked = self.blocked(filter, "", &document.root, node, &Bits::default());
                return Err(Blocked { is_too_large: true, ..blocked });
            }
            let found = Scan::run(&selected, text, *form, false);
            has_medium |= found.medium.is_some();
            if found.medium.is_some_and(|medium| found.block.is_none_or(|(_, node)| medium.start < node.start)) {
                self.handle_unreadable(&document.root, Some((text, &found)), &mut findings)?;
            }
            if let Some((filter, node)) = found.block {
                return Err(self.blocked(filter, text, &document.root, node, &found.keys));
            }
            findings.add(document, text, &found);
            if let Some((filter, node)) = found.first_redaction {
                if let Place::AssetName(_) | Place::AssetType(_) = document.place {
                    // The state refers to assets by name, and another media type would change how the content is
                    // decoded.
                    return Err(self.blocked(filter, text, &document.root, node, &found.keys));
                }
                let text = self.redact(search, document, (text, *form), found, (filter, node))?;
                redacted.push(RedactedDocument { document, text, filter });
            }
        }
        if matches!(provider_input.attachments, Attachments::InState) && !has_medium {
            self.handle_unreadable("state", None, &mut findings)?;
        }
        let (provider_input, aliases) = self.rebuild(provider_input, &redacted)?;
        Ok(FilteredInput { provider_input, aliases, findings: findings.into_findings(self) })
    }

    /// Handles an unreadable attachment: blocks the request if a filter blocks or redacts, and flags it otherwise.
    fn handle_unreadable(
        &self,
        root: &str,
        found: Option<(&str, &Found)>,
        findings: &mut Findings,
    ) -> Result<(), Blocked> {
        let path =
            found.and_then(|(text, found)| rewrite::paths_of_nodes(text, root, &[found.medium?], &found.keys).pop());
        let path = path.unwrap_or_else(|| root.to_owned());
        if let Some(filter) = self.most_severe_filter().and_then(|place| self.filters.get(place)) {
            let label = UNREADABLE_ATTACHMENT.to_owned();
            return Err(Blocked { guardrail_id: filter.guardrail_id, label, path, is_too_large: false });
        }
        let media = findings.media.get_or_insert((path, 0));
        media.1 += 1;
        Ok(())
    }

    fn blocked(&self, filter: usize, text: &str, root: &str, node: Node, hidden: &Bits) -> Blocked {
        let path = rewrite::paths_of_nodes(text, root, &[node], hidden).pop().unwrap_or_default();
        let filter = &self.filters[filter];
        let (guardrail_id, label) = (filter.guardrail_id, filter.label.clone());
        Blocked { guardrail_id, label, path, is_too_large: false }
    }

    /// Returns the text with all matches redacted. It scans the result again, because a placeholder may cause new
    /// matches.
    fn redact(
        &self,
        search: &Search<'_>,
        document: &Document<'_>,
        (text, form): (&str, Form<'_>),
        found: Found,
        (filter, node): (usize, Node),
    ) -> Result<String, Blocked> {
        let (keys, max_bytes) = (found.keys, rewrite::max_bytes(text));
        let blocked = || self.blocked(filter, text, &document.root, node, &keys);
        let too_large = |rewrite::TooLarge| Blocked { is_too_large: true, ..blocked() };
        let mut clean = rewrite::rewrite(self, text, form, &found.marks, max_bytes).map_err(too_large)?;
        drop(found.marks);
        for _ in 0..MAX_RESCANS {
            let again = Scan::run(&select(search, [(clean.as_str(), form)].into_iter()), &clean, form, true);
            if let Some((filter, node)) = again.block {
                return Err(self.blocked(filter, &clean, &document.root, node, &again.keys));
            }
            if again.marks.is_empty() {
                return Ok(clean);
            }
            clean = rewrite::rewrite(self, &clean, form, &again.marks, max_bytes).map_err(too_large)?;
        }
        Err(blocked())
    }

    /// Returns the provider input with the redacted texts.
    fn rebuild(
        &self,
        provider_input: &Arc<ProviderInput>,
        redacted: &[RedactedDocument<'_>],
    ) -> Result<(Arc<ProviderInput>, Aliases), Blocked> {
        if redacted.is_empty() {
            return Ok((Arc::clone(provider_input), Aliases::default()));
        }
        let (mut new, mut aliases) = (ProviderInput::clone(provider_input), Aliases::default());
        for RedactedDocument { document, text, filter } in redacted {
            let put = match document.place {
                Place::State => Json::parse(text).ok().map(|state| new.state = Some(state)),
                Place::Questions => parse_redacted_questions(&provider_input.questions, text).map(|questions| {
                    aliases = Aliases::from_questions(&provider_input.questions, &questions);
                    new.questions = questions;
                }),
                Place::AssetEntry(index) => {
                    change_asset(&mut new.attachments, index, |asset| attachment::with_entry(asset, text))
                }
                Place::AssetPart(index) | Place::AssetInline(index) => {
                    change_asset(&mut new.attachments, index, |asset| attachment::with_content(asset, text))
                }
                Place::AssetName(_) | Place::AssetType(_) | Place::Media => None,
            };
            if put.is_none() {
                // Only scanned text may be sent.
                return Err(self.blocked(*filter, "", &document.root, Node::whole_text(), &Bits::default()));
            }
        }
        Ok((Arc::new(new), aliases))
    }
}

/// A redacted document.
struct RedactedDocument<'d> {
    document: &'d Document<'d>,
    text: String,
    /// The first filter that redacted a match.
    filter: usize,
}

/// Parses the questions of a redacted text with the original parser. Returns `None` if their number or types changed.
fn parse_redacted_questions(before: &Questions, text: &str) -> Option<Questions> {
    let json = Json::parse(text).ok()?;
    let Some(typed) = &before.typed else { return Some(Questions { json, typed: None }) };
    let mut read = Questions::read(json).ok()?;
    let questions = Arc::get_mut(read.typed.as_mut()?)?;
    if questions.len() != typed.len() {
        return None;
    }
    for (question, original) in questions.iter_mut().zip(typed.iter()) {
        if !question.is_form_of(original) {
            return None;
        }
        question.take_booleans(original);
    }
    Some(read)
}

fn change_asset(attachments: &mut Attachments, index: usize, by: impl Fn(&Asset) -> Option<Asset>) -> Option<()> {
    let Attachments::Assets(assets) = attachments else { return None };
    let asset = assets.get_mut(index)?;
    *asset = by(asset)?;
    Some(())
}

/// The findings in all documents so far.
#[derive(Debug, Default)]
struct Findings {
    /// The path of the first match and the number of matches, by filter.
    by_filter: BTreeMap<usize, (String, u32)>,
    /// The path of the first unreadable attachment, and the number of them.
    media: Option<(String, u32)>,
}

impl Findings {
    /// Adds the findings in a document.
    fn add(&mut self, document: &Document<'_>, text: &str, found: &Found) {
        let first = found.match_counts.iter().enumerate();
        let new: Vec<(usize, Node)> = first
            .filter(|(filter, _)| !self.by_filter.contains_key(filter))
            .filter_map(|(filter, matches)| Some((filter, matches.first?)))
            .collect();
        let nodes: Vec<Node> = new.iter().map(|(_, node)| *node).collect();
        let paths = if nodes.is_empty() {
            Vec::new()
        } else {
            rewrite::paths_of_nodes(text, &document.root, &nodes, &found.keys)
        };
        for ((filter, _), path) in new.into_iter().zip(paths) {
            self.by_filter.insert(filter, (path, 0));
        }
        for (filter, matches) in found.match_counts.iter().enumerate() {
            if let Some((_, count)) = self.by_filter.get_mut(&filter) {
                *count = count.saturating_add(matches.count);
            }
        }
    }

    fn into_findings(self, filters: &CompiledFilters) -> Vec<Finding> {
        let findings = self.by_filter.into_iter().filter_map(|(place, (path, count))| {
            let filter = filters.filters.get(place)?;
            let (guardrail_id, label) = (filter.guardrail_id, filter.label.clone());
            Some(Finding { guardrail_id, label, action: filter.action, path, count })
        });
        let mut findings: Vec<Finding> = findings.collect();
        if let (Some((path, count)), Some(first)) = (self.media, filters.filters.first()) {
            let (guardrail_id, label) = (first.guardrail_id, UNREADABLE_ATTACHMENT.to_owned());
            findings.push(Finding { guardrail_id, label, action: FilterAction::Flag, path, count });
        }
        findings
    }
}

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
