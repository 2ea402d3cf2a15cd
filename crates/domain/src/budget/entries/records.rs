//! Usage records, attempts and evidence.

use super::bytes::{Reader, Writer};
use crate::ids::{ApiKeyId, GuardrailId, PresetId, WorkspaceId};
use crate::json::Json;
use crate::usage::{
    AnswerEvidence, AnswerMethod, AttemptOutcome, AttemptRecord, FilterAction, Finding, PresetReference, UsageOutcome,
    UsageRecord, UsageShare, UsageSource,
};

impl Writer {
    pub(super) fn attempts(&mut self, attempts: &[AttemptRecord]) {
        self.list(attempts, Self::attempt);
    }

    fn attempt(&mut self, attempt: &AttemptRecord) {
        self.text(&attempt.provider);
        self.text(attempt.model.as_str());
        self.text(&attempt.upstream_model);
        self.number(u64::from(attempt.part));
        self.text(attempt.outcome.as_str());
        self.option(attempt.upstream_status.as_ref(), |writer, status| writer.number(u64::from(*status)));
        self.duration(attempt.began);
        self.duration(attempt.latency);
        self.number(attempt.input_tokens);
        self.number(attempt.output_tokens);
        self.source(attempt.usage_source);
        self.prices(attempt.prices);
    }

    fn source(&mut self, source: UsageSource) {
        self.byte(match source {
            UsageSource::Reported => 0,
            UsageSource::UpperBound => 1,
            UsageSource::None => 2,
        });
    }

    fn finding(&mut self, finding: &Finding) {
        self.uuid(finding.guardrail_id.uuid());
        self.text(&finding.label);
        self.text(finding.action.as_str());
        self.text(&finding.path);
        self.number(u64::from(finding.count));
    }

    pub(super) fn evidence(&mut self, evidence: &AnswerEvidence) {
        self.number(u64::from(evidence.position));
        let AnswerEvidence { question, model, provider, wire, method, decision, probabilities, .. } = evidence;
        for text in [question, model.as_str(), provider, wire, method.as_str(), decision.text()] {
            self.text(text);
        }
        self.option(probabilities.as_ref().map(Json::text), Self::text);
    }

    pub(super) fn record(&mut self, record: &UsageRecord) {
        self.id(&record.id);
        self.uuid(record.workspace_id.uuid());
        self.uuid(record.api_key.uuid());
        self.text(record.request_id.as_str());
        self.text(&record.requested_model);
        self.text(record.model.as_str());
        self.text(&record.provider);
        self.byte(match record.outcome {
            UsageOutcome::Completed => 0,
            UsageOutcome::Failed => 1,
            UsageOutcome::Cancelled => 2,
            UsageOutcome::Abandoned => 3,
        });
        self.number(record.input_tokens);
        self.number(record.output_tokens);
        self.source(record.usage_source);
        self.usd(record.cost);
        self.prices(record.prices);
        self.number(u64::from(record.share.index));
        self.number(u64::from(record.share.of));
        self.attempts(&record.attempts);
        self.list(&record.guardrails, |writer, id| writer.uuid(id.uuid()));
        self.list(&record.findings, Self::finding);
        self.time(record.charged_at);
        self.option(record.session_id.as_deref(), Self::text);
        self.option(record.trace.as_ref().map(Json::text), Self::text);
        self.option(record.user.as_deref(), Self::text);
        self.time(record.created_at);
        self.duration(record.latency);
        self.address(record.client_address);
        self.option(record.preset.as_ref(), |writer, preset| {
            writer.uuid(preset.id.uuid());
            writer.number(u64::from(preset.version));
        });
        self.option(record.outcomes.as_ref().map(Json::text), Self::text);
    }
}

impl Reader<'_> {
    pub(super) fn attempts(&mut self) -> Option<Vec<AttemptRecord>> {
        self.list(Self::attempt)
    }

    fn attempt(&mut self) -> Option<AttemptRecord> {
        Some(AttemptRecord {
            provider: self.text()?.into(),
            model: self.text()?.parse().ok()?,
            upstream_model: self.text()?.into(),
            part: self.small()?,
            outcome: AttemptOutcome::from_name(self.text()?),
            upstream_status: self.option(|reader| reader.number()?.try_into().ok())?,
            began: self.duration()?,
            latency: self.duration()?,
            input_tokens: self.number()?,
            output_tokens: self.number()?,
            usage_source: self.source()?,
            prices: self.prices()?,
        })
    }

    fn source(&mut self) -> Option<UsageSource> {
        match self.byte()? {
            0 => Some(UsageSource::Reported),
            1 => Some(UsageSource::UpperBound),
            2 => Some(UsageSource::None),
            _ => None,
        }
    }

    fn outcome(&mut self) -> Option<UsageOutcome> {
        match self.byte()? {
            0 => Some(UsageOutcome::Completed),
            1 => Some(UsageOutcome::Failed),
            2 => Some(UsageOutcome::Cancelled),
            3 => Some(UsageOutcome::Abandoned),
            _ => None,
        }
    }

    fn finding(&mut self) -> Option<Finding> {
        Some(Finding {
            guardrail_id: GuardrailId::from_uuid(self.uuid()?),
            label: self.text()?.to_owned(),
            action: FilterAction::from_name(self.text()?)?,
            path: self.text()?.to_owned(),
            count: self.small()?,
        })
    }

    #[expect(clippy::option_option, reason = "malformed, absent, present")]
    fn optional_text(&mut self) -> Option<Option<String>> {
        self.option(|reader| reader.text().map(str::to_owned))
    }

    fn preset(&mut self) -> Option<PresetReference> {
        Some(PresetReference { id: PresetId::from_uuid(self.uuid()?), version: self.small()? })
    }

    pub(super) fn evidence(&mut self) -> Option<AnswerEvidence> {
        Some(AnswerEvidence {
            position: self.small()?,
            question: self.text()?.to_owned(),
            model: self.text()?.parse().ok()?,
            provider: self.text()?.into(),
            wire: self.text()?.to_owned().into(),
            method: AnswerMethod::from_name(self.text()?)?,
            decision: Json::parse(self.text()?).ok()?,
            probabilities: self.option(|reader| Json::parse(reader.text()?).ok())?,
        })
    }

    pub(super) fn record(&mut self) -> Option<UsageRecord> {
        Some(UsageRecord {
            id: self.id()?,
            workspace_id: WorkspaceId::from_uuid(self.uuid()?),
            api_key: ApiKeyId::from_uuid(self.uuid()?),
            request_id: self.text()?.parse().ok()?,
            requested_model: self.text()?.to_owned(),
            model: self.text()?.parse().ok()?,
            provider: self.text()?.to_owned(),
            outcome: self.outcome()?,
            input_tokens: self.number()?,
            output_tokens: self.number()?,
            usage_source: self.source()?,
            cost: self.usd()?,
            prices: self.prices()?,
            share: UsageShare { index: self.small()?, of: self.small()? },
            attempts: self.attempts()?.into(),
            guardrails: self.list(|reader| reader.uuid().map(GuardrailId::from_uuid))?,
            findings: self.list(Self::finding)?,
            charged_at: self.time()?,
            session_id: self.optional_text()?,
            trace: self.option(|reader| Json::parse(reader.text()?).ok())?,
            user: self.optional_text()?,
            created_at: self.time()?,
            latency: self.duration()?,
            client_address: self.address()?,
            preset: self.option(Self::preset)?,
            outcomes: self.option(|reader| Json::parse(reader.text()?).ok())?,
        })
    }
}
