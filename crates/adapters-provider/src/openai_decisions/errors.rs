//! Meanings of errors that say more than their status.

use std::time::Duration;

use domain::routing::AttemptFailureKind;

use crate::http::ErrorMeaning;
use crate::wire::{Object, as_text, string};

/// A used-up quota is refilled by a payment, so an early retry is useless.
const UNTIL_PAID: Duration = Duration::from_hours(1);

/// Reads `{"error": {"code", ..}}`. A 429 may mean a used-up quota, which is not a short overload.
pub fn read(status: u16, body: &[u8]) -> Option<ErrorMeaning> {
    if status != 429 {
        return None;
    }
    let members = Object::parse(as_text(body).ok()?)?;
    let error = Object::of(members.get("error").ok()??)?;
    let says = |name: &str| error.get(name).ok().flatten().and_then(string).as_deref() == Some("insufficient_quota");
    (says("code") || says("type")).then_some(ErrorMeaning {
        kind: AttemptFailureKind::Overloaded,
        retry_after: Some(UNTIL_PAID),
        detail: "the quota at the provider is used up",
    })
}
