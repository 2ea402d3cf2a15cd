//! The rows of evidence of a fold, and their groups.

use std::borrow::Cow;
use std::collections::HashMap;

use aws_lc_rs::digest::{Context, SHA256};
use domain::error::StoreError;
use domain::json::Json;
use domain::usage::{AnswerEvidence, UsageRecord};
use sea_orm::Value;

use crate::connections::{RowWriter, Transaction};
use crate::convert::millis;
use crate::database::Database;
use crate::errors::corrupt;
use crate::statements::{pieces, places, read, run};
use crate::usage::{ids, storable};

const COLUMNS: [&str; 7] =
    ["record_id", "position", "preset_id", "group_id", "decision", "probabilities", "created_at"];
const GROUP_COLUMNS: [&str; 9] =
    ["id", "workspace_id", "preset_id", "preset_version", "question", "model", "provider", "wire", "method"];

/// The id of a group: the first bytes of a digest. So every process knows it without a read, and also a store that lost
/// its last transactions to a failover gets the same one.
type GroupId = [u8; 16];

/// The columns of a group but its id.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Group<'a> {
    workspace_id: [u8; 16],
    preset_id: [u8; 16],
    preset_version: u32,
    question: &'a str,
    model: &'a str,
    provider: &'a str,
    wire: &'a str,
    method: &'static str,
}

impl<'a> Group<'a> {
    fn new(record: &UsageRecord, answer: &'a AnswerEvidence) -> Result<Self, StoreError> {
        // Only requests with a preset have evidence.
        let preset = record.preset.ok_or_else(|| corrupt("usage_records.preset_id", &record.id))?;
        Ok(Self {
            workspace_id: *record.workspace_id.uuid().as_bytes(),
            preset_id: *preset.id.uuid().as_bytes(),
            preset_version: preset.version,
            question: &answer.question,
            model: answer.model.as_str(),
            provider: &answer.provider,
            wire: &answer.wire,
            method: answer.method.as_str(),
        })
    }

    /// Returns the texts as they are stored.
    fn texts(&self) -> [Cow<'_, str>; 5] {
        [self.question, self.model, self.provider, self.wire, self.method].map(storable)
    }

    fn id(&self) -> GroupId {
        let mut digest = Context::new(&SHA256);
        digest.update(&self.workspace_id);
        digest.update(&self.preset_id);
        digest.update(&self.preset_version.to_be_bytes());
        for text in self.texts() {
            digest.update(&(text.len() as u64).to_be_bytes());
            digest.update(text.as_bytes());
        }
        let mut id = GroupId::default();
        id.iter_mut().zip(digest.finish().as_ref()).for_each(|(byte, digest)| *byte = *digest);
        id
    }

    fn values(&self, id: GroupId) -> [Value; 9] {
        let [question, model, provider, wire, method] = self.texts().map(|text| Value::from(text.into_owned()));
        let ids = [id, self.workspace_id, self.preset_id].map(|id| Value::from(id.to_vec()));
        let [id, workspace_id, preset_id] = ids;
        let version = i64::from(self.preset_version).into();
        [id, workspace_id, preset_id, version, question, model, provider, wire, method]
    }
}

type IdentifiedGroup<'a> = (GroupId, Group<'a>);
/// An answer of a record, with its group.
type Row<'a> = (&'a UsageRecord, &'a AnswerEvidence, GroupId);

/// Adds the evidence of records, and those of its groups that are new.
pub(crate) async fn insert_evidence(
    transaction: &Transaction,
    answers: &[(&UsageRecord, &AnswerEvidence)],
) -> Result<(), StoreError> {
    let (rows, groups) = group_rows(answers)?;
    for piece in pieces(&groups) {
        let text = format!(
            "INSERT INTO evidence_groups ({}) VALUES {} ON CONFLICT (id) DO NOTHING",
            GROUP_COLUMNS.join(", "),
            places(piece.len(), GROUP_COLUMNS.len())
        );
        run(transaction, &text, piece.iter().flat_map(|(id, group)| group.values(*id)).collect()).await?;
    }
    transaction.insert_rows("evidence", &COLUMNS, &rows, write_row).await
}

/// Finds the group of each answer. Returns each group once.
fn group_rows<'a>(
    answers: &[(&'a UsageRecord, &'a AnswerEvidence)],
) -> Result<(Vec<Row<'a>>, Vec<IdentifiedGroup<'a>>), StoreError> {
    let mut groups: HashMap<Group<'a>, GroupId> = HashMap::new();
    let mut last: Option<(Group<'a>, GroupId)> = None;
    let mut rows = Vec::with_capacity(answers.len());
    for &(record, answer) in answers {
        let group = Group::new(record, answer)?;
        // Most requests are like the one before.
        let id = match &last {
            Some((before, id)) if *before == group => *id,
            _ => *groups.entry(group.clone()).or_insert_with_key(Group::id),
        };
        last = Some((group, id));
        rows.push((record, answer, id));
    }
    Ok((rows, groups.into_iter().map(|(group, id)| (id, group)).collect()))
}

/// Writes a row in the order of [`COLUMNS`].
fn write_row((record, answer, group): &Row<'_>, row: &mut dyn RowWriter) -> Result<(), StoreError> {
    row.bytes(Some(ids::decision_column(&record.id)))?;
    row.integer(Some(answer.position.into()))?;
    row.bytes(record.preset.map(|preset| preset.id.uuid().as_bytes().to_vec()))?;
    row.bytes(Some(group.to_vec()))?;
    row.text(Some(answer.decision.text()))?;
    row.text(answer.probabilities.as_ref().map(Json::text))?;
    row.integer(Some(millis(record.created_at)))
}

/// Removes the groups of presets without evidence.
pub(super) async fn prune_groups(database: &Database) -> Result<(), StoreError> {
    const UNUSED: &str = "NOT EXISTS (SELECT 1 FROM evidence e WHERE e.preset_id = evidence_groups.preset_id)";
    // Read before taking the write lock: usually there is nothing to remove.
    let text = format!("SELECT id FROM evidence_groups WHERE {UNUSED} LIMIT 1");
    if read(database.report_readers()?, &text, Vec::new()).await?.is_empty() {
        return Ok(());
    }
    let transaction = database.begin().await?;
    run(&transaction, &format!("DELETE FROM evidence_groups WHERE {UNUSED}"), Vec::new()).await?;
    transaction.commit().await
}
