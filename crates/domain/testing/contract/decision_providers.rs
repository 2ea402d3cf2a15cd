//! Cases of [`DecisionProvider`].

use std::any::Any;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{Either, join, select};

use super::super::{AlreadyDisconnected, ManualClient, join_all};
use crate::decision::{
    ClientConnection, DecisionDraft, DecisionProvider, NeverDisconnects, ProviderAnswer, ProviderCall, SentBytes,
};
use crate::json::Json;
use crate::question::{AnswerRules, Answers, ProviderInput};
use crate::routing::{AttemptFailure, AttemptFailureKind, Endpoint, Wire};
use crate::system::Timer;

suite! {
    /// The cases for every provider, also one that answers in this process.
    decision_provider_cases as decision_provider_contract over Providers {
        answer_fits_questions,
        sent_bytes_stay_within_bound,
        bound_holds_for_later_calls,
        unsupported_input_is_rejected_without_sending,
        concurrent_calls_are_all_answered,
    }
}

suite! {
    /// The cases for providers that call a remote side.
    remote_provider_cases as remote_provider_contract over RemoteProviders {
        failed_attempt_is_not_repeated,
        redirect_is_not_followed,
        malformed_answer_is_failure,
        failure_contains_no_text_of_provider,
        failure_reports_sent_bytes,
        stalled_attempt_times_out,
        attempt_ends_when_client_disconnects,
        attempt_ends_for_disconnected_client,
        dropped_attempt_leaves_count_of_sent_bytes,
        concurrent_calls_are_separate_requests,
    }
}

/// A provider, with an input that it supports and one that it does not support.
pub struct Providers {
    /// The provider.
    pub provider: Arc<dyn DecisionProvider>,
    /// The called endpoint.
    pub endpoint: Arc<Endpoint>,
    /// The supported input.
    pub supported: Arc<ProviderInput>,
    /// The unsupported input.
    pub unsupported: Arc<ProviderInput>,
    /// Values that must live as long as the provider, such as a server.
    pub keep: Box<dyn Any + Send + Sync>,
}

/// A provider, and the remote side that it calls.
pub struct RemoteProviders {
    /// The provider.
    pub providers: Providers,
    /// The remote side. It answers the supported input until a test sets another reaction.
    pub remote: Arc<dyn RemoteProvider>,
    /// A timer, which bounds the duration of a test.
    pub timer: Arc<dyn Timer>,
}

/// The remote side of a provider.
#[async_trait]
pub trait RemoteProvider: Send + Sync {
    /// Sets the reaction to the next requests.
    fn react(&self, reaction: RemoteReaction);

    /// Returns the number of received requests.
    fn requests(&self) -> usize;

    /// Returns once this many requests were received.
    async fn reached(&self, requests: usize);
}

/// The reaction of a remote provider to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteReaction {
    /// It answers the questions.
    Answer,
    /// It responds with this status, and with [`PROVIDER_TEXT`]. The target of a redirect is the same server.
    Status(u16),
    /// It responds with status 200, and with [`PROVIDER_TEXT`] instead of an answer.
    Malformed,
    /// It reads the request and never responds.
    Stall,
}

/// The text of a remote provider, which must not appear in a failure.
pub const PROVIDER_TEXT: &str = "provider-text";

/// A timeout for attempts that are not about time.
const AMPLE: Duration = Duration::from_mins(1);
/// The timeout of an attempt that stalls.
const SHORT: Duration = Duration::from_millis(50);
/// The time within which every attempt of a test must end.
const PATIENCE: Duration = Duration::from_secs(20);

impl RemoteProviders {
    /// Makes an attempt, and fails the test if it does not end.
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        match select(self.providers.provider.decide(call), self.timer.sleep(PATIENCE)).await {
            Either::Left((end, _)) => end,
            Either::Right(_) => panic!("the attempt did not end"),
        }
    }

    /// Makes an attempt that fails.
    async fn fail(&self, reaction: RemoteReaction) -> AttemptFailure {
        self.remote.react(reaction);
        self.decide(self.providers.call()).await.unwrap_err()
    }
}

