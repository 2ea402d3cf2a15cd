//! Conversion of the canonical form to a request body.

use std::collections::HashSet;
use std::sync::Arc;

use domain::json::{Json, push_string};
use domain::question::{Asset, Attachments, MAX_LEVELS, MAX_OPTIONS, ProviderInput, QuestionKind};
use domain::routing::UnsupportedQuestions;

use super::provider_response::ResponseWrapper;
use crate::provider::{Piece, RequestBody, UnsupportedByWire};

/// Builds the body: the model's name if given, and the members of the provider input byte for byte. Assets that came as
/// multipart parts are sent as parts.
///
/// # Errors
/// Media of another wire, and features that the wrapping provider rejects.
pub fn write(
    model: Option<&str>,
    provider_input: &ProviderInput,
    response_wrapper: ResponseWrapper,
) -> Result<RequestBody, UnsupportedByWire> {
    check(provider_input, response_wrapper)?;
    let json = json(model, provider_input)?;
    let parts = match &provider_input.attachments {
        Attachments::Assets(assets) => assets.iter().filter_map(part).collect(),
        Attachments::None | Attachments::Images(_) | Attachments::InState => Vec::new(),
    };
    if parts.is_empty() { Ok(RequestBody::Json(json)) } else { multipart(json, &parts) }
}

/// Returns the length of the body, which is counted without building it unless there are assets.
///
/// # Errors
/// Those of [`write()`].
pub fn length(
    model: Option<&str>,
    provider_input: &ProviderInput,
    response_wrapper: ResponseWrapper,
) -> Result<u64, UnsupportedByWire> {
    if matches!(provider_input.attachments, Attachments::Assets(_)) {
        return write(model, provider_input, response_wrapper).map(|body| body.len_bytes());
    }
    check(provider_input, response_wrapper)?;
    // A member has a brace or comma before it, two quotes and a colon; a brace ends the body.
    let mut length = 1;
    members(model, provider_input, |name, value| length += name.len() + value.len() + 4)?;
    Ok(u64::try_from(length).unwrap_or(u64::MAX))
}

fn check(provider_input: &ProviderInput, response_wrapper: ResponseWrapper) -> Result<(), UnsupportedByWire> {
    match response_wrapper {
        ResponseWrapper::WorkersAi => fits_workers_ai(provider_input),
        ResponseWrapper::None | ResponseWrapper::Databricks => Ok(()),
    }
}

fn json(model: Option<&str>, provider_input: &ProviderInput) -> Result<String, UnsupportedByWire> {
    let mut body = String::with_capacity(96 + model.map_or(0, str::len) + provider_input.len_bytes());
    members(model, provider_input, |name, value| {
        body.push(if body.is_empty() { '{' } else { ',' });
        body.push('"');
        body.push_str(name);
        body.push_str("\":");
        body.push_str(value);
    })?;
    body.push('}');
    Ok(body)
}

/// Passes each member of the body to `member`: its name and its JSON.
fn members(
    model: Option<&str>,
    provider_input: &ProviderInput,
    mut member: impl FnMut(&str, &str),
) -> Result<(), UnsupportedByWire> {
    if let Some(model) = model {
        let mut quoted = String::with_capacity(model.len() + 2);
        push_string(&mut quoted, model);
        member("model", &quoted);
    }
    if let Some(state) = &provider_input.state {
        member("state", state.text());
    }
    member("questions", provider_input.questions.json.text());
    match &provider_input.attachments {
        Attachments::None => {}
        Attachments::Assets(assets) => {
            let entries = assets.iter().map(|asset| (asset.name.as_str(), asset.entry.text()));
            member("assets", Json::object(entries).text());
        }
        Attachments::Images(images) => member("images", images.text()),
        Attachments::InState => return Err(UnsupportedByWire::Attachments),
    }
    Ok(())
}

