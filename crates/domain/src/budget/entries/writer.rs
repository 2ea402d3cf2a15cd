//! Writes the primitives of the encoding.

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::money::Usd;

/// A payload that is being written.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new(version: u8) -> Self {
        let mut bytes = Vec::with_capacity(512);
        bytes.push(version);
        Self(bytes)
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Writes seven bits per byte, the lowest first; the highest bit marks that another byte follows.
    pub(super) fn number(&mut self, mut number: u64) {
        loop {
            let [low, ..] = number.to_le_bytes();
            number >>= 7;
            if number == 0 {
                self.0.push(low & 0x7f);
                return;
            }
            self.0.push(low | 0x80);
        }
    }

    /// Writes a signed number in zigzag encoding, so that small negative numbers are short.
    pub(super) fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)).cast_unsigned());
    }

    pub(super) fn wide(&mut self, number: i128) {
        self.raw(&number.to_le_bytes());
    }

    pub(super) fn len(&mut self, len: usize) {
        self.number(len as u64);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.len(text.len());
        self.raw(text.as_bytes());
    }

    pub(super) fn uuid(&mut self, uuid: Uuid) {
        self.raw(uuid.as_bytes());
    }

    /// Writes a time in microseconds since 1970.
    pub(super) fn time(&mut self, time: DateTime<Utc>) {
        self.signed(time.timestamp_micros());
    }

    /// Writes a duration in microseconds.
    pub(super) fn duration(&mut self, duration: Duration) {
        self.number(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    }

    pub(super) fn usd(&mut self, amount: Usd) {
        self.signed(amount.pico());
    }

    pub(super) fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.len(items.len());
        for item in items {
            write(self, item);
        }
    }

    pub(super) fn option<T: ?Sized>(&mut self, value: Option<&T>, write: impl FnOnce(&mut Self, &T)) {
        self.byte(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }
}
