//! The journal: payloads of entries and, in the build for fuzzing, the bytes of segments.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use domain::budget::allowances::{CounterId, CounterPeriod};
use domain::budget::entries::{Entry, IncreasedEntry, SentEntry, encode_charged, encode_closed, encode_released};
use domain::budget::{Account, EntryKind, FoldEntry, Payer, ResetInterval, UsageCharge};
use domain::json::Json;
use domain::money::Usd;
use domain::pricing::TokenPrices;
use domain::usage::{
    AnswerEvidence, AnswerMethod, AttemptOutcome, AttemptRecord, FilterAction, Finding, OutboxMessage, PresetReference,
    UsageOutcome, UsageRecord, UsageShare, UsageSource,
};

/// Reads the number of an entry kind and a payload. A decoded payload must round-trip, and no shorter payload may
/// decode to the same entry.
///
/// # Errors
/// The violated property.
pub fn check_entry(input: &[u8]) -> Result<()> {
    let Some((kind, payload)) = input.split_first() else { return Ok(()) };
    let entry = match Entry::decode(*kind, payload) {
        Ok(entry) => entry,
        Err(error) => {
            ensure!(!error.to_string().is_empty(), "an error without a word");
            return Ok(());
        }
    };
    let (number, written) = encode(&entry);
    ensure!(number as u8 == *kind, "the kind {kind} became {}", number as u8);
    let again = Entry::decode(*kind, &written).context("the entry that was written is not read")?;
    ensure!(again == entry, "another entry comes back");
    ensure!(encode(&again).1 == written, "it is written otherwise the second time");
    ensure!(written.len() <= payload.len(), "the encoding grew from {} to {} bytes", payload.len(), written.len());
    for end in 0..written.len() {
        ensure!(Entry::decode(*kind, &written[..end]).is_err(), "its first {end} bytes are an entry, too");
    }
    Ok(())
}

fn encode(entry: &Entry) -> (EntryKind, Vec<u8>) {
    match entry {
        Entry::Sent(sent) => (EntryKind::Sent, sent.encode()),
        Entry::Increased(increased) => (EntryKind::Increased, increased.encode()),
        Entry::Charged(charged) => (EntryKind::Charged, encode_charged(&charged.charge, &charged.allowances)),
        Entry::Released(id) => (EntryKind::Released, encode_released(id)),
        Entry::Closed => (EntryKind::Closed, encode_closed()),
    }
}

/// Returns one input of each kind, and a charge with evidence.
///
/// # Errors
/// An invalid sample.
pub(crate) fn entries() -> Result<Vec<Vec<u8>>> {
    let samples = Samples::new()?;
    let mut entries = vec![Entry::Sent(Box::new(samples.sent()?)), Entry::Charged(Box::new(samples.charged()?))];
    entries.push(Entry::Charged(Box::new(samples.charged_with_evidence()?)));
    let SentEntry { id, amount, attempts, .. } = samples.sent()?;
    entries.push(Entry::Released(id.clone()));
    entries.push(Entry::Increased(IncreasedEntry { id, amount, attempts: attempts.to_vec() }));
    entries.push(Entry::Closed);
    let input = |entry: &Entry| {
        let (kind, payload) = encode(entry);
        [&[kind as u8], &payload[..]].concat()
    };
    Ok(entries.iter().map(input).collect())
}

/// The field values of the samples.
struct Samples {
    payer: Payer,
    counters: Vec<CounterId>,
    attempt: AttemptRecord,
}

