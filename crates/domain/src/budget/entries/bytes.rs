//! Reads and writes the values of entries as bytes.

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::money::Usd;

/// The rest of a payload that is being read.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(payload: &'a [u8]) -> Self {
        Self(payload)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn raw<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte holds one bit.
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }

    pub(super) fn wide(&mut self) -> Option<i128> {
        self.raw().map(i128::from_le_bytes)
    }

    pub(super) fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn len(&mut self) -> Option<usize> {
        // Every item takes at least a byte, so a length above the rest is invalid.
        usize::try_from(self.number()?).ok().filter(|len| *len <= self.0.len())
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        let len = self.len()?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    pub(super) fn uuid(&mut self) -> Option<Uuid> {
        self.raw().map(Uuid::from_bytes)
    }

    pub(super) fn time(&mut self) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp_micros(self.signed()?)
    }

    pub(super) fn duration(&mut self) -> Option<Duration> {
        self.number().map(Duration::from_micros)
    }

    pub(super) fn usd(&mut self) -> Option<Usd> {
        self.signed().map(Usd::from_pico)
    }

    pub(super) fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let len = self.len()?;
        let mut items = Vec::with_capacity(len.min(64));
        for _ in 0..len {
            items.push(read(self)?);
        }
        Some(items)
    }

    #[expect(clippy::option_option, reason = "malformed, absent, present")]
    pub(super) fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.byte()? {
            0 => Some(None),
            1 => Some(Some(read(self)?)),
            _ => None,
        }
    }
}

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
