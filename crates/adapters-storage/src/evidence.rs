//! Evidence and its labels. [`crate::budget`] adds the rows of evidence.

mod rows;

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::error::StoreError;
use domain::evidence::{
    Evidence, EvidenceFilter, EvidenceRepository, Label, LabelMode, LabelOutcome, LabelRepetition, LabelSource,
    NewLabel, PresetRequest,
};
use domain::ids::{DecisionId, PresetId, WorkspaceId};
use domain::json::Json;
use domain::money::Usd;
use domain::repetition::StoredRepetition;
use domain::usage::{AnswerEvidence, AnswerMethod, PresetReference};
use sea_orm::{ConnectionTrait, QueryResult, Value};
use uuid::Uuid;

use crate::audit::repetitions;
use crate::connections::RowWriter;
use crate::convert::{duration, millis, moment, parse};
use crate::errors::corrupt;
use crate::statements::{chunks_of, column, pieces, places, read, run};
use crate::usage::{ids, storable};

pub(crate) use rows::insert_evidence;

repository! {
    /// Stores evidence in the database; [`crate::SeaOrmBudgetStore`] adds it.
    SeaOrmEvidenceRepository
}

/// The longest difference between the time of an id and that of its record. Beyond it, a row is kept longer.
const CLOCK_DIFFERENCE: TimeDelta = TimeDelta::minutes(1);
/// Most rows of a statement that names each row.
const NAMED_ROWS: usize = 64;

/// The start of a query of evidence with its current label and the figures of its record, for [`to_evidence`].
const SELECT: &str = "SELECT e.record_id, e.position, g.workspace_id, g.preset_id, g.preset_version, g.question, g.model, \
                      g.provider, g.wire, g.method, e.decision, e.probabilities, e.created_at, l.version, \
                      l.value, l.source, l.created_by, l.created_at, r.cost_pico, r.latency_us FROM evidence e \
                      JOIN evidence_groups g ON g.id = e.group_id LEFT JOIN evidence_labels l ON l.record_id = e.record_id AND l.position = e.position \
                      AND l.version = e.label_version LEFT JOIN usage_records r ON r.id = e.record_id";

#[async_trait]
impl EvidenceRepository for SeaOrmEvidenceRepository {
    async fn list(&self, filter: &EvidenceFilter, limit: u64) -> Result<Vec<Evidence>, StoreError> {
        let (conditions, mut values) = conditions(filter);
        values.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
        let order = "ORDER BY e.created_at DESC, e.record_id DESC, e.position DESC LIMIT ?";
        let text = format!("{SELECT} WHERE {conditions} {order}");
        read(self.database.report_readers()?, &text, values).await?.iter().map(to_evidence).collect()
    }

    async fn find_presets(&self, ids: &[DecisionId]) -> Result<Vec<PresetRequest>, StoreError> {
        let mut ids: Vec<Vec<u8>> = ids.iter().map(ids::decision_column).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut found = Vec::new();
        for piece in pieces(&ids) {
            // All answers of a request are of one preset: the first row tells it.
            let text = format!(
                "WITH ids (id) AS (VALUES {}) SELECT ids.id, g.workspace_id, g.preset_id, g.preset_version FROM ids \
                 JOIN evidence_groups g ON g.id = (SELECT e.group_id FROM evidence e WHERE e.record_id = ids.id \
                 ORDER BY e.position LIMIT 1) ORDER BY ids.id",
                places(piece.len(), 1)
            );
            let values = piece.iter().map(|id| id.as_slice().into()).collect();
            for row in read(self.database.readers()?, &text, values).await? {
                let id = ids::decision_id(&column::<Vec<u8>>(&row, 0)?)?;
                let (workspace_id, preset) = to_preset(&row, 1, &id)?;
                found.push(PresetRequest { id, workspace_id, preset });
            }
        }
        Ok(found)
    }

