use super::*;
use domain::routing::AttemptFailureKind;
use rstest::rstest;
use std::time::Duration;

/// Bodies about our account, with the vendor that sends them, and the statuses under which they come.
#[rstest]
#[case::openai(r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#, AccountExhausted)]
#[case::openai(r#"{"error":{"code":"billing_hard_limit_reached","message":"Billing hard limit has been reached","type":"invalid_request_error"}}"#, AccountExhausted)]
#[case::openai(r#"{"error":{"message":"Incorrect API key provided: sk-***.","type":"invalid_request_error","code":"invalid_api_key"}}"#, KeyRejected)]
#[case::anthropic(r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API. Please go to Plans & Billing to upgrade or purchase credits."}}"#, AccountExhausted)]
#[case::anthropic(
    r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
    KeyRejected
)]
#[case::google(r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#, KeyRejected)]
#[case::google(
    r#"[{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT"}}]"#,
    KeyRejected
)]
#[case::google(r#"{"error":{"code":403,"message":"This API method requires billing to be enabled.","status":"PERMISSION_DENIED","details":[{"reason":"BILLING_DISABLED"}]}}"#, AccountExhausted)]
#[case::google(r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED"}}"#, AccountExhausted)]
#[case::xai(r#"{"code":"Some resource has been exhausted","error":"Your team has either used all available credits or reached its monthly spending limit."}"#, AccountExhausted)]
#[case::xai(
    r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xx."}"#,
    KeyRejected
)]
#[case::deepseek(r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#, AccountExhausted)]
#[case::moonshot(r#"{"error":{"type":"exceeded_current_quota_error","message":"Your account is suspended, please check your plan"}}"#, AccountExhausted)]
#[case::dashscope(r#"{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing.","request_id":"1"}"#, AccountExhausted)]
#[case::dashscope(r#"{"code":"InvalidApiKey","message":"Invalid API-key provided.","request_id":"1"}"#, KeyRejected)]
#[case::zhipu(r#"{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}"#, AccountExhausted)]
#[case::openrouter(
    r#"{"error":{"message":"Insufficient credits. Add more using https://example.com/credits","code":402}}"#,
    AccountExhausted
)]
#[case::fireworks(r#"{"error":{"message":"Account acme is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices."}}"#, AccountExhausted)]
#[case::hugging_face(
    r#"{"error":"You have exceeded your monthly included credits for Inference Providers."}"#,
    AccountExhausted
)]
#[case::workers_ai(r#"{"success":false,"errors":[{"code":4006,"message":"you have used up your daily free allocation of 10,000 neurons"}]}"#, AccountExhausted)]
#[case::plain_text("Insufficient balance", AccountExhausted)]
#[case::detail(r#"{"detail":"Invalid API key"}"#, KeyRejected)]
fn refine_finds_trouble_with_account(#[case] body: &str, #[case] expected: FailureCause) {
    for status in [400, 401, 402, 403, 429] {
        let failure = refine(AttemptFailure::from_status(status, None), body.as_bytes());
        assert_eq!(failure.kind, AttemptFailureKind::ProviderAuthFailed, "{status} {body}");
        assert_eq!((failure.cause, failure.upstream_status), (Some(expected), Some(status)), "{status} {body}");
        assert_eq!(failure.detail, expected.sentence());
    }
}

/// Rate limits, invalid requests, and requests that a provider repeats in its message.
#[rstest]
#[case::rate(429, r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000. You can increase your rate limit by adding a payment method to your account.","type":"tokens","code":"rate_limit_exceeded"}}"#)]
#[case::rate(429, r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit. Please try again later."}}"#)]
#[case::rate(429, r#"{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}"#)]
#[case::rate_called_quota(429, r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"26s"}]}}"#)]
#[case::moderation(403, r#"{"error":{"message":"Content policy","code":"content_policy_violation"}}"#)]
#[case::invalid(400, r#"{"error":{"message":"Invalid value: 'my credit balance is too low'. Supported values are: 'a'","type":"invalid_request_error","code":"invalid_value"}}"#)]
#[case::invalid(400, r#"{"error":{"message":"state must not contain \"invalid api key\""}}"#)]
#[case::invalid(400, r#"{"error":{"message":"unknown option insufficient-quota-x"}}"#)]
#[case::invalid(
    400,
    r#"{"error":{"message":"ok","param":"insufficient_quota"},"questions":{"code":{"code":"insufficient_quota"}}}"#
)]
#[case::invalid(
    422,
    r#"{"detail":[{"loc":["body","state"],"msg":"insufficient balance","type":"insufficient_balance"}]}"#
)]
#[case::other_status(404, r#"{"error":{"code":"insufficient_quota"}}"#)]
#[case::other_status(500, r#"{"error":{"code":"insufficient_quota"}}"#)]
#[case::other_status(503, "insufficient balance")]
#[case::an_answer(200, r#"{"answers":{},"code":"insufficient_quota","message":"insufficient balance"}"#)]
#[case::text(200, "insufficient balance")]
#[case::page(403, "<h1>insufficient balance</h1>")]
#[case::damaged(403, r#"{"error":{"code":"#)]
fn refine_leaves_other_failures(#[case] status: u16, #[case] body: &str) {
    let failure = AttemptFailure::from_status(status, None);
    assert_eq!(refine(failure.clone(), body.as_bytes()), failure);
}

#[test]
fn refine_reads_quota_with_announced_wait_as_rate_limit() {
    let body = r#"{"error":{"message":"You exceeded your current quota"}}"#;
    let wait = Some(Duration::from_secs(7));
    let failure = refine(AttemptFailure::from_status(429, wait), body.as_bytes());
    assert_eq!((failure.kind, failure.retry_after), (AttemptFailureKind::Overloaded, wait));
    let unpaid = r#"{"error":{"code":"insufficient_quota"}}"#;
    let failure = refine(AttemptFailure::from_status(429, wait), unpaid.as_bytes());
    assert_eq!(failure.kind, AttemptFailureKind::ProviderAuthFailed, "a code is certain");
}
