//! Feedback on an answer, with labels.

use super::{
    EvidenceError, LabelAnswers, LabelDraft, LabelError, LabelMode, LabelOutcome, LabelSource, NewLabel, label_result,
};
use crate::api_key::Principal;
use crate::audit::Actor;
use crate::authority::Right;
use crate::change::Respond;
use crate::decision::FindRecord;
use crate::ids::{DecisionId, WorkspaceId};
use crate::json::Json;
use crate::repetition::Repetition;

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
        repetition: Option<(&Repetition, Respond<'_, ()>)>,
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
        let record = self.records.execute(id).await?;
        // Evidence may outlive its record. Then it tells the workspace.
        let is_visible = record.as_ref().map_or(!labels.is_empty(), |record| sees(record.workspace_id));
        if !is_visible {
            return Err(EvidenceError::NotFound);
        }
        let Some(first) = labels.first().map(|(question, _)| question.clone()) else { return Ok(()) };
        if record.as_ref().is_some_and(|record| record.preset.is_none()) {
            return Err(EvidenceError::Label { question: first, error: LabelError::NoPreset });
        }
        if labels.len() > NewLabel::MAX_IN_A_CALL {
            return Err(EvidenceError::LabelCount);
        }
        let draft = |(question, value)| LabelDraft { id: id.clone(), question, value, source };
        let drafts: Vec<LabelDraft> = labels.into_iter().map(draft).collect();
        let named = |(draft, error): (&LabelDraft, LabelError)| match error {
            LabelError::NotFound if record.is_none() => EvidenceError::NotFound,
            // The record exists, so that only its evidence is missing.
            LabelError::NotFound => {
                EvidenceError::Label { question: draft.question.clone(), error: LabelError::NoEvidence }
            }
            error => EvidenceError::Label { question: draft.question.clone(), error },
        };
        let checked = self.labels.check(&drafts, sees).await?;
        let pairs = drafts.iter().zip(checked);
        let checked = pairs.map(|(draft, label)| label.map_err(|error| named((draft, error))));
        let checked = checked.collect::<Result<Vec<_>, _>>()?;
        let (mode, by) = (LabelMode::AllOrNone, &actor.name);
        let stored = match repetition {
            Some((request, respond)) => {
                let respond = |_: &Vec<LabelOutcome>| respond(&());
                self.labels.store(&checked, mode, by, Some((request, &respond))).await?
            }
            None => self.labels.store(&checked, mode, by, None).await?,
        };
        let failed = drafts.iter().zip(stored).find_map(|(draft, stored)| Some((draft, label_result(stored).err()?)));
        failed.map_or(Ok(()), |failed| Err(named(failed)))
    }
}
