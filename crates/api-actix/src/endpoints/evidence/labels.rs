//! `/labels`: adds labels to many answers, and lists the versions of one.
#![expect(dead_code, reason = "the schemas of bodies that are read by hand")]

use domain::api_key::InferenceKey;
use domain::evidence::{EvidenceError, Label, LabelDraft, LabelError, LabelResults, NewLabel};
use domain::json::JsonKind;

use super::feedback::{LabelSourceName, source};
use super::record::LabelView;
use super::{generation_id, read_generation_id};
use crate::endpoints::prelude::*;
use crate::http::members::{MemberNames, Members, invalid, string};

/// `POST …/labels`: labels answers.
pub(crate) const ADD: Route = Route::management(Post, "/labels", tags::EVIDENCE, handler!(handle_add, payload))
    .operation("addLabels", "Label answers")
    .description(
        "Labels up to 1,000 answers of the caller's workspaces. Each label is taken or rejected by itself. The \
         same content again changes nothing.",
    )
    .body(BodySchema::of::<LabelsRequest>)
    .headers(&[IDEMPOTENCY_KEY])
    .answer(
        || BodySchema::data::<LabelsView>("LabelsResponse", "The effects of labels."),
        "The effects, with the rejected labels",
    );

async fn handle_add(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let body = call.read_json(payload).await?;
    let rows = read_rows(body.text()?)?;
    let drafts: Vec<LabelDraft> = rows.iter().flatten().cloned().collect();
    let labels = &call.gateway.services.evidence.labels;
    let execute = async |change: &Change<'_, LabelResults>| labels.execute(change, &drafts).await;
    call.post(by, body.text()?, execute, |stored| RecordResponse::data(StatusCode::OK, LabelsView::new(&rows, stored)))
        .await
}

/// `GET …/labels`: lists the versions of a label.
pub(crate) const LIST: Route = Route::any_key(Get, "/labels", tags::EVIDENCE, handler!(handle_list))
    .operation("listLabels", "List the versions of a label")
    .description("Newest first: the first one is the current label. An inference key reads those of its workspace.")
    .query(&[
        Query::text("generation_id", "The id of the answer.").required(),
        Query::text("question", "The name of the question.").required(),
        OFFSET,
        LIMIT,
    ])
    .answer(|| BodySchema::page::<LabelView<'_>>("LabelListResponse", "A page of versions of a label."), "The versions")
    .also(&[404]);

async fn handle_list(call: &Call<'_>, caller: &Principal) -> Outcome {
    let query = call.request.query_string();
    let range = PageRange::parse(query, DEFAULT_LIMIT)?;
    let required = |name| parameters::value(query, name)?.ok_or_else(|| invalid(name, "is required"));
    let id = read_generation_id("generation_id", Some(required("generation_id")?))?;
    let question = required("question")?;
    let by = caller.authority(|id| call.actor_of(id)).ok();
    if let Some(by) = &by {
        by.check(Right::Read)?;
    }
    let own = caller.inference().ok().map(InferenceKey::workspace_id);
    let sees = |workspace| match &by {
        Some(by) => by.sees(workspace),
        None => own == Some(workspace),
    };
    let labels = &call.gateway.services.evidence.labels;
    let read = async |offset, limit| Ok(labels.list_versions(sees, (&id, &question), offset, limit).await?);
    let size = |label: &Label| ElementSize::of_text(label.stored_bytes());
    let (versions, total) = range.read(call, size, read).await?;
    Ok(Page::respond(versions.iter().map(LabelView::new).collect(), total))
}

/// Reads the labels. One that is malformed is rejected by itself.
fn read_rows(text: &str) -> Result<Vec<Result<LabelDraft, String>>, ApiError> {
    let members = Members::read(text, MemberNames { writable: &["labels"], read_only: &[], neutral: &[] })?;
    let rows = members.present("labels").and_then(Json::elements);
    let rows = rows.ok_or_else(|| invalid("labels", "must be an array of labels"))?;
    if rows.len() > NewLabel::MAX_IN_A_CALL {
        return Err(EvidenceError::LabelCount.into());
    }
    let read = |row: &Json| match row.kind() {
        JsonKind::Object => read_row(row.text()).map_err(|error| error.text().to_owned()),
        _ => Err("must be an object with generation_id, question, label and source".to_owned()),
    };
    Ok(rows.iter().map(read).collect())
}

const LABEL: MemberNames =
    MemberNames { writable: &["generation_id", "question", "label", "source"], read_only: &[], neutral: &[] };

fn read_row(text: &str) -> Result<LabelDraft, ApiError> {
    let members = Members::read(text, LABEL)?;
    Ok(LabelDraft {
        id: members.required("generation_id", generation_id)?,
        question: members.required("question", string)?,
        value: members.required("label", |_, value| Ok(value.clone()))?,
        source: members.required("source", source)?,
    })
}

/// The effects of labels.
#[derive(Serialize, ToSchema)]
#[schema(as = LabelEffects)]
struct LabelsView {
    /// The number of labels that are a new version.
    changed: u64,
    /// The number of labels that answers have already.
    unchanged: u64,
    errors: Vec<RejectedLabel>,
}

impl LabelsView {
    fn new(rows: &[Result<LabelDraft, String>], stored: &LabelResults) -> Self {
        let (mut view, mut stored) = (Self { changed: 0, unchanged: 0, errors: Vec::new() }, stored.iter());
        for (index, row) in rows.iter().enumerate() {
            let result = row.as_ref().map_err(Clone::clone).and_then(|_| {
                let result = stored.next().unwrap_or(&Err(LabelError::NotFound));
                result.as_ref().map_err(ToString::to_string)
            });
            match result {
                Ok(true) => view.changed += 1,
                Ok(false) => view.unchanged += 1,
                Err(message) => view.errors.push(RejectedLabel { index, message }),
            }
        }
        view
    }
}

/// A rejected label.
#[derive(Serialize, ToSchema)]
struct RejectedLabel {
    /// Its index in the body.
    index: usize,
    message: String,
}

/// Labels of answers.
#[derive(ToSchema)]
struct LabelsRequest {
    #[schema(max_items = 1000)]
    labels: Vec<LabelRequest>,
}

/// The label of an answer.
#[derive(ToSchema)]
struct LabelRequest {
    generation_id: String,
    question: String,
    /// True or false, the option, or the number of the level; also as a string.
    #[schema(value_type = Value)]
    label: serde_json::Value,
    source: LabelSourceName,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_rows_are_rejected_by_themselves() {
        let good = r#"{"generation_id":"gen-dec-a","question":"q","label":"x","source":"human"}"#;
        let read = |rows: &str| read_rows(&format!(r#"{{"labels":[{rows}]}}"#));
        let rows = read(&format!(r#"{good},1,{{"generation_id":"gen-dec-a","question":"q"}}"#)).unwrap();
        assert_eq!(rows[0].as_ref().unwrap().value.text(), "\"x\"");
        let fault = "must be an object with generation_id, question, label and source";
        assert_eq!(rows[1].as_ref().unwrap_err(), fault);
        assert_eq!(rows[2].as_ref().unwrap_err(), "label: is required");
        let many = vec![good; NewLabel::MAX_IN_A_CALL + 1].join(",");
        assert_eq!(read(&many).unwrap_err().text(), "a call has at most 1000 labels");
        assert!(read_rows(r#"{"labels":{}}"#).is_err() && read_rows("{}").is_err() && read_rows("[]").is_err());
    }
}