/// Checks the limits of Workers AI: names of 1 to 100 plain characters, and no single outcome.
fn fits_workers_ai(provider_input: &ProviderInput) -> Result<(), UnsupportedByWire> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    for question in provider_input.questions.typed.as_deref().unwrap_or_default() {
        if !(1..=100).contains(&question.name.len()) || !question.name.bytes().all(plain) {
            return Err(UnsupportedQuestions::QuestionName.into());
        }
        match &question.kind {
            QuestionKind::Choice { options } if options.len() < 2 => {
                return Err(UnsupportedByWire::Options(MAX_OPTIONS));
            }
            QuestionKind::Score { levels } if levels.len() < 2 => return Err(UnsupportedByWire::Levels(MAX_LEVELS)),
            _ => {}
        }
    }
    Ok(())
}

/// A part of a multipart body.
struct Part<'a> {
    name: String,
    media_type: &'a str,
    data: &'a Arc<[u8]>,
}

/// Returns the part of an asset whose entry refers to one.
fn part(asset: &Asset) -> Option<Part<'_>> {
    let members = asset.entry.members()?;
    let name = members.iter().find(|(member, _)| member == "part")?.1.as_string()?;
    let media_type = asset.media_type.as_deref().filter(|text| is_header_value(text));
    Some(Part { name, media_type: media_type.unwrap_or("application/octet-stream"), data: &asset.data })
}

/// Returns true for text that can be the value of a header: no control characters except tabs.
fn is_header_value(text: &str) -> bool {
    text.bytes().all(|byte| (byte >= b' ' && byte != 0x7f) || byte == b'\t')
}

/// Builds the multipart body: the JSON as part `request`, then one part per asset.
fn multipart(json: String, parts: &[Part<'_>]) -> Result<RequestBody, UnsupportedByWire> {
    let boundary = boundary(&json, parts);
    let mut pieces = vec![
        Piece::Text(format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"request\"\r\nContent-Type: application/json\r\n\r\n"
        )),
        Piece::Text(json),
    ];
    for Part { name, media_type, data } in parts {
        if name.is_empty() || name.chars().any(|c| c.is_control() || matches!(c, '"' | '\\')) {
            return Err(UnsupportedByWire::PartName);
        }
        let head = format!(
            "\r\n--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\n\
             Content-Type: {media_type}\r\n\r\n"
        );
        pieces.push(Piece::Text(head));
        pieces.push(Piece::File(Arc::clone(data)));
    }
    pieces.push(Piece::Text(format!("\r\n--{boundary}--\r\n")));
    Ok(RequestBody::Form { media_type: format!("multipart/form-data; boundary={boundary}"), pieces })
}

/// The prefix of every boundary; a number of sixteen digits follows.
const BOUNDARY: &str = "tollgate-part-";
const DIGITS: usize = 16;

/// Returns the first boundary that does not occur in the content.
fn boundary(json: &str, parts: &[Part<'_>]) -> String {
    let mut taken = HashSet::new();
    let contents = parts.iter().map(|part| &part.data[..]).chain([json.as_bytes()]);
    for content in contents {
        let mut rest = content;
        // Every boundary contains `-t` after a dash; a search for one byte is fast.
        while let Some(dash) = rest.iter().position(|byte| *byte == b'-') {
            rest = &rest[dash + 1..];
            let number = rest.strip_prefix(b"-").and_then(|rest| rest.strip_prefix(BOUNDARY.as_bytes()));
            let number =
                number.and_then(|number| number.get(..DIGITS)).and_then(|digits| std::str::from_utf8(digits).ok());
            taken.extend(number.and_then(|digits| digits.parse::<u64>().ok()));
        }
    }
    let most = u64::try_from(taken.len()).unwrap_or(u64::MAX);
    let free = (0..=most).find(|number| !taken.contains(number)).unwrap_or(most);
    format!("{BOUNDARY}{free:016}")
}

#[cfg(test)]
mod tests;
