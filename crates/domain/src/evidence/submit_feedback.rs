//! Feedback on an answer, with labels.

use super::{EvidenceError, LabelAnswers, LabelDraft, LabelError, LabelMode, LabelSource, NewLabel};
use crate::api_key::Principal;
use crate::audit::Actor;
use crate::authority::Right;
use crate::decision::FindRecord;
use crate::ids::{DecisionId, WorkspaceId};
use crate::json::Json;

/// Takes feedback on the answer of a Decisions request.
pub struct SubmitFeedback {
    /// The records.
    pub records: FindRecord,
    /// Stores the labels.
    pub labels: LabelAnswers,
}

impl SubmitFeedback {
    /// Stores the labels of an answer; none if one is rejected. An inference key labels answers of its workspace, a
    /// management key with the access `write` those of its workspaces.
    ///
    /// # Errors
    /// A missing right, an unknown generation, an invalid label, or a store failure.
    pub async fn execute(
        &self,
        caller: &Principal,
        actor: &Actor,
        id: &DecisionId,
        labels: Vec<(String, Json)>,
        source: LabelSource,
    ) -> Result<(), EvidenceError> {
        let by = caller.authority(|_| actor.clone()).ok();
        if let Some(by) = &by {
            by.check(Right::Write)?;
        }
        let own = caller.inference().ok().map(crate::api_key::InferenceKey::workspace_id);
        let sees = |workspace: WorkspaceId| match &by {
            Some(by) => by.sees(workspace),
            None => own == Some(workspace),
        };
        let record = self.records.execute(id).await?.filter(|record| sees(record.workspace_id));
        let record = record.ok_or(EvidenceError::NotFound)?;
        let Some(first) = labels.first().map(|(question, _)| question.clone()) else { return Ok(()) };
        if record.preset.is_none() {
            return Err(EvidenceError::Label { question: first, error: LabelError::NoPreset });
        }
        if labels.len() > NewLabel::MAX_IN_A_CALL {
            return Err(EvidenceError::LabelCount);
        }
        let draft = |(question, value)| LabelDraft { id: id.clone(), question, value, source };
        let drafts: Vec<LabelDraft> = labels.into_iter().map(draft).collect();
        let named = |(draft, error): (&LabelDraft, LabelError)| {
            // The record exists, so that only its evidence is missing.
            let error = if error == LabelError::NotFound { LabelError::NoEvidence } else { error };
            EvidenceError::Label { question: draft.question.clone(), error }
        };
        let checked = self.labels.check(&drafts, sees).await?;
        let pairs = drafts.iter().zip(checked);
        let checked = pairs.map(|(draft, label)| label.map_err(|error| named((draft, error))));
        let checked = checked.collect::<Result<Vec<_>, _>>()?;
        let stored = self.labels.store(&checked, LabelMode::AllOrNone, &actor.name).await?;
        let failed = drafts.iter().zip(stored).find_map(|(draft, stored)| Some((draft, stored.err()?)));
        failed.map_or(Ok(()), |failed| Err(named(failed)))
    }
}