impl Providers {
    /// Returns a provider that supports a yes-or-no question, and no media.
    ///
    /// # Panics
    /// Never: the names of the endpoint and the image are valid.
    pub fn over(provider: Arc<dyn DecisionProvider>) -> Self {
        let endpoint =
            Endpoint::new("acme/judge".parse().unwrap(), "acme".parse().unwrap(), Wire::SystemOne, "judge-1.0");
        let image = Json::parse(r#"["data:image/png;base64,AA=="]"#).unwrap();
        Self {
            provider,
            endpoint: Arc::new(endpoint),
            supported: yes_or_no_input(None),
            unsupported: yes_or_no_input(Some(image)),
            keep: Box::new(()),
        }
    }

    /// Returns a call with the supported input, by a client that stays.
    fn call(&self) -> ProviderCall {
        ProviderCall {
            endpoint: Arc::clone(&self.endpoint),
            provider_input: Arc::clone(&self.supported),
            timeout: AMPLE,
            client: Arc::new(NeverDisconnects),
            sent: SentBytes::default(),
        }
    }

    fn call_of(&self, client: impl ClientConnection + 'static) -> ProviderCall {
        ProviderCall { client: Arc::new(client), ..self.call() }
    }

    /// Returns the bound of the bytes that an attempt with the supported input sends.
    fn bound(&self) -> u64 {
        self.provider.outbound_bytes(&self.endpoint, &self.supported)
    }
}

fn yes_or_no_input(images: Option<Json>) -> Arc<ProviderInput> {
    let json = |text: &str| Json::parse(text).ok();
    let draft = DecisionDraft {
        model: json("\"acme/judge\""),
        questions: json(r#"{"a":{"type":"noul","instructions":"?"}}"#),
        state: json("\"the state\""),
        images,
        ..DecisionDraft::default()
    };
    draft.check().unwrap().provider_input
}

async fn answer_fits_questions(subject: &Providers) {
    let answer = subject.provider.decide(subject.call()).await.unwrap();
    let rules = AnswerRules { decimals: subject.endpoint.decimals, confidence: subject.endpoint.confidence };
    Answers::check(&subject.supported.questions, &answer.answers, rules).unwrap();
}

async fn sent_bytes_stay_within_bound(subject: &Providers) {
    let (call, bound) = (subject.call(), subject.bound());
    let sent = call.sent.clone();
    let answer = subject.provider.decide(call).await.unwrap();
    assert!(answer.sent_bytes > 0, "the input is sent");
    assert!(answer.sent_bytes <= bound, "{} of {bound} bytes", answer.sent_bytes);
    assert!(sent.get() <= bound, "{} of {bound} bytes", sent.get());
}

/// A provider may learn from calls, so a later bound may differ; the first one holds all the same.
async fn bound_holds_for_later_calls(subject: &Providers) {
    let bound = subject.bound();
    for _ in 0..3 {
        let answer = subject.provider.decide(subject.call()).await.unwrap();
        assert!(answer.sent_bytes <= bound, "a later call sends {} of {bound} bytes", answer.sent_bytes);
    }
}

async fn unsupported_input_is_rejected_without_sending(subject: &Providers) {
    let call = ProviderCall { provider_input: Arc::clone(&subject.unsupported), ..subject.call() };
    let sent = call.sent.clone();
    let failure = subject.provider.decide(call).await.unwrap_err();
    assert_eq!(failure.kind, AttemptFailureKind::RejectedByProvider);
    assert_eq!((failure.sent_bytes, sent.get()), (0, 0), "no byte is sent");
}

async fn concurrent_calls_are_all_answered(subject: &Providers) {
    let bound = subject.bound();
    let calls: Vec<ProviderCall> = (0..8).map(|_| subject.call()).collect();
    let sent: Vec<SentBytes> = calls.iter().map(|call| call.sent.clone()).collect();
    let ends = join_all(calls.into_iter().map(|call| subject.provider.decide(call))).await;
    assert!(ends.iter().all(Result::is_ok), "{ends:?}");
    assert!(sent.iter().all(|sent| sent.get() <= bound), "each call has a count: {sent:?}");
}

async fn failed_attempt_is_not_repeated(subject: &RemoteProviders) {
    for status in [500, 503] {
        let before = subject.remote.requests();
        subject.fail(RemoteReaction::Status(status)).await;
        assert_eq!(subject.remote.requests(), before + 1, "after status {status}");
    }
}

async fn redirect_is_not_followed(subject: &RemoteProviders) {
    let failure = subject.fail(RemoteReaction::Status(307)).await;
    assert_eq!((failure.kind, subject.remote.requests()), (AttemptFailureKind::HttpError, 1));
}

async fn malformed_answer_is_failure(subject: &RemoteProviders) {
    assert_eq!(subject.fail(RemoteReaction::Malformed).await.kind, AttemptFailureKind::InvalidResponse);
}

async fn failure_contains_no_text_of_provider(subject: &RemoteProviders) {
    for reaction in [RemoteReaction::Status(400), RemoteReaction::Status(500), RemoteReaction::Malformed] {
        let failure = subject.fail(reaction).await;
        let text = format!("{failure} {failure:?}");
        assert!(!text.contains(PROVIDER_TEXT), "{text}");
    }
}

async fn failure_reports_sent_bytes(subject: &RemoteProviders) {
    for reaction in [RemoteReaction::Status(500), RemoteReaction::Malformed] {
        subject.remote.react(reaction);
        let call = subject.providers.call();
        let sent = call.sent.clone();
        let failure = subject.decide(call).await.unwrap_err();
        assert!(failure.sent_bytes > 0, "the request was sent before {reaction:?}");
        assert_eq!(failure.sent_bytes, sent.get());
        assert!(failure.sent_bytes <= subject.providers.bound());
    }
}

async fn stalled_attempt_times_out(subject: &RemoteProviders) {
    subject.remote.react(RemoteReaction::Stall);
    let call = ProviderCall { timeout: SHORT, ..subject.providers.call() };
    let sent = call.sent.clone();
    let failure = subject.decide(call).await.unwrap_err();
    assert_eq!(failure.kind, AttemptFailureKind::TimedOut);
    assert_eq!(failure.sent_bytes, sent.get());
}

async fn attempt_ends_when_client_disconnects(subject: &RemoteProviders) {
    subject.remote.react(RemoteReaction::Stall);
    let client = ManualClient::default();
    let call = subject.providers.call_of(client.clone());
    let sent = call.sent.clone();
    let leaving = async {
        subject.remote.reached(1).await;
        client.disconnect();
    };
    let (end, ()) = join(subject.decide(call), leaving).await;
    let failure = end.unwrap_err();
    assert_eq!(failure.kind, AttemptFailureKind::ClientDisconnected);
    assert!(failure.sent_bytes > 0 && failure.sent_bytes == sent.get(), "{failure:?}");
}

async fn attempt_ends_for_disconnected_client(subject: &RemoteProviders) {
    subject.remote.react(RemoteReaction::Stall);
    let failure = subject.decide(subject.providers.call_of(AlreadyDisconnected)).await.unwrap_err();
    assert_eq!(failure.kind, AttemptFailureKind::ClientDisconnected);
}

async fn dropped_attempt_leaves_count_of_sent_bytes(subject: &RemoteProviders) {
    subject.remote.react(RemoteReaction::Stall);
    let call = subject.providers.call();
    let sent = call.sent.clone();
    match select(pin!(subject.decide(call)), pin!(subject.remote.reached(1))).await {
        Either::Left((end, _)) => panic!("the attempt ended: {end:?}"),
        Either::Right(((), _)) => {}
    }
    let bound = subject.providers.bound();
    assert!(sent.get() > 0 && sent.get() <= bound, "{} of {bound} bytes", sent.get());
}

async fn concurrent_calls_are_separate_requests(subject: &RemoteProviders) {
    let ends = join_all((0..4).map(|_| subject.decide(subject.providers.call()))).await;
    assert!(ends.iter().all(Result::is_ok), "{ends:?}");
    assert_eq!(subject.remote.requests(), 4);
}
