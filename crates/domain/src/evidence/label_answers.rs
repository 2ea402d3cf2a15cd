//! Labels the answers of presets.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{
    EvidenceError, EvidenceRepository, Label, LabelError, LabelMode, LabelOutcome, LabelRepetition, LabelSource,
    NewLabel,
};
use crate::authority::Right;
use crate::budget::LedgerReader;
use crate::change::Change;
use crate::error::StoreError;
use crate::ids::{DecisionId, PresetId, WorkspaceId};
use crate::json::Json;
use crate::preset::{PresetConfig, PresetRepository};
use crate::statistics::Decision;
use crate::usage::PresetReference;

/// The effects of labels: whether each changed something, or the reason why it is rejected.
pub type LabelResults = Vec<Result<bool, LabelError>>;

/// A label as a caller sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelDraft {
    /// The id of the Decisions request.
    pub id: DecisionId,
    /// The name of the question.
    pub question: String,
    /// The value.
    pub value: Json,
    /// The source.
    pub source: LabelSource,
}

/// Labels answers. A label is a decision that the question permits in the version of the preset that was asked.
#[derive(Clone)]
pub struct LabelAnswers {
    /// The evidence.
    pub evidence: Arc<dyn EvidenceRepository>,
    /// The questions.
    pub presets: Arc<dyn PresetRepository>,
    /// Stores the charges of this process.
    pub ledger: Arc<dyn LedgerReader>,
}

impl LabelAnswers {
    /// Labels answers of the caller's workspaces, each by itself. Returns whether each label changed something.
    ///
    /// # Errors
    /// A missing right, too many labels, or a store failure.
    pub async fn execute(
        &self,
        change: &Change<'_, LabelResults>,
        drafts: &[LabelDraft],
    ) -> Result<LabelResults, EvidenceError> {
        let by = change.by();
        by.check(Right::Write)?;
        if drafts.len() > NewLabel::MAX_IN_A_CALL {
            return Err(EvidenceError::LabelCount);
        }
        let checked = self.check(drafts, |workspace| by.sees(workspace)).await?;
        let valid: Vec<NewLabel> = checked.iter().flatten().cloned().collect();
        let results = |outcomes: &Vec<LabelOutcome>| -> LabelResults {
            let mut stored = outcomes.iter().copied().map(label_result);
            let result = |label: &Result<NewLabel, LabelError>| match label {
                Ok(_) => stored.next().unwrap_or(Ok(false)),
                Err(error) => Err(error.clone()),
            };
            checked.iter().map(result).collect()
        };
        let by = &by.actor().name;
        let outcomes = match change.repetition() {
            Some((request, respond)) => {
                let respond = |outcomes: &Vec<LabelOutcome>| respond(&results(outcomes));
                self.store(&valid, LabelMode::Each, by, Some((request, &respond))).await?
            }
            None => self.store(&valid, LabelMode::Each, by, None).await?,
        };
        Ok(results(&outcomes))
    }

