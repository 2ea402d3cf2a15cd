//! Conversion of a response body to canonical form.

use domain::json::{Json, JsonText};
use domain::pricing::ReportedUsage;

use crate::provider::{BadAnswer, MalformedAnswer, Object, UsageNames, WireAnswer, as_text, string, usage};

/// The names of the token counts on this wire.
const USAGE: UsageNames = UsageNames { input: "input_tokens", output: "output_tokens" };

/// The wrapper around the answers of the `system-one` wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResponseWrapper {
    /// No wrapper.
    #[default]
    None,
    /// `{"result": {..}, "success": true}`, and errors as numbered codes.
    WorkersAi,
    /// `{"response": {..}}`; the value of a `noul` answer is called `probability`, and there is no `model`.
    Databricks,
}

/// Reads a response body. Answers are kept byte for byte, except for members that a wrapper renames.
///
/// # Errors
/// The malformed element.
pub fn read(response_wrapper: ResponseWrapper, body: &[u8]) -> Result<WireAnswer, BadAnswer> {
    let members = Object::parse(as_text(body)?).ok_or(MalformedAnswer::NotOfItsForm)?;
    match response_wrapper {
        ResponseWrapper::None => of_members(&members),
        ResponseWrapper::WorkersAi => of_members(&inner(&members, "result")?),
        ResponseWrapper::Databricks => {
            let inner = inner(&members, "response")?;
            let answer = of_members(&inner)?;
            let answers = with_nouls(&answer.answers).map_err(|error| BadAnswer { error, usage: answer.usage })?;
            Ok(WireAnswer { answers, ..answer })
        }
    }
}

/// Returns the content of the wrapper. A failure in it is a failure of the attempt.
fn inner<'a>(members: &Object<'a>, name: &str) -> Result<Object<'a>, MalformedAnswer> {
    if members.get("success")?.is_some_and(|success| success.get() != "true") {
        return Err(MalformedAnswer::NoAnswers);
    }
    members.get(name)?.and_then(Object::of).ok_or(MalformedAnswer::NoAnswers)
}

fn of_members(members: &Object<'_>) -> Result<WireAnswer, BadAnswer> {
    let (answers, used) = (members.get("answers"), members.get("usage"));
    let used: Option<ReportedUsage> = usage(used?, USAGE)?;
    let answers = answers
        .and_then(|answers| answers.filter(|answers| answers.get().starts_with('{')).ok_or(MalformedAnswer::NoAnswers));
    match answers {
        Ok(answers) => Ok(WireAnswer { answers: Json::from(answers), usage: used }),
        Err(error) => Err(BadAnswer { error, usage: used }),
    }
}

/// Renames `probability` to `noul` in the answers of that type.
fn with_nouls(answers: &Json) -> Result<Json, MalformedAnswer> {
    let members = Object::parse(answers.text()).ok_or(MalformedAnswer::NoAnswers)?;
    let renamed: Vec<(&str, Json)> =
        members.members().iter().map(|(name, answer)| (&**name, with_noul(*answer))).collect();
    Ok(Json::object(renamed.iter().map(|(name, answer)| (*name, answer.text()))))
}

fn with_noul(answer: JsonText<'_>) -> Json {
    let as_it_is = || Json::from(answer);
    let Some(members) = Object::of(answer) else { return as_it_is() };
    let has = |name: &str| members.members().iter().any(|(member, _)| member == name);
    let is_noul = matches!(members.get("type"), Ok(Some(kind)) if string(kind).as_deref() == Some("noul"));
    if !is_noul || has("noul") {
        return as_it_is();
    }
    let renamed = |name| if name == "probability" { "noul" } else { name };
    Json::object(members.members().iter().map(|(name, value)| (renamed(&**name), value.get())))
}

#[cfg(test)]
mod tests;
