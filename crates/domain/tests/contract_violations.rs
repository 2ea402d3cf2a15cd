//! The suites detect violations: each broken fake fails the case of the rule that it violates.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domain::decision::{DecisionProvider, NeverDisconnects, ProviderAnswer, ProviderCall, SentBytes};
use domain::question::{Attachments, ProviderInput};
use domain::rate::{RateLimitError, RateLimited, RateLimiter, RateLimits, RateSubject};
use domain::routing::{AttemptFailure, Endpoint};
use domain::system::{TaskError, Timer, Work, WorkOwner, Workers};
use domain::testing::contract::{
    PROVIDER_TEXT, Providers, RateLimiters, RemoteProviders, decision_provider_cases, rate_limiter_cases,
    remote_provider_cases, workers_cases,
};
use domain::testing::{FixedClock, MemoryProvider, MemoryRateLimiter};
use futures_util::FutureExt;
use rstest::rstest;

/// Returns true if a case fails.
async fn fails(case: impl Future<Output = ()>) -> bool {
    AssertUnwindSafe(case).catch_unwind().await.is_err()
}

/// A timer of the runtime, whose time is paused.
struct TokioTimer;

#[async_trait]
impl Timer for TokioTimer {
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// The rule that a provider violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProviderFlaw {
    None,
    Retries,
    ReportsNoSentBytes,
    IgnoresTimeout,
    IgnoresDisconnect,
    RepeatsText,
    DropsMedia,
    ExceedsBound,
}

struct FlawedProvider {
    provider: MemoryProvider,
    flaw: ProviderFlaw,
}

#[async_trait]
impl DecisionProvider for FlawedProvider {
    async fn decide(&self, mut call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        match self.flaw {
            ProviderFlaw::ReportsNoSentBytes => call.sent = SentBytes::default(),
            ProviderFlaw::IgnoresTimeout => call.timeout = Duration::from_hours(1),
            ProviderFlaw::IgnoresDisconnect => call.client = Arc::new(NeverDisconnects),
            ProviderFlaw::DropsMedia => Arc::make_mut(&mut call.provider_input).attachments = Attachments::None,
            _ => {}
        }
        let again = call.clone();
        match (self.provider.decide(call).await, self.flaw) {
            (Err(_), ProviderFlaw::Retries) => self.provider.decide(again).await,
            (Err(failure), ProviderFlaw::RepeatsText) => {
                Err(AttemptFailure { detail: format!("it said {PROVIDER_TEXT}"), ..failure })
            }
            (end, _) => end,
        }
    }

    fn outbound_bytes(&self, endpoint: &Endpoint, provider_input: &ProviderInput) -> u64 {
        let bound = self.provider.outbound_bytes(endpoint, provider_input);
        if self.flaw == ProviderFlaw::ExceedsBound { bound / 2 } else { bound }
    }
}

fn flawed_provider(flaw: ProviderFlaw) -> RemoteProviders {
    let provider = MemoryProvider::new(Arc::new(TokioTimer));
    RemoteProviders {
        providers: Providers::over(Arc::new(FlawedProvider { provider: provider.clone(), flaw })),
        remote: Arc::new(provider),
        timer: Arc::new(TokioTimer),
    }
}

/// Returns the names of those cases of a suite that fail for a subject.
macro_rules! failing_cases {
    ($subject:expr, $($suite:ident::$case:ident),+ $(,)?) => {{
        let mut names: Vec<&str> = Vec::new();
        $(
            if fails($suite::$case(&$subject)).await {
                names.push(stringify!($case));
            }
        )+
        names
    }};
}

#[rstest]
#[case(ProviderFlaw::None, &[])]
#[case(ProviderFlaw::DropsMedia, &["unsupported_input_is_rejected_without_sending"])]
#[case(ProviderFlaw::ExceedsBound, &["sent_bytes_stay_within_bound", "bound_holds_for_later_calls"])]
#[tokio::test(start_paused = true)]
async fn decision_provider_suite_detects(#[case] flaw: ProviderFlaw, #[case] failing: &[&str]) {
    let found = failing_cases!(
        flawed_provider(flaw).providers,
        decision_provider_cases::answer_fits_questions,
        decision_provider_cases::unsupported_input_is_rejected_without_sending,
        decision_provider_cases::sent_bytes_stay_within_bound,
        decision_provider_cases::bound_holds_for_later_calls,
    );
    assert_eq!(found, failing);
}

#[rstest]
#[case(ProviderFlaw::None, &[])]
#[case(ProviderFlaw::Retries, &["failed_attempt_is_not_repeated", "redirect_is_not_followed", "failure_reports_sent_bytes"])]
#[case(ProviderFlaw::ReportsNoSentBytes, &["failure_reports_sent_bytes", "dropped_attempt_leaves_count_of_sent_bytes"])]
#[case(ProviderFlaw::IgnoresTimeout, &["stalled_attempt_times_out"])]
#[case(ProviderFlaw::IgnoresDisconnect, &["attempt_ends_when_client_disconnects"])]
#[case(ProviderFlaw::RepeatsText, &["failure_contains_no_text_of_provider"])]
#[tokio::test(start_paused = true)]
async fn remote_provider_suite_detects(#[case] flaw: ProviderFlaw, #[case] failing: &[&str]) {
    let found = failing_cases!(
        flawed_provider(flaw),
        remote_provider_cases::failed_attempt_is_not_repeated,
        remote_provider_cases::redirect_is_not_followed,
        remote_provider_cases::failure_contains_no_text_of_provider,
        remote_provider_cases::failure_reports_sent_bytes,
        remote_provider_cases::stalled_attempt_times_out,
        remote_provider_cases::attempt_ends_when_client_disconnects,
        remote_provider_cases::dropped_attempt_leaves_count_of_sent_bytes,
    );
    assert!(failing.iter().all(|case| found.contains(case)), "{found:?}");
    assert_eq!(found.is_empty(), failing.is_empty(), "{found:?}");
}

