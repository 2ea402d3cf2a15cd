//! Views of tests of providers.

use domain::decision::ProviderTest;
use domain::routing::Endpoint;

use crate::control::ProviderTestReport;
use crate::output::Line;

impl ProviderTestReport {
    /// Creates the report of a test.
    pub fn new(endpoint: &Endpoint, test: &ProviderTest) -> Self {
        let usage = test.outcome.as_ref().map_or_else(|failure| failure.usage, |usage| *usage);
        let failure = test.outcome.as_ref().err();
        let reported = failure.and_then(|failure| failure.provider_error.as_deref());
        Self {
            ok: failure.is_none(),
            provider: endpoint.provider.to_string(),
            wire: endpoint.wire.as_str().to_owned(),
            upstream_model: endpoint.upstream_model.clone(),
            outcome: failure.map_or("answered", |failure| failure.kind.as_str()).to_owned(),
            upstream_status: failure.map_or(Some(200), |failure| failure.upstream_status),
            latency_ms: (test.latency.as_secs_f64() * 1e6).round() / 1e3,
            input_tokens: usage.map(|usage| usage.input_tokens),
            output_tokens: usage.map(|usage| usage.output_tokens),
            cause: failure.and_then(|failure| failure.cause).map(|cause| cause.as_str().to_owned()),
            detail: failure.map(|failure| failure.detail.clone()),
            provider_code: reported.and_then(|error| error.code.clone()),
            provider_message: reported.and_then(|error| error.message.clone()),
        }
    }

    /// Returns the lines for a terminal.
    pub fn lines(&self) -> Vec<Line> {
        let Self { provider, upstream_model, wire, outcome, latency_ms, .. } = self;
        let status = self.upstream_status.map_or("no status".to_owned(), |status| format!("status {status}"));
        let first = format!("{provider}: {outcome}, {status}, {latency_ms:.1} ms ({upstream_model}, wire {wire})");
        let mut lines = vec![Line::new(first, !self.ok)];
        let mut add = |name: &str, value: Option<String>| {
            lines.extend(value.map(|value| Line::new(format!("  {name:<10}{value}"), false)));
        };
        let tokens = self.input_tokens.zip(self.output_tokens);
        add("Tokens:", tokens.map(|(input, output)| format!("{input} in, {output} out")));
        add("Reason:", self.detail.clone());
        add("Code:", self.provider_code.clone());
        add("Message:", self.provider_message.clone());
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::pricing::ReportedUsage;
    use domain::routing::{AttemptFailure, ProviderError, Wire};

    use super::*;

    fn report(outcome: Result<Option<ReportedUsage>, AttemptFailure>) -> ProviderTestReport {
        let endpoint = Endpoint::new("a/b".parse().unwrap(), "p".parse().unwrap(), Wire::SystemOne, "m");
        ProviderTestReport::new(&endpoint, &ProviderTest { latency: Duration::from_micros(12_345), outcome })
    }

    fn text(report: &ProviderTestReport) -> String {
        report.lines().into_iter().flat_map(|line| [line.text, "\n".to_owned()]).collect()
    }

    #[test]
    fn lines_show_status_latency_and_provider_error() {
        let answered = report(Ok(Some(ReportedUsage { input_tokens: 9, output_tokens: 2 })));
        let expected = "p: answered, status 200, 12.3 ms (m, wire system-one)\n  Tokens:   9 in, 2 out\n";
        assert_eq!(text(&answered), expected);
        assert!(answered.ok && !answered.lines()[0].is_problem);
        let error = ProviderError { code: Some("invalid_key".to_owned()), message: Some("bad key".to_owned()) };
        let failure =
            AttemptFailure { provider_error: Some(Box::new(error)), ..AttemptFailure::from_status(401, None) };
        let failed = report(Err(failure));
        let shown = text(&failed);
        assert!(shown.starts_with("p: provider_auth_failed, status 401, 12.3 ms"), "{shown}");
        assert!(shown.contains("Code:     invalid_key\n") && shown.contains("Message:  bad key\n"), "{shown}");
        assert!(!failed.ok && failed.lines()[0].is_problem);
    }
}
