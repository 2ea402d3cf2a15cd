//! `POST …/keys/{hash}/rotate`: replaces the secret of a key.

use std::sync::OnceLock;

use domain::api_key::{CreatedKey, KeyRecord, MAX_GRACE};
use wires::client::{ErrorLocation, check_names, read_members};

use super::record::SecretView;
use super::{default_for, name, respond_secret};
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::management(Post, "/keys/{hash}/rotate", tags::KEYS, handler!(handle, payload))
    .operation("rotateKey", "Replace the secret of a key")
    .description(
        "Returns the new secret, which is shown once. The old secret is rejected at once by this process and \
         within a second by all others, or stays valid for `grace_seconds` as the same key; another rotation, \
         disabling and deletion end that time. Id, name, limits, usage and guardrail stay; `hash` changes. Every \
         call creates a new secret. Of concurrent calls for the same secret at most one succeeds.",
    )
    .body(BodySchema::of::<RotateRequest>)
    .headers(&[IF_MATCH, IDEMPOTENCY_KEY])
    .answer(BodySchema::of::<SecretView<'_>>, "The key and its new secret");

/// The body of a rotation.
#[derive(ToSchema)]
#[schema(as = RotateKeyRequest)]
#[expect(dead_code, reason = "the schema of a body that is read by hand")]
struct RotateRequest {
    /// The time that the old secret stays valid beside the new one. Default 0.
    #[schema(maximum = 604_800)]
    grace_seconds: Option<u32>,
}

/// Reads the grace period; no body is none.
fn read_grace(text: &str) -> Result<Duration, ApiError> {
    if text.trim().is_empty() {
        return Ok(Duration::ZERO);
    }
    let [seconds] = read_members(text, &["grace_seconds"])?;
    check_names(text, &["grace_seconds"], &[]).map_err(ApiError::invalid)?;
    let Some(seconds) = seconds else { return Ok(Duration::ZERO) };
    let seconds = seconds.get().parse().ok().filter(|seconds| *seconds <= MAX_GRACE.as_secs());
    let message = format!("grace_seconds: must be a whole number from 0 to {}", MAX_GRACE.as_secs());
    let seconds =
        seconds.ok_or_else(|| ApiError::invalid(message).location(ErrorLocation::Member("grace_seconds".to_owned())));
    Ok(Duration::from_secs(seconds?))
}

async fn handle(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let body = call.read_optional_json(payload).await?;
    let text = body.as_ref().map_or(Ok(""), JsonBody::text)?;
    let grace = read_grace(text)?;
    let (name, services) = (name(call)?, &call.gateway.services);
    // Read before the rotation: its response is rendered before it is stored.
    let found = OnceLock::new();
    let rotate = async |change: &Change<'_, _>| -> Result<CreatedKey, ApiError> {
        by.check(Right::Keys)?;
        let record = services.read_keys.get(by, &name).await?;
        let default = default_for(call, by, &record.key).await?;
        drop(found.set((record, default)));
        Ok(services.rotate_key.execute(change, &name, grace).await?)
    };
    let render = |(key, secret): &CreatedKey| {
        let (record, default) = found.get().cloned().unwrap_or_else(|| (KeyRecord::unused(key.clone()), None));
        let record = KeyRecord { key: key.clone(), ..record };
        respond_secret(StatusCode::OK, &record, default.as_deref(), secret)
    };
    call.post(by, text, rotate, render).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grace_is_a_number_of_seconds_up_to_a_week() {
        let grace = |text: &str| read_grace(text).map(|grace| grace.as_secs()).map_err(|error| error.text().to_owned());
        for (text, seconds) in [
            ("", 0),
            (" ", 0),
            ("{}", 0),
            (r#"{"grace_seconds":null}"#, 0),
            (r#"{"grace_seconds":0}"#, 0),
            (r#"{"grace_seconds":604800}"#, 604_800),
        ] {
            assert_eq!(grace(text), Ok(seconds), "{text}");
        }
        for value in ["604801", "-1", "1.5", "\"60\"", "true", "99999999999999999999"] {
            let expected = "grace_seconds: must be a whole number from 0 to 604800";
            assert_eq!(grace(&format!(r#"{{"grace_seconds":{value}}}"#)).unwrap_err(), expected, "{value}");
        }
        let unknown = grace(r#"{"grace_second":1}"#).unwrap_err();
        assert_eq!(unknown, r#"unknown member "grace_second"; the nearest known member is "grace_seconds""#);
        assert!(grace("[]").is_err() && grace("{").is_err());
    }
}
