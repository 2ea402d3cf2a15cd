//! Budget alerts as spans without duration.

use std::time::Duration;

use chrono::SecondsFormat;
use domain::budget::{BudgetAlert, ResetInterval};
use domain::json::Json;
use domain::observability::span_id;

use super::attributes::Attributes;
use super::span::{Span, SpanKind, TimeRange};
use super::trace::wrapped;

/// The name of the span, and the value of `tollgate.event`.
const EVENT: &str = "budget.threshold";

/// Builds the span of an alert, in its own trace. Its ids derive from the alert, so that it is the same in each
/// delivery.
pub(super) fn event(alert: &BudgetAlert) -> Json {
    let name = alert.to_string();
    // Two different hashes are the 16 bytes of a trace's id.
    let trace_id = span_id(&format!("{name} trace")) + &span_id(&format!("{name} trace, second half"));
    let span = Span {
        trace_id: &trace_id,
        id: &span_id(&format!("{name} event")),
        parent: None,
        name: EVENT,
        kind: SpanKind::Internal,
        time_range: TimeRange::after(alert.at, Duration::ZERO, Duration::ZERO),
        attributes: attributes(alert),
        events: Vec::new(),
        error: None,
    };
    wrapped(&span.json())
}

fn attributes(alert: &BudgetAlert) -> Attributes {
    let time = |at: chrono::DateTime<chrono::Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let key = alert.api_key().map(|id| id.to_string());
    let guardrail = alert.guardrail_id().map(|id| id.to_string());
    let mut attributes = Attributes::default();
    attributes
        .text("tollgate.event", EVENT)
        .text("tollgate.workspace_id", &alert.workspace_id.to_string())
        .optional_text("tollgate.api_key_id", key.as_deref())
        .optional_text("tollgate.guardrail.id", guardrail.as_deref())
        .text("tollgate.budget.scope", alert.account.scope().as_str())
        .flag("tollgate.budget.is_credit", alert.is_credit)
        .text("tollgate.budget.limit_usd", &alert.limit.to_string())
        .text("tollgate.budget.spent_usd", &alert.spent.to_string())
        .int("tollgate.budget.threshold_percent", alert.threshold.percent())
        .text("tollgate.budget.period", alert.reset().map_or("lifetime", ResetInterval::as_str))
        .optional_text("tollgate.budget.period_start", alert.period_start().map(time).as_deref())
        .optional_text("tollgate.budget.resets_at", alert.resets_at().map(time).as_deref());
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, Utc};
    use domain::budget::allowances::CounterPeriod;
    use domain::budget::{Account, AlertThreshold};
    use domain::ids::{GuardrailId, WorkspaceId};
    use domain::money::Usd;
    use domain::testing::SequentialIds;

    fn at() -> DateTime<Utc> {
        "2026-07-15T12:00:00Z".parse().unwrap()
    }

    fn alert(account: Account, period: CounterPeriod, is_credit: bool) -> BudgetAlert {
        BudgetAlert {
            workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(1)),
            account,
            is_credit,
            base: Usd::ZERO,
            limit: "25.5".parse().unwrap(),
            period,
            threshold: AlertThreshold::FourFifths,
            spent: "20.400000000001".parse().unwrap(),
            at: at(),
        }
    }

    fn of_guardrail() -> BudgetAlert {
        let account = Account::Guardrail(GuardrailId::from_uuid(SequentialIds::uuid(9)), SequentialIds::key(3));
        alert(account, CounterPeriod::containing(Some(ResetInterval::Daily), at()), false)
    }

    #[test]
    fn event_names_account_limit_threshold_and_period_exactly() {
        let text = event(&of_guardrail()).text().to_owned();
        let value = |key: &str, value: &str| format!("{{\"key\":\"tollgate.{key}\",\"value\":{value}}}");
        let string = |text: &str| format!("{{\"stringValue\":\"{text}\"}}");
        for expected in [
            value("event", &string("budget.threshold")),
            value("workspace_id", &string(&SequentialIds::uuid(1).to_string())),
            value("api_key_id", &string(&SequentialIds::key(3).to_string())),
            value("guardrail.id", &string(&SequentialIds::uuid(9).to_string())),
            value("budget.scope", &string("guardrail")),
            value("budget.is_credit", "{\"boolValue\":false}"),
            value("budget.limit_usd", &string("25.5")),
            value("budget.spent_usd", &string("20.400000000001")),
            value("budget.threshold_percent", "{\"intValue\":\"80\"}"),
            value("budget.period", &string("daily")),
            value("budget.period_start", &string("2026-07-15T00:00:00Z")),
            value("budget.resets_at", &string("2026-07-16T00:00:00Z")),
            "\"name\":\"budget.threshold\"".to_owned(),
        ] {
            assert!(text.contains(&expected), "{expected} is missing: {text}");
        }
        assert!(Json::parse(&text).is_ok());
    }

    #[test]
    fn ids_are_stable_and_differ_between_alerts() {
        assert_eq!(event(&of_guardrail()).text(), event(&of_guardrail()).text());
        let credit = alert(Account::Workspace(of_guardrail().workspace_id), CounterPeriod::Lifetime, true);
        let text = event(&credit).text().to_owned();
        assert!(text.contains("\"boolValue\":true") && text.contains("\"stringValue\":\"lifetime\""), "{text}");
        assert!(!text.contains("resets_at") && !text.contains("api_key_id"), "{text}");
        let trace_id = |text: &str| text.split("\"traceId\":\"").nth(1).unwrap()[..32].to_owned();
        assert_ne!(trace_id(&text), trace_id(event(&of_guardrail()).text()));
    }
}
