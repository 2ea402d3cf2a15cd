//! Lists the versions of labels.

use super::{EvidenceError, Label, LabelAnswers, LabelError};
use crate::ids::{DecisionId, WorkspaceId};

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