impl Samples {
    fn new() -> Result<Self> {
        let id = "01990000-0000-7000-8000-000000000001";
        let payer = Payer { workspace_id: id.parse()?, api_key: id.parse()?, guardrails: vec![id.parse()?] };
        let at = "2026-07-15T12:00:00.000001Z".parse()?;
        let intervals = [None, Some(ResetInterval::Daily), Some(ResetInterval::Weekly), Some(ResetInterval::Monthly)];
        let counter =
            |account| intervals.map(|interval| CounterId { account, period: CounterPeriod::containing(interval, at) });
        let accounts: Vec<Account> = payer.accounts().collect();
        let attempt = AttemptRecord {
            provider: "acme".into(),
            model: "acme/judge:free".parse()?,
            upstream_model: "judge".into(),
            part: 1,
            outcome: AttemptOutcome::Completed,
            upstream_status: Some(200),
            began: Duration::from_micros(5),
            latency: Duration::from_millis(3),
            input_tokens: 300,
            output_tokens: 0,
            usage_source: UsageSource::UpperBound,
            prices: TokenPrices {
                prompt: "0.00000045".parse()?,
                completion: "12345678901234.123456789012345678901234".parse()?,
            },
        };
        Ok(Self { payer, counters: accounts.into_iter().flat_map(counter).collect(), attempt })
    }

    fn sent(&self) -> Result<SentEntry> {
        Ok(SentEntry {
            id: "gen-dec-01990000-0000-7000-8000-000000000002".parse()?,
            payer: self.payer.clone(),
            at: "2026-07-15T12:00:00Z".parse()?,
            request_id: "client.request-id_7".parse()?,
            requested_model: "~acme/judge-latest".to_owned(),
            amount: Usd::from_pico(77),
            counters: self.counters.clone(),
            client_address: Some([192, 0, 2, 7].into()),
            attempts: Arc::new([self.attempt.clone(), self.attempt.clone()]),
        })
    }

    /// Returns a charge with evidence: of each method, with and without a distribution.
    fn charged_with_evidence(&self) -> Result<FoldEntry> {
        let mut entry = self.charged()?;
        entry.charge.record.preset =
            Some(PresetReference { id: "01990000-0000-7000-8000-000000000005".parse()?, version: 3 });
        let answer = |(position, method): (u32, AnswerMethod)| {
            anyhow::Ok(AnswerEvidence {
                position,
                question: "réfund".to_owned(),
                model: self.attempt.model.clone(),
                provider: "acme".into(),
                wire: "system-one".into(),
                method,
                decision: Json::parse("\"b\"")?,
                probabilities: (position > 0).then(|| Json::parse(r#"{"b":0.90,"a":0.1}"#)).transpose()?,
            })
        };
        entry.charge.evidence = (0..).zip(AnswerMethod::ALL).map(answer).collect::<Result<_>>()?;
        Ok(entry)
    }

    fn charged(&self) -> Result<FoldEntry> {
        let SentEntry { id, payer, at, request_id, requested_model, client_address, amount, counters, attempts } =
            self.sent()?;
        let finding = Finding {
            guardrail_id: payer.guardrails[0],
            label: "email".to_owned(),
            action: FilterAction::Block,
            path: "/state/0".to_owned(),
            count: 9,
        };
        let record = UsageRecord {
            id,
            workspace_id: payer.workspace_id,
            api_key: payer.api_key,
            request_id,
            requested_model,
            model: self.attempt.model.clone(),
            provider: "acme".to_owned(),
            outcome: UsageOutcome::Completed,
            input_tokens: 12,
            output_tokens: 1 << 40,
            usage_source: UsageSource::Reported,
            cost: amount,
            prices: self.attempt.prices,
            share: UsageShare { index: 2, of: 300 },
            attempts,
            guardrails: payer.guardrails,
            findings: vec![finding],
            charged_at: at,
            session_id: Some(String::new()),
            trace: Some(Json::parse(r#"{"a": [1.50, "\u0000"]}"#)?),
            user: None,
            client_address,
            preset: None,
            outcomes: None,
            created_at: at,
            latency: Duration::from_millis(4),
        };
        let message = OutboxMessage {
            id: "01990000-0000-7000-8000-000000000003".parse()?,
            destination_id: "01990000-0000-7000-8000-000000000004".parse()?,
            payload: Json::parse(r#"{"resourceSpans":[]}"#)?,
        };
        let allowances = counters.into_iter().map(|counter| (counter, amount)).collect();
        Ok(FoldEntry { charge: UsageCharge { messages: vec![message], ..UsageCharge::new(record) }, allowances })
    }
}