/// The rule that a limiter violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimiterFlaw {
    None,
    CountsOneLimitBeforeTheOther,
    KeepsRequestOfRejectedTokens,
    ForgetsTheWait,
}

struct FlawedLimiter {
    limiter: MemoryRateLimiter,
    flaw: LimiterFlaw,
}

#[async_trait]
impl RateLimiter for FlawedLimiter {
    async fn count_request(&self, subject: &RateSubject) -> Result<(), RateLimitError> {
        match self.flaw {
            LimiterFlaw::CountsOneLimitBeforeTheOther => {
                self.limiter.count_request(&RateSubject { workspace: None, ..*subject }).await?;
                self.limiter.count_request(&RateSubject { key: RateLimits::default(), ..*subject }).await
            }
            LimiterFlaw::ForgetsTheWait => {
                let shortened = |limited| RateLimited { retry_after: Duration::from_millis(1), ..limited };
                let counted = self.limiter.count_request(subject).await;
                counted.map_err(|error| error.exceeded().map_or(error, |limited| shortened(limited).into()))
            }
            LimiterFlaw::None | LimiterFlaw::KeepsRequestOfRejectedTokens => self.limiter.count_request(subject).await,
        }
    }

    async fn take_tokens(&self, subject: &RateSubject, tokens: u64) -> Result<(), RateLimitError> {
        let taken = self.limiter.take_tokens(subject, tokens).await;
        if taken.is_err() && self.flaw == LimiterFlaw::KeepsRequestOfRejectedTokens {
            let _ = self.limiter.count_request(subject).await;
        }
        taken
    }

    fn correct_tokens(&self, subject: &RateSubject, taken: u64, used: u64) {
        self.limiter.correct_tokens(subject, taken, used);
    }
}

fn flawed_limiter(flaw: LimiterFlaw) -> RateLimiters {
    let clock = FixedClock::default();
    let limiter = FlawedLimiter { limiter: MemoryRateLimiter::new(clock.clone()), flaw };
    RateLimiters::immediate(Arc::new(limiter), clock)
}

#[rstest]
#[case(LimiterFlaw::None, &[])]
#[case(LimiterFlaw::CountsOneLimitBeforeTheOther, &["rejected_request_counts_nowhere"])]
#[case(LimiterFlaw::KeepsRequestOfRejectedTokens, &["rejected_tokens_release_their_request"])]
#[case(LimiterFlaw::ForgetsTheWait, &["rejected_request_is_accepted_after_its_wait"])]
#[tokio::test]
async fn rate_limiter_suite_detects(#[case] flaw: LimiterFlaw, #[case] failing: &[&str]) {
    let found = failing_cases!(
        flawed_limiter(flaw),
        rate_limiter_cases::request_above_limit_is_rejected,
        rate_limiter_cases::rejected_request_is_accepted_after_its_wait,
        rate_limiter_cases::rejected_request_counts_nowhere,
        rate_limiter_cases::rejected_tokens_release_their_request,
    );
    assert_eq!(found, failing);
}

/// The rule that workers violate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkerFlaw {
    None,
    LosesWork,
    HidesPanics,
    ReturnsEarly,
}

struct FlawedWorkers {
    flaw: WorkerFlaw,
    delayed: Mutex<Option<Work>>,
    runs: AtomicUsize,
}

#[async_trait]
impl Workers for FlawedWorkers {
    async fn run(&self, _: WorkOwner, work: Work) -> Result<(), TaskError> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        match self.flaw {
            WorkerFlaw::LosesWork if number % 3 == 2 => {}
            WorkerFlaw::HidesPanics => drop(std::panic::catch_unwind(AssertUnwindSafe(work))),
            WorkerFlaw::ReturnsEarly => {
                let earlier = self.delayed.lock().unwrap().replace(work);
                if let Some(work) = earlier {
                    work();
                }
            }
            WorkerFlaw::None | WorkerFlaw::LosesWork => work(),
        }
        Ok(())
    }
}

fn flawed_workers(flaw: WorkerFlaw) -> Arc<dyn Workers> {
    Arc::new(FlawedWorkers { flaw, delayed: Mutex::default(), runs: AtomicUsize::new(0) })
}

#[rstest]
#[case(WorkerFlaw::None, &[])]
#[case(WorkerFlaw::LosesWork, &["concurrent_work_runs_exactly_once"])]
#[case(WorkerFlaw::HidesPanics, &["panic_is_never_success"])]
#[case(WorkerFlaw::ReturnsEarly, &["run_returns_after_the_work", "panic_is_never_success", "concurrent_work_runs_exactly_once"])]
#[tokio::test]
async fn workers_suite_detects(#[case] flaw: WorkerFlaw, #[case] failing: &[&str]) {
    let found = failing_cases!(
        flawed_workers(flaw),
        workers_cases::run_returns_after_the_work,
        workers_cases::panic_is_never_success,
        workers_cases::concurrent_work_runs_exactly_once,
    );
    assert_eq!(found, failing);
}
