//! Metrics of decisions, and of messages to destinations.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::budget::BudgetScope;
use domain::decision::Metrics;
use domain::ids::IdMap;
use domain::observability::OutboxStatus;
use domain::usage::{AttemptOutcome, AttemptRecord, QuestionVerdict, UsageOutcome, UsageRecord};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::sample::{self, Labels, UsdCounter, write_counters};

/// The metrics; the help texts below describe them.
#[derive(Debug)]
pub(crate) struct DecisionMetrics {
    /// In the order of [`UsageOutcome::ALL`].
    settled: [Counter; UsageOutcome::ALL.len()],
    added: Histogram,
    spend: UsdCounter,
    /// Written when a reloaded configuration has a new provider.
    providers: RwLock<IdMap<Arc<str>, ProviderMetrics>>,
    others: ProviderMetrics,
    families: Families,
    /// By [`hold_index`].
    reservations: [Counter; 4],
    reservation: Histogram,
    filtered: Family<Labels<1>, Counter>,
    /// By [`QuestionVerdict`].
    verdicts: [Counter; QuestionVerdict::ALL.len()],
    beyond_bound: Counter,
}

/// The series of one provider, resolved once so that counting needs no look-up.
#[derive(Debug)]
struct ProviderMetrics {
    /// In the order of [`AttemptOutcome::ALL`].
    attempts: [Counter; AttemptOutcome::ALL.len()],
    latency: Histogram,
    input_tokens: Counter,
    output_tokens: Counter,
    cost: UsdCounter,
}

/// Labels with a provider's slug.
type ProviderLabels<const N: usize> = [(&'static str, Arc<str>); N];

/// The label for unknown providers, and for outcomes that only a recovery records.
const OTHER: &str = "other";

const ACTIONS: [&str; 3] = ["block", "redact", "flag"];

impl DecisionMetrics {
    pub(crate) fn register<'a>(registry: &mut Registry, providers: impl IntoIterator<Item = &'a str>) -> Self {
        let families = Families::register(registry);
        let outcomes = Family::<Labels<1>, Counter>::default();
        registry.register("decisions", "Charged Decisions requests by outcome", outcomes.clone());
        let settled = UsageOutcome::ALL.map(|outcome| outcomes.get_or_create_owned(&[("outcome", outcome.as_str())]));
        let added = sample::of_own_work();
        registry.register_with_unit(
            "gateway_overhead",
            "Latency of Decisions requests without the time at providers",
            Unit::Seconds,
            added.clone(),
        );
        let holds = Family::<Labels<2>, Counter>::default();
        registry.register("holds", "Requests for holds by result and by the limit that rejected them", holds.clone());
        let hold = |result, limit| holds.get_or_create_owned(&[("result", result), ("limit", limit)]);
        let rejected = |scope: BudgetScope| hold("rejected", scope.as_str());
        let reservations = [
            hold("granted", "none"),
            rejected(BudgetScope::Workspace),
            rejected(BudgetScope::Key),
            rejected(BudgetScope::Guardrail),
        ];
        let reservation = sample::of_own_work();
        registry.register_with_unit("hold_duration", "Time to place a hold", Unit::Seconds, reservation.clone());
        let filtered = Family::default();
        registry.register("guardrail_actions", "Actions of content filters", filtered.clone());
        // A series that begins at zero allows alerts on its first increase.
        for action in ACTIONS {
            drop(filtered.get_or_create(&[("action", action)]));
        }
        let questions: Family<Labels<1>, Counter> = Family::default();
        registry.register("question_outcomes", "Questions of presets with stages", questions.clone());
        let verdicts =
            QuestionVerdict::ALL.map(|verdict| questions.get_or_create(&[("outcome", verdict.as_str())]).clone());
        let beyond_bound = Counter::default();
        registry.register("charges_over_hold", "Charges that exceeded their hold", beyond_bound.clone());
        let metrics = Self {
            settled,
            added,
            spend: UsdCounter::default(),
            providers: RwLock::default(),
            others: families.of(&Arc::from(OTHER)),
            families,
            reservations,
            reservation,
            filtered,
            verdicts,
            beyond_bound,
        };
        metrics.add_providers(providers);
        metrics
    }

    /// Adds the series of providers that have none.
    pub(crate) fn add_providers<'a>(&self, slugs: impl IntoIterator<Item = &'a str>) {
        let mut providers = self.providers.write().unwrap_or_else(PoisonError::into_inner);
        for slug in slugs {
            if !providers.contains_key(slug) {
                let slug = Arc::<str>::from(slug);
                providers.insert(Arc::clone(&slug), self.families.of(&slug));
            }
        }
    }

    fn count_attempt(&self, attempt: &AttemptRecord) {
        let providers = self.providers.read().unwrap_or_else(PoisonError::into_inner);
        providers.get(&*attempt.provider).unwrap_or(&self.others).attempt(attempt);
    }

    /// Writes the counters of money.
    pub(crate) fn write_money(&self, text: &mut String) {
        write_counters(text, "spend_usd", "Charges of this process in US dollars", [(None, self.spend.pico())]);
        let providers = self.providers.read().unwrap_or_else(PoisonError::into_inner);
        let slugs = providers.iter().map(|(slug, provider)| (&**slug, provider));
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        // A provider may be called `other`, too.
        for (slug, provider) in slugs.chain([(OTHER, &self.others)]) {
            *sums.entry(slug).or_default() += provider.cost.pico();
        }
        let help = "Cost of attempts in US dollars, each rounded up to 10^-12";
        write_counters(text, "attempt_cost_usd", help, sums.into_iter().map(|(slug, pico)| (Some(slug), pico)));
    }
}