    async fn label<'a>(
        &self,
        labels: &[NewLabel],
        mode: LabelMode,
        by: &str,
        repetition: Option<LabelRepetition<'a>>,
    ) -> Result<Vec<LabelOutcome>, StoreError> {
        let transaction = self.database.begin().await?;
        let at = self.database.now();
        let now = millis(at);
        let mut current = read_current(&transaction, labels).await?;
        let (mut outcomes, mut added) = (Vec::with_capacity(labels.len()), Vec::new());
        let mut newest: BTreeMap<Answer, i64> = BTreeMap::new();
        for new in labels {
            let answer = (ids::decision_column(&new.id), i64::from(new.position));
            let label = (new.value.text().to_owned(), new.source.as_str().to_owned());
            outcomes.push(match current.get_mut(&answer) {
                None => LabelOutcome::Unknown,
                Some((_, Some(stored))) if *stored == label => LabelOutcome::Unchanged,
                Some((version, _)) if *version >= i64::from(Label::MAX_VERSIONS) => LabelOutcome::TooMany,
                Some((version, stored)) => {
                    *version += 1;
                    *stored = Some(label.clone());
                    added.push((answer.clone(), *version, label));
                    newest.insert(answer, *version);
                    LabelOutcome::Changed
                }
            });
        }
        if mode == LabelMode::AllOrNone && outcomes.iter().any(|outcome| outcome.is_rejected()) {
            return Ok(outcomes);
        }
        if let Some((request, respond)) = repetition {
            let stored = StoredRepetition { request: request.clone(), response: respond(&outcomes) };
            repetitions::store(&transaction, &stored, at).await?;
        }
        let columns = ["record_id", "position", "version", "value", "source", "created_by", "created_at"];
        let write = |((id, position), version, (value, source)): &(Answer, i64, LabelText), row: &mut dyn RowWriter| {
            row.bytes(Some(id.clone()))?;
            row.integer(Some(*position))?;
            row.integer(Some(*version))?;
            [value, source, by].into_iter().try_for_each(|text| row.text(Some(text)))?;
            row.integer(Some(now))
        };
        transaction.insert_rows("evidence_labels", &columns, &added, write).await?;
        let mut by_version: BTreeMap<i64, Vec<Answer>> = BTreeMap::new();
        for (answer, version) in newest {
            by_version.entry(version).or_default().push(answer);
        }
        for (version, answers) in by_version {
            for piece in chunks_of(&answers, NAMED_ROWS) {
                let (answers, values) = any_of(piece, "");
                let text = format!("UPDATE evidence SET label_version = ? WHERE {answers}");
                run(&transaction, &text, [version.into()].into_iter().chain(values).collect()).await?;
            }
        }
        transaction.commit().await?;
        Ok(outcomes)
    }

    async fn versions(
        &self,
        id: &DecisionId,
        position: u32,
        newest: u32,
        limit: u64,
    ) -> Result<Vec<Label>, StoreError> {
        let text = "SELECT version, value, source, created_by, created_at FROM evidence_labels \
                    WHERE record_id = ? AND position = ? AND version <= ? ORDER BY version DESC LIMIT ?";
        let [position, newest] = [position, newest].map(|number| Value::from(i64::from(number)));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let values = vec![ids::decision_column(id).into(), position, newest, limit.into()];
        let rows = read(self.database.readers()?, text, values).await?;
        rows.iter().filter_map(|row| to_label(row, 0, id).transpose()).collect()
    }

    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        // Read before taking the write lock: usually there is nothing to remove.
        // Ids increase with time, so that no index of times is needed.
        let text = "SELECT record_id, position FROM evidence WHERE record_id < ? AND created_at < ? \
                    ORDER BY record_id, position LIMIT ?";
        let end = ids::first_at(before + CLOCK_DIFFERENCE);
        let values = vec![end.into(), millis(before).into(), i64::try_from(limit).unwrap_or(i64::MAX).into()];
        let old = read(self.database.report_readers()?, text, values).await?;
        let old: Vec<Answer> =
            old.iter().map(|row| Ok((column(row, 0)?, column(row, 1)?))).collect::<Result<_, StoreError>>()?;
        if old.is_empty() {
            rows::prune_groups(&self.database).await?;
            return Ok(0);
        }
        let transaction = self.database.begin().await?;
        let mut removed = 0;
        for piece in chunks_of(&old, NAMED_ROWS) {
            let (answers, values) = any_of(piece, "");
            run(&transaction, &format!("DELETE FROM evidence_labels WHERE {answers}"), values.clone()).await?;
            removed += run(&transaction, &format!("DELETE FROM evidence WHERE {answers}"), values).await?;
        }
        transaction.commit().await?;
        Ok(removed)
    }
}

/// The id of a record, and the position of an answer.
type Answer = (Vec<u8>, i64);
/// The value and the source of a label.
type LabelText = (String, String);

/// Reads the newest version of each labelled answer, 0 without one, and its label.
async fn read_current(
    connection: &impl ConnectionTrait,
    labels: &[NewLabel],
) -> Result<HashMap<Answer, (i64, Option<LabelText>)>, StoreError> {
    let answer = |label: &NewLabel| (ids::decision_column(&label.id), i64::from(label.position));
    let mut answers: Vec<Answer> = labels.iter().map(answer).collect();
    answers.sort_unstable();
    answers.dedup();
    let mut current = HashMap::new();
    for piece in chunks_of(&answers, NAMED_ROWS) {
        let (answers, values) = any_of(piece, "e.");
        let text = format!(
            "SELECT e.record_id, e.position, e.label_version, l.value, l.source FROM evidence e \
             LEFT JOIN evidence_labels l ON l.record_id = e.record_id AND l.position = e.position \
             AND l.version = e.label_version WHERE {answers}"
        );
        for row in read(connection, &text, values).await? {
            let version: Option<i64> = column(&row, 2)?;
            let label = column::<Option<String>>(&row, 3)?.zip(column(&row, 4)?);
            current.insert((column(&row, 0)?, column(&row, 1)?), (version.unwrap_or(0), label));
        }
    }
    Ok(current)
}

/// Returns a condition for answers of a table, and its values.
fn any_of(answers: &[Answer], table: &str) -> (String, Vec<Value>) {
    let condition = format!("({table}record_id = ? AND {table}position = ?)");
    let conditions = vec![condition.as_str(); answers.len()].join(" OR ");
    let values = answers.iter().flat_map(|(id, position)| [Value::from(id.as_slice()), Value::from(*position)]);
    (conditions, values.collect())
}