    /// Checks labels. Answers of workspaces that the caller does not see are not found. [`Self::store`] rejects those of
    /// answers without evidence. The questions of one version of a preset are in memory at a time.
    pub(super) async fn check(
        &self,
        drafts: &[LabelDraft],
        sees: impl Fn(WorkspaceId) -> bool + Send,
    ) -> Result<Vec<Result<NewLabel, LabelError>>, StoreError> {
        self.ledger.store_pending().await?;
        let mut ids: Vec<DecisionId> = drafts.iter().map(|draft| draft.id.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        let found = self.evidence.find_presets(&ids).await?.into_iter().filter(|request| sees(request.workspace_id));
        let presets: HashMap<DecisionId, PresetReference> = found.map(|request| (request.id, request.preset)).collect();
        let mut by_preset: BTreeMap<(PresetId, u32), Vec<usize>> = BTreeMap::new();
        for (index, draft) in drafts.iter().enumerate() {
            if let Some(preset) = presets.get(&draft.id) {
                by_preset.entry((preset.id, preset.version)).or_default().push(index);
            }
        }
        let mut checked = vec![Err(LabelError::NotFound); drafts.len()];
        for ((id, version), indexes) in by_preset {
            let found = self.presets.versions(id, version, 1).await?.into_iter().next();
            let Some(found) = found.filter(|found| found.number == version) else { continue };
            for index in indexes {
                checked[index] = check_label(&drafts[index], &found.config);
            }
        }
        Ok(checked)
    }

    /// Stores checked labels, and the request with them.
    pub(super) async fn store(
        &self,
        labels: &[NewLabel],
        mode: LabelMode,
        by: &str,
        repetition: Option<LabelRepetition<'_>>,
    ) -> Result<Vec<LabelOutcome>, StoreError> {
        if labels.is_empty() { Ok(Vec::new()) } else { self.evidence.label(labels, mode, by, repetition).await }
    }
}

/// Returns true if a label changed something.
///
/// # Errors
/// The label is rejected.
pub(super) const fn label_result(outcome: LabelOutcome) -> Result<bool, LabelError> {
    match outcome {
        LabelOutcome::Changed => Ok(true),
        LabelOutcome::Unchanged => Ok(false),
        LabelOutcome::Unknown => Err(LabelError::NoEvidence),
        LabelOutcome::TooMany => Err(LabelError::TooManyVersions),
    }
}

/// Checks a label against the questions of its preset.
fn check_label(draft: &LabelDraft, config: &PresetConfig) -> Result<NewLabel, LabelError> {
    let questions = config.questions.typed.as_deref().unwrap_or_default();
    let found = (0..).zip(questions).find(|(_, question)| question.name == draft.question);
    let Some((position, question)) = found else {
        return Err(LabelError::unknown_question(questions.iter().map(|question| question.name.as_str())));
    };
    let decision = Decision::from_label(&question.kind, &draft.value)?;
    let value = decision.to_label(&question.kind).ok_or(LabelError::NoEvidence)?;
    Ok(NewLabel { id: draft.id.clone(), position, value, source: draft.source })
}

impl LabelAnswers {
    /// Returns up to `limit` versions of the label of an answer after the first `offset`, newest first, and the number of
    /// all. The newest is the current label.
    ///
    /// # Errors
    /// The request has no evidence, or the caller does not see its workspace; its preset has no such question; the store
    /// failed.
    pub async fn list_versions(
        &self,
        sees: impl Fn(WorkspaceId) -> bool,
        (id, question): (&DecisionId, &str),
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<Label>, u64), EvidenceError> {
        let position = self.position(sees, id, question).await?;
        let newest = self.evidence.versions(id, position, u32::MAX, 1).await?;
        let total = newest.first().map_or(0, |label| label.version);
        let newest = total.saturating_sub(u32::try_from(offset).unwrap_or(u32::MAX));
        let versions =
            if newest == 0 { Vec::new() } else { self.evidence.versions(id, position, newest, limit).await? };
        Ok((versions, total.into()))
    }

    /// Returns the index of a question in the preset of a request.
    async fn position(
        &self,
        sees: impl Fn(WorkspaceId) -> bool,
        id: &DecisionId,
        question: &str,
    ) -> Result<u32, EvidenceError> {
        self.ledger.store_pending().await?;
        let found = self.evidence.find_presets(std::slice::from_ref(id)).await?.into_iter().next();
        let preset = found.filter(|request| sees(request.workspace_id)).ok_or(EvidenceError::NotFound)?.preset;
        let version = self.presets.versions(preset.id, preset.version, 1).await?.into_iter().next();
        let version = version.filter(|version| version.number == preset.version);
        let config = version.ok_or(EvidenceError::NotFound)?.config;
        let questions = config.questions.typed.as_deref().unwrap_or_default();
        let found = (0..).zip(questions).find(|(_, other)| other.name == question);
        found.map(|(position, _)| position).ok_or_else(|| {
            let names = questions.iter().map(|question| question.name.as_str());
            EvidenceError::Question(LabelError::unknown_question(names))
        })
    }
}