impl Metrics for DecisionMetrics {
    fn record_charge(&self, record: &UsageRecord) {
        self.settled[record.outcome as usize].inc();
        self.spend.add(record.cost);
        let at_providers = record.time_at_providers().unwrap_or_default();
        self.added.observe(record.latency.saturating_sub(at_providers).as_secs_f64());
        // Requests that shared a call all contain its attempts; only the first of them counts them.
        if record.share.index > 0 {
            return;
        }
        for attempt in &*record.attempts {
            self.count_attempt(attempt);
        }
    }

    fn record_hold(&self, rejected_by: Option<BudgetScope>, took: Duration) {
        self.reservations[hold_index(rejected_by)].inc();
        self.reservation.observe(took.as_secs_f64());
    }

    fn record_guardrail_action(&self, action: &'static str) {
        self.filtered.get_or_create(&[("action", action)]).inc();
    }

    fn record_question_verdict(&self, verdict: QuestionVerdict) {
        self.verdicts[verdict as usize].inc();
    }

    fn record_hold_exceeded(&self) {
        self.beyond_bound.inc();
    }

    fn record_abandoned_requests(&self, requests: u64) {
        self.settled[UsageOutcome::Abandoned as usize].inc_by(requests);
    }
}

/// The families with a provider label.
#[derive(Debug)]
struct Families {
    attempts: Family<ProviderLabels<2>, Counter>,
    latency: Family<ProviderLabels<1>, Histogram, fn() -> Histogram>,
    tokens: Family<ProviderLabels<2>, Counter>,
}

impl Families {
    fn register(registry: &mut Registry) -> Self {
        let families = Self {
            attempts: Family::default(),
            latency: Family::new_with_constructor(sample::of_calls),
            tokens: Family::default(),
        };
        registry.register("attempts", "Attempts at providers by outcome", families.attempts.clone());
        registry.register_with_unit(
            "attempt_duration",
            "Duration of attempts at providers",
            Unit::Seconds,
            families.latency.clone(),
        );
        registry.register("tokens", "Charged tokens by direction", families.tokens.clone());
        families
    }

    fn of(&self, provider: &Arc<str>) -> ProviderMetrics {
        let slug = || ("provider", Arc::clone(provider));
        let attempts = |outcome: AttemptOutcome| {
            let outcome = match outcome {
                AttemptOutcome::Abandoned | AttemptOutcome::Unknown => OTHER,
                _ => outcome.as_str(),
            };
            self.attempts.get_or_create_owned(&[slug(), ("outcome", outcome.into())])
        };
        let tokens = |direction: &str| self.tokens.get_or_create_owned(&[slug(), ("direction", direction.into())]);
        ProviderMetrics {
            attempts: AttemptOutcome::ALL.map(attempts),
            latency: self.latency.get_or_create_owned(&[slug()]),
            input_tokens: tokens("input"),
            output_tokens: tokens("output"),
            cost: UsdCounter::default(),
        }
    }
}

impl ProviderMetrics {
    fn attempt(&self, attempt: &AttemptRecord) {
        self.attempts[attempt.outcome as usize].inc();
        self.latency.observe(attempt.latency.as_secs_f64());
        self.input_tokens.inc_by(attempt.input_tokens);
        self.output_tokens.inc_by(attempt.output_tokens);
        if let Some(cost) = attempt.cost() {
            self.cost.add(cost);
        }
    }
}

/// Returns the place of a hold's counter: those of the limits that reject holds follow that of granted ones.
fn hold_index(rejected_by: Option<BudgetScope>) -> usize {
    rejected_by.map_or(0, |scope| 1 + scope as usize)
}

/// The last sample of the outbox.
#[derive(Debug)]
pub struct OutboxMetrics {
    messages: Family<Labels<1>, Gauge>,
    lag: Gauge,
    failed_samples: Counter,
}

impl OutboxMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self { messages: Family::default(), lag: Gauge::default(), failed_samples: Counter::default() };
        metrics.set(0, 0);
        registry.register("outbox_messages", "Outbox messages by state", metrics.messages.clone());
        registry.register_with_unit(
            "outbox_lag",
            "Age of the oldest pending message",
            Unit::Seconds,
            metrics.lag.clone(),
        );
        registry.register(
            "outbox_poll_errors",
            "Failed polls of the outbox; its other metrics are stale then",
            metrics.failed_samples.clone(),
        );
        metrics
    }

    /// Records a sample.
    pub fn record_sample(&self, status: &OutboxStatus, now: DateTime<Utc>) {
        self.set(status.pending, status.dead);
        let lag = status.oldest.map_or(0, |oldest| (now - oldest).num_seconds().max(0));
        self.lag.set(lag);
    }

    /// Records a failed sample.
    pub fn record_sample_failure(&self) {
        self.failed_samples.inc();
    }

    fn set(&self, pending: u64, dead: u64) {
        for (state, count) in [("pending", pending), ("dead", dead)] {
            self.messages.get_or_create(&[("state", state)]).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}
