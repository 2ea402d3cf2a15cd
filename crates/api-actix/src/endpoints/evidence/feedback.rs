//! `POST /generation/feedback`: feedback on an answer, with labels.
#![expect(dead_code, reason = "the schemas of bodies that are read by hand")]

use std::collections::BTreeMap;

use domain::change::Respond;
use domain::evidence::{EvidenceError, LabelSource};
use domain::repetition::Repetition;

use super::generation_id;
use crate::endpoints::prelude::*;
use crate::http::members::{MemberNames, Members, invalid, string};

pub(crate) const ROUTE: Route = Route::any_key(Post, "/generation/feedback", tags::EVIDENCE, handler!(handle, payload))
    .any_query()
    .operation("submitFeedback", "Submit feedback on an answer")
    .description(
        "An inference key labels answers of its workspace, a management key with the access `write` those of its \
         workspaces. All labels are stored, or none. The same content again changes nothing; another value is a \
         new version. `category` is logged, `comment` is not kept.",
    )
    .body(BodySchema::of::<FeedbackRequest>)
    .headers(&[IDEMPOTENCY_KEY])
    .answer(|| BodySchema::data::<SuccessView>("FeedbackResponse", "A confirmation."), "The feedback was taken")
    .also(&[404]);

async fn handle(call: &Call<'_>, caller: &Principal, payload: Payload) -> Outcome {
    let body = call.read_json(payload).await?;
    let Feedback { id, category, labels } = Feedback::read(body.text()?)?;
    let (labels, source) = labels.unwrap_or((Vec::new(), LabelSource::Human));
    let (count, request_id, feedback) = (labels.len(), call.request_id, &call.gateway.services.evidence.feedback);
    let actor = call.actor(caller);
    let execute = async |repetition: Option<(&Repetition, Respond<'_, ()>)>| {
        feedback.execute(caller, &actor, &id, labels, source, repetition).await?;
        tracing::info!(request.id = %request_id, decision.id = %id, category = category.as_str(), labels = count, "feedback received");
        Ok::<_, EvidenceError>(())
    };
    call.once((&actor.name, ""), body.text()?, execute, |()| {
        RecordResponse::data(StatusCode::OK, SuccessView { success: true })
    })
    .await
}

const FEEDBACK: MemberNames = MemberNames {
    writable: &["generation_id", "category", "comment", "labels", "source"],
    read_only: &[],
    neutral: &[],
};

const CATEGORIES: [&str; 7] =
    ["latency", "incoherence", "incorrect_response", "formatting", "billing", "api_error", "other"];

#[derive(Debug)]
struct Feedback {
    id: domain::ids::DecisionId,
    category: String,
    labels: Option<(Vec<(String, Json)>, LabelSource)>,
}

impl Feedback {
    fn read(text: &str) -> Result<Self, ApiError> {
        let members = Members::read(text, FEEDBACK)?;
        let id = members.required("generation_id", generation_id)?;
        let category = members.required("category", category)?;
        members.present("comment").map(|comment| string("comment", comment)).transpose()?;
        let labels = members.present("labels").map(read_labels).transpose()?.filter(|labels| !labels.is_empty());
        let labels = match labels {
            Some(labels) => Some((labels, members.required("source", source)?)),
            None => None,
        };
        Ok(Self { id, category, labels })
    }
}

fn category(name: &str, value: &Json) -> Result<String, ApiError> {
    let known = value.as_string().filter(|text| CATEGORIES.contains(&text.as_str()));
    known.ok_or_else(|| invalid(name, &format!("must be one of {}", CATEGORIES.join(", "))))
}

/// Reads the source of a label.
pub(super) fn source(name: &str, value: &Json) -> Result<LabelSource, ApiError> {
    let source = value.as_string().and_then(|text| LabelSource::from_name(&text));
    source.ok_or_else(|| invalid(name, "must be human, reference or system"))
}

fn read_labels(value: &Json) -> Result<Vec<(String, Json)>, ApiError> {
    let fault = "must be an object that maps questions to their right answers, for example {\"refund\": true}";
    let labels = value.members().ok_or_else(|| invalid("labels", fault))?;
    let mut names: Vec<&str> = labels.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(invalid("labels", "has a question more than once"));
    }
    Ok(labels)
}

/// Confirms that the feedback was taken.
#[derive(Serialize, ToSchema)]
struct SuccessView {
    success: bool,
}

/// Feedback on an answer.
#[derive(ToSchema)]
struct FeedbackRequest {
    /// The id of the answer.
    generation_id: String,
    /// The reason; it is logged and not stored.
    category: FeedbackCategory,
    /// A comment; it is neither logged nor stored.
    comment: Option<String>,
    /// The right answers by question: true or false, the option, or the number of the level.
    #[schema(value_type = Option<Object>)]
    labels: Option<BTreeMap<String, serde_json::Value>>,
    /// The source of the labels; required with them.
    source: Option<LabelSourceName>,
}

/// The reason for feedback.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
enum FeedbackCategory {
    Latency,
    Incoherence,
    IncorrectResponse,
    Formatting,
    Billing,
    ApiError,
    Other,
}

/// The source of a label: a person, a dataset, or another system.
#[derive(ToSchema)]
#[schema(as = LabelSource)]
#[serde(rename_all = "lowercase")]
pub(super) enum LabelSourceName {
    Human,
    Reference,
    System,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_is_read_as_published_clients_send_it() {
        let read = Feedback::read(r#"{"generation_id":"gen-dec-a","category":"incorrect_response","comment":"c"}"#);
        assert!(read.unwrap().labels.is_none());
        let text = r#"{"generation_id":"gen-dec-a","category":"other","labels":{"q":"a","r":2},"source":"system"}"#;
        let (labels, source) = Feedback::read(text).unwrap().labels.unwrap();
        assert_eq!((labels.len(), labels[1].1.text(), source), (2, "2", LabelSource::System));
    }

    #[test]
    fn invalid_feedback_is_located() {
        let error = |rest: &str| {
            let text = format!(r#"{{"generation_id":"gen-dec-a",{rest}}}"#);
            Feedback::read(&text).unwrap_err().text().to_owned()
        };
        for (rest, expected) in [
            (r#""comment":"c""#, "category: is required"),
            (r#""category":"bad""#, "category: must be one of latency, incoherence"),
            (r#""category":"other","comment":1"#, "comment: must be a string"),
            (r#""category":"other","labels":{"q":1}"#, "source: is required"),
            (r#""category":"other","labels":{"q":1},"source":"guess""#, "source: must be human, reference or system"),
            (r#""category":"other","labels":{"q":1,"q":2},"source":"human""#, "labels: has a question more than once"),
            (r#""category":"other","labels":[]"#, "labels: must be an object"),
            (r#""category":"other","label":{}"#, "unknown member \"label\""),
        ] {
            assert!(error(rest).starts_with(expected), "{rest}: {}", error(rest));
        }
        let id = Feedback::read(r#"{"generation_id":"x","category":"other"}"#).unwrap_err();
        assert!(id.text().starts_with("generation_id: must be the id"));
    }
}
