//! The payloads of journal entries: a compact binary encoding with a version.
//!
//! Numbers are variable-length integers; strings and byte arrays follow their length, and an option follows one byte.
//! Every payload begins with the version.

mod bytes;
mod fields;
mod records;

use std::net::IpAddr;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use self::bytes::{Reader, Writer};
use super::allowances::CounterId;
use super::{EntryKind, FoldEntry, Payer, UsageCharge};
use crate::ids::{DecisionId, RequestId};
use crate::money::Usd;
use crate::usage::{AttemptRecord, UsageRecord};

/// The version of the encoding.
const VERSION: u8 = 8;

/// An undecodable payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEntry {
    /// The version of the encoding is unknown.
    #[error("the entry has the version {0} of the encoding, not {VERSION}")]
    Version(u8),
    /// No entry has this kind.
    #[error("no journal entry has the kind {0}")]
    Kind(u8),
    /// The bytes are no payload of this kind.
    #[error("the entry is malformed")]
    Malformed,
}

/// A request that is about to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentEntry {
    /// The id of the request.
    pub id: DecisionId,
    /// The payer.
    pub payer: Payer,
    /// The time whose day, week and month the hold counts in.
    pub at: DateTime<Utc>,
    /// The HTTP request.
    pub request_id: RequestId,
    /// The model as the caller named it.
    pub requested_model: String,
    /// The client's address; `None` if it is unknown or not recorded.
    pub client_address: Option<IpAddr>,
    /// The held amount.
    pub amount: Usd,
    /// The counters that it is held in.
    pub counters: Vec<CounterId>,
    /// The attempts with their upper bounds.
    pub attempts: Arc<[AttemptRecord]>,
}

/// More attempts of a request that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncreasedEntry {
    /// The id of the request.
    pub id: DecisionId,
    /// The additional amount.
    pub amount: Usd,
    /// The additional attempts.
    pub attempts: Vec<AttemptRecord>,
}

/// A decoded journal entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A request is about to be sent.
    Sent(Box<SentEntry>),
    /// More attempts of it.
    Increased(IncreasedEntry),
    /// Its charge.
    Charged(Box<FoldEntry>),
    /// Its end without a charge.
    Released(DecisionId),
    /// The end of the journal.
    Closed,
}

impl Entry {
    /// Decodes a payload.
    pub fn decode(kind: u8, payload: &[u8]) -> Result<Self, InvalidEntry> {
        let known = EntryKind::from_number(kind).ok_or(InvalidEntry::Kind(kind))?;
        let (version, payload) = payload.split_first().ok_or(InvalidEntry::Malformed)?;
        if *version != VERSION {
            return Err(InvalidEntry::Version(*version));
        }
        let mut reader = Reader::new(payload);
        let entry = match known {
            EntryKind::Sent => reader.sent().map(|entry| Self::Sent(Box::new(entry))),
            EntryKind::Increased => reader.increased().map(Self::Increased),
            EntryKind::Charged => reader.charged().map(|entry| Self::Charged(Box::new(entry))),
            EntryKind::Released => reader.id().map(Self::Released),
            EntryKind::Closed => Some(Self::Closed),
        };
        entry.filter(|_| reader.is_empty()).ok_or(InvalidEntry::Malformed)
    }
}

impl SentEntry {
    /// Encodes the entry.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new(VERSION);
        writer.id(&self.id);
        writer.payer(&self.payer);
        writer.time(self.at);
        writer.text(self.request_id.as_str());
        writer.text(&self.requested_model);
        writer.usd(self.amount);
        writer.list(&self.counters, |writer, counter| writer.counter(*counter));
        writer.attempts(&self.attempts);
        writer.address(self.client_address);
        writer.finish()
    }
}

impl IncreasedEntry {
    /// Encodes the entry.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new(VERSION);
        writer.id(&self.id);
        writer.usd(self.amount);
        writer.attempts(&self.attempts);
        writer.finish()
    }
}

/// Encodes a charge and the allowances that bear it.
pub fn encode_charged(charge: &UsageCharge, allowances: &[(CounterId, Usd)]) -> Vec<u8> {
    let mut writer = Writer::new(VERSION);
    writer.list(allowances, |writer, (counter, amount)| {
        writer.counter(*counter);
        writer.usd(*amount);
    });
    writer.record(&charge.record);
    writer.list(&charge.messages, Writer::message);
    writer.list(&charge.evidence, Writer::evidence);
    writer.finish()
}

/// Encodes the end of a request without a charge.
pub fn encode_released(id: &DecisionId) -> Vec<u8> {
    let mut writer = Writer::new(VERSION);
    writer.id(id);
    writer.finish()
}

/// Encodes the end of a journal.
pub fn encode_closed() -> Vec<u8> {
    Writer::new(VERSION).finish()
}

/// Returns the bytes to reserve for the charge of a request with these numbers of attempts, counters and guardrails,
/// without trace, findings, messages, evidence and outcomes. Without attempts, the bytes of a charge that is reduced to its sum.
pub fn charge_bytes(attempts: usize, counters: usize, guardrails: usize) -> usize {
    const FRAME: usize = 2048;
    const ATTEMPT: usize = 512;
    const COUNTER: usize = 80;
    const GUARDRAIL: usize = 16;
    let parts = [(attempts, ATTEMPT), (counters, COUNTER), (guardrails, GUARDRAIL)];
    parts.into_iter().fold(FRAME, |sum, (count, bytes)| sum.saturating_add(count.saturating_mul(bytes)))
}

impl Reader<'_> {
    fn sent(&mut self) -> Option<SentEntry> {
        Some(SentEntry {
            id: self.id()?,
            payer: self.payer()?,
            at: self.time()?,
            request_id: self.text()?.parse().ok()?,
            requested_model: self.text()?.to_owned(),
            amount: self.usd()?,
            counters: self.list(Self::counter)?,
            attempts: self.attempts()?.into(),
            client_address: self.address()?,
        })
    }

    fn increased(&mut self) -> Option<IncreasedEntry> {
        Some(IncreasedEntry { id: self.id()?, amount: self.usd()?, attempts: self.attempts()? })
    }

    fn charged(&mut self) -> Option<FoldEntry> {
        let allowances = self.list(|reader| Some((reader.counter()?, reader.usd()?)))?;
        let record: UsageRecord = self.record()?;
        let (messages, evidence) = (self.list(Self::message)?, self.list(Self::evidence)?);
        Some(FoldEntry { charge: UsageCharge { record, messages, evidence }, allowances })
    }
}

#[cfg(test)]
mod tests;