fn conditions(filter: &EvidenceFilter) -> (String, Vec<Value>) {
    let EvidenceFilter { preset, version, question, model, since, until, is_labelled, after } = filter;
    let mut conditions = vec!["e.preset_id = ?"];
    let mut values: Vec<Value> = vec![preset.uuid().as_bytes().to_vec().into()];
    let mut add = |condition, value: Option<Value>| {
        if let Some(value) = value {
            conditions.push(condition);
            values.push(value);
        }
    };
    add("g.preset_version = ?", version.map(|version| i64::from(version).into()));
    add("g.question = ?", question.as_deref().map(|question| storable(question).into_owned().into()));
    add("g.model = ?", model.as_deref().map(|model| storable(model).into_owned().into()));
    add("e.created_at >= ?", since.map(|since| millis(since).into()));
    add("e.created_at < ?", until.map(|until| millis(until).into()));
    match is_labelled {
        Some(true) => conditions.push("e.label_version IS NOT NULL"),
        Some(false) => conditions.push("e.label_version IS NULL"),
        None => {}
    }
    if let Some((at, id, position)) = after {
        // The first condition lets the database use the index.
        conditions.push(
            "e.created_at <= ? AND (e.created_at < ? OR e.record_id < ? OR (e.record_id = ? AND e.position < ?))",
        );
        let (at, id) = (Value::from(millis(*at)), Value::from(ids::decision_column(id)));
        values.extend([at.clone(), at, id.clone(), id, i64::from(*position).into()]);
    }
    (conditions.join(" AND "), values)
}

/// Reads a row of [`SELECT`].
fn to_evidence(row: &QueryResult) -> Result<Evidence, StoreError> {
    let id = ids::decision_id(&column::<Vec<u8>>(row, 0)?)?;
    let invalid = |name| corrupt(name, &id);
    let small = |place, name| u32::try_from(column::<i64>(row, place)?).map_err(|_| invalid(name));
    let json = |text: String, name| Json::parse(&text).map_err(|_| invalid(name));
    let (workspace_id, preset) = to_preset(row, 2, &id)?;
    let method: String = column(row, 9)?;
    let probabilities: Option<String> = column(row, 11)?;
    let latency: Option<i64> = column(row, 19)?;
    Ok(Evidence {
        workspace_id,
        preset,
        answer: AnswerEvidence {
            position: small(1, "evidence.position")?,
            question: column(row, 5)?,
            model: parse(&column::<String>(row, 6)?, "evidence_groups.model", &id)?,
            provider: column::<String>(row, 7)?.into(),
            wire: column::<String>(row, 8)?.into(),
            method: AnswerMethod::from_name(&method).ok_or_else(|| invalid("evidence_groups.method"))?,
            decision: json(column(row, 10)?, "evidence.decision")?,
            probabilities: probabilities.map(|text| json(text, "evidence.probabilities")).transpose()?,
        },
        created_at: moment(column(row, 12)?, "evidence.created_at", &id)?,
        label: to_label(row, 13, &id)?,
        cost: column::<Option<i64>>(row, 18)?.map(Usd::from_pico),
        latency: latency.map(|micros| duration(micros, "usage_records.latency_us", &id)).transpose()?,
        id,
    })
}

/// Reads the columns of a workspace and of a version of a preset from `first` on.
fn to_preset(row: &QueryResult, first: usize, id: &DecisionId) -> Result<(WorkspaceId, PresetReference), StoreError> {
    let invalid = |name| corrupt(name, id);
    let workspace_id = ids::workspace_id(&column::<Vec<u8>>(row, first)?);
    let preset = Uuid::from_slice(&column::<Vec<u8>>(row, first + 1)?);
    let version = u32::try_from(column::<i64>(row, first + 2)?);
    let preset = PresetReference {
        id: PresetId::from_uuid(preset.map_err(|_| invalid("evidence_groups.preset_id"))?),
        version: version.map_err(|_| invalid("evidence_groups.preset_version"))?,
    };
    Ok((workspace_id.ok_or_else(|| invalid("evidence_groups.workspace_id"))?, preset))
}

/// Reads the columns of a label from `first` on; `None` if there is none.
fn to_label(row: &QueryResult, first: usize, id: &DecisionId) -> Result<Option<Label>, StoreError> {
    let Some(version) = column::<Option<i64>>(row, first)? else { return Ok(None) };
    let (value, source): (String, String) = (column(row, first + 1)?, column(row, first + 2)?);
    Ok(Some(Label {
        version: u32::try_from(version).map_err(|_| corrupt("evidence_labels.version", id))?,
        value: Json::parse(&value).map_err(|_| corrupt("evidence_labels.value", id))?,
        source: LabelSource::from_name(&source).ok_or_else(|| corrupt("evidence_labels.source", id))?,
        created_by: column(row, first + 3)?,
        created_at: moment(column(row, first + 4)?, "evidence_labels.created_at", id)?,
    }))
}
