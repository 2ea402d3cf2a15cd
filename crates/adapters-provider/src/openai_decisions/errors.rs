//! What errors mean where they say more than their status.

use std::time::Duration;

use domain::routing::AttemptFailureKind;

use crate::http::ErrorMeaning;
use crate::wire::{Object, as_text, string};

/// A used-up quota is filled by a payment, not by waiting a moment.
const UNTIL_PAID: Duration = Duration::from_hours(1);

/// `{"error": {"code", ..}}`: a 429 may mean that the account's quota is used up, and then it is no passing overload.
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
