//! Endpoints, the test of a provider, and explanations of guardrails.

use domain::pricing::TokenPrices;
use domain::question::QuestionType;
use domain::routing::{ChatSettings, Endpoint, Wire};
use serde::Serialize;

use super::{per_cent, per_million_tokens};
use crate::control::{EndpointHealth, LastError, ProviderTestReport};
use crate::output::Line;

/// A configured endpoint, including the properties of its wire.
#[derive(Serialize)]
pub struct EndpointView {
    /// The model's name in the catalogue.
    pub model: String,
    /// The provider's slug.
    pub provider: String,
    /// The provider's display name.
    pub provider_name: String,
    /// The wire.
    pub wire: &'static str,
    /// The model's name at the provider.
    pub upstream_model: String,
    /// The prices; null if neither the endpoint nor the catalogue has any.
    pub prices: Option<EndpointPricesView>,
    /// The supported types of questions.
    pub question_types: Vec<&'static str>,
    /// The limits of a request.
    pub limits: LimitsView,
    /// The transport of images.
    pub image_transport: &'static str,
    /// The source of `confidence`.
    pub confidence: &'static str,
    /// The decimals of its numbers.
    pub probability_decimals: u32,
    /// True for zero data retention.
    pub zdr: bool,
    /// Whether it may store or train on prompts: `allow` or `deny`.
    pub data_collection: &'static str,
    /// The number format of the weights.
    pub quantization: &'static str,
    /// The deadline of an attempt in milliseconds.
    pub attempt_timeout_ms: u64,
    /// The settings of a chat model; only on that wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<ChatView>,
    /// Its health in each running server that has it; null if no server runs.
    pub health: Option<Vec<ServerEndpointHealth>>,
}

/// The health of an endpoint in a running server.
#[derive(Serialize)]
pub struct ServerEndpointHealth {
    /// The id of the server's start.
    pub server: String,
    /// The health.
    #[serde(flatten)]
    pub health: EndpointHealth,
}

/// Prices in USD per token, exact.
#[derive(Serialize)]
pub struct EndpointPricesView {
    /// Per input token.
    pub prompt: String,
    /// Per output token.
    pub completion: String,
    /// The source of the prices: `endpoint` or `catalogue`.
    pub source: &'static str,
    /// Both in USD per million tokens, for tables.
    #[serde(skip)]
    pub per_million_tokens: [String; 2],
}

/// The limits of a request; null is no limit.
#[derive(Serialize)]
pub struct LimitsView {
    max_questions: Option<usize>,
    max_options: Option<usize>,
    max_levels: Option<usize>,
    max_body_bytes: Option<usize>,
    max_input_tokens: Option<usize>,
}

/// The settings of a chat model, in configuration terms.
#[derive(Serialize)]
pub struct ChatView {
    method: &'static str,
    temperature: String,
    min_label_probability: String,
    top_logprobs: usize,
}

impl From<ChatSettings> for ChatView {
    fn from(chat: ChatSettings) -> Self {
        Self {
            method: chat.method.as_str(),
            temperature: decimal(chat.temperature_milli),
            min_label_probability: decimal(chat.min_label_probability_milli),
            top_logprobs: chat.top_logprobs,
        }
    }
}

/// Formats thousandths as a decimal number: 1350 is `1.35`.
fn decimal(thousandths: u32) -> String {
    let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl EndpointView {
    /// Creates a view; the catalogue's prices apply if the endpoint has none.
    pub fn new(endpoint: &Endpoint, of_catalogue: Option<TokenPrices>) -> Self {
        let prices = |prices: TokenPrices, source| EndpointPricesView {
            prompt: prices.prompt.to_string(),
            completion: prices.completion.to_string(),
            source,
            per_million_tokens: [prices.prompt, prices.completion].map(per_million_tokens),
        };
        let own = endpoint.prices.map(|own| prices(own, "endpoint"));
        let limits = endpoint.limits();
        Self {
            model: endpoint.model.to_string(),
            provider: endpoint.provider.to_string(),
            provider_name: endpoint.provider_name.clone(),
            wire: endpoint.wire.as_str(),
            upstream_model: endpoint.upstream_model.clone(),
            prices: own.or_else(|| of_catalogue.map(|row| prices(row, "catalogue"))),
            question_types: QuestionType::ALL
                .into_iter()
                .filter(|&question_type| endpoint.supports_type(question_type))
                .map(QuestionType::as_str)
                .collect(),
            limits: LimitsView {
                max_questions: limits.max_questions,
                max_options: limits.max_options,
                max_levels: limits.max_levels,
                max_body_bytes: limits.max_body_bytes,
                max_input_tokens: limits.max_input_tokens,
            },
            image_transport: endpoint.attachments.as_str(),
            confidence: endpoint.confidence.as_str(),
            probability_decimals: endpoint.decimals,
            zdr: endpoint.data_policy.zdr,
            data_collection: if endpoint.data_policy.collects { "allow" } else { "deny" },
            quantization: endpoint.quantization.as_str(),
            attempt_timeout_ms: u64::try_from(endpoint.attempt_timeout.as_millis()).unwrap_or(u64::MAX),
            chat: (endpoint.wire == Wire::ChatCompletions).then(|| endpoint.chat.into()),
            health: None,
        }
    }

    /// Adds the health in running servers.
    #[must_use]
    pub fn with_health(self, health: Option<Vec<ServerEndpointHealth>>) -> Self {
        Self { health, ..self }
    }

    /// Returns true if the last attempt of a running server failed.
    pub fn is_failing(&self) -> bool {
        self.health.iter().flatten().any(|one| one.health.last_attempt_failed)
    }

    /// Returns the health in the server with the lowest accept rate.
    fn worst_health(&self) -> Option<&EndpointHealth> {
        let rate = |health: &EndpointHealth| health.accept_rate.unwrap_or(f64::INFINITY);
        let all = self.health.iter().flatten().map(|one| &one.health);
        all.min_by(|one, other| rate(one).total_cmp(&rate(other)))
    }

    /// The column heads of [`Self::line`].
    pub const HEAD: [&str; 11] = [
        "MODEL",
        "PROVIDER",
        "WIRE",
        "USD/M TOKENS IN",
        "USD/M TOKENS OUT",
        "LIMITS",
        "DATA",
        "ACCEPTED",
        "LATENCY MS",
        "BOUND",
        "LAST ERROR",
    ];

    /// Returns the most by which a running server raises the bound.
    fn raised_bound(&self) -> Option<String> {
        let ratios = self.health.iter().flatten().filter_map(|one| one.health.bound_ratio);
        ratios.max_by(f64::total_cmp).map(|ratio| format!("× {ratio:.1}"))
    }

    /// Returns a table row, with the health in the server with the lowest accept rate.
    pub fn line(&self) -> [String; 11] {
        let health = self.worst_health();
        let latency = health.and_then(|health| health.latency_ms).map(|latency| format!("{latency:.1}"));
        let last_error = health.and_then(|health| health.last_error.as_ref()).map(LastError::to_string);
        let unknown = || ["-", "-"].map(str::to_owned);
        let [input, output] = self.prices.as_ref().map_or_else(unknown, |prices| prices.per_million_tokens.clone());
        let data = match (self.zdr, self.data_collection) {
            (true, _) => "zero retention",
            (false, "deny") => "no data collection",
            _ => "may retain",
        };
        [
            self.model.clone(),
            self.provider.clone(),
            self.wire.to_owned(),
            input,
            output,
            self.limits_in_words(),
            data.to_owned(),
            per_cent(health.and_then(|health| health.accept_rate)),
            latency.unwrap_or_else(|| "-".to_owned()),
            self.raised_bound().unwrap_or_else(|| "-".to_owned()),
            last_error.unwrap_or_else(|| "-".to_owned()),
        ]
    }

    fn limits_in_words(&self) -> String {
        let limits = [
            (self.limits.max_questions, "questions"),
            (self.limits.max_options, "options"),
            (self.limits.max_levels, "levels"),
            (self.limits.max_body_bytes, "bytes"),
            (self.limits.max_input_tokens, "tokens"),
        ];
        let words: Vec<String> =
            limits.iter().filter_map(|(limit, word)| limit.map(|limit| format!("{word} {limit}"))).collect();
        if words.is_empty() { "-".to_owned() } else { words.join(", ") }
    }
}

/// Returns the report of a test of a provider, as lines for a terminal.
pub fn provider_test_lines(report: &ProviderTestReport) -> Vec<Line> {
    let ProviderTestReport { provider, upstream_model, wire, outcome, latency_ms, .. } = report;
    let status = report.upstream_status.map_or("no status".to_owned(), |status| format!("status {status}"));
    let first = format!("{provider}: {outcome}, {status}, {latency_ms:.1} ms ({upstream_model}, wire {wire})");
    let mut lines = vec![Line::new(first, !report.ok)];
    let mut add = |name: &str, value: Option<String>| {
        lines.extend(value.map(|value| Line::new(format!("  {name:<10}{value}"), false)));
    };
    let tokens = report.input_tokens.zip(report.output_tokens);
    add("Tokens:", tokens.map(|(input, output)| format!("{input} in, {output} out")));
    add("Reason:", report.detail.clone());
    add("Code:", report.provider_code.clone());
    add("Message:", report.provider_message.clone());
    lines
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::pricing::ReportedUsage;
    use domain::routing::{AttachmentForm, AttemptFailure, DataPolicy, EndpointLimits, ProviderError, Wire};

    use domain::decision::ProviderTest;

    use super::*;

    fn endpoint(wire: Wire) -> Endpoint {
        Endpoint::new("a/b".parse().unwrap(), "p".parse().unwrap(), wire, "m")
    }

    fn prices(prompt: &str) -> TokenPrices {
        TokenPrices { prompt: prompt.parse().unwrap(), completion: "0".parse().unwrap() }
    }

    #[test]
    fn endpoint_prices_have_precedence_over_catalogue() {
        let own = Endpoint { prices: Some(prices("0.5")), ..endpoint(Wire::SystemOne) };
        for (endpoint, row, expected) in [
            (&own, Some(prices("0.25")), Some(("0.5", "endpoint"))),
            (&endpoint(Wire::SystemOne), Some(prices("0.25")), Some(("0.25", "catalogue"))),
            (&endpoint(Wire::SystemOne), None, None),
        ] {
            let view = EndpointView::new(endpoint, row);
            let shown = view.prices.as_ref().map(|prices| (prices.prompt.as_str(), prices.source));
            assert_eq!(shown, expected);
        }
        assert_eq!(EndpointView::new(&endpoint(Wire::SystemOne), None).line()[3], "-");
        let line = EndpointView::new(&endpoint(Wire::SystemOne), Some(prices("0.000000042"))).line();
        assert_eq!((line[3].as_str(), line[4].as_str()), ("0.042", "0"), "USD per million tokens");
    }

    #[test]
    fn line_shows_limits_of_wire_and_data_policy() {
        let limited = Endpoint {
            own_limits: EndpointLimits { max_levels: Some(4), ..EndpointLimits::default() },
            data_policy: DataPolicy { zdr: false, collects: false },
            ..endpoint(Wire::SglangDecisions)
        };
        let line = EndpointView::new(&limited, None).line();
        assert_eq!((line[5].as_str(), line[6].as_str()), ("options 26, levels 4", "no data collection"));
        let plain = EndpointView::new(&endpoint(Wire::SystemOne), None).line();
        assert_eq!((plain[5].as_str(), plain[6].as_str()), ("-", "may retain"));
        let zdr = DataPolicy { zdr: true, collects: false };
        let line = EndpointView::new(&Endpoint { data_policy: zdr, ..endpoint(Wire::SystemOne) }, None).line();
        assert_eq!(line[6], "zero retention");
    }

    #[test]
    fn line_shows_health_of_worst_server() {
        let health = |rate: Option<f64>, failed: bool, bound_ratio| ServerEndpointHealth {
            server: "s".to_owned(),
            health: EndpointHealth {
                paused: false,
                model: "a/b".to_owned(),
                provider: "p".to_owned(),
                upstream_model: "m".to_owned(),
                throttled: false,
                throttled_workspaces: 0,
                accept_rate: rate,
                latency_ms: Some(12.34),
                retry_in_seconds: None,
                attempts: 2,
                last_error: failed.then(|| LastError {
                    outcome: "connect_error".to_owned(),
                    upstream_status: None,
                    rejected_credential: false,
                    cause: Some("name_not_found".to_owned()),
                }),
                last_attempt_failed: failed,
                bound_ratio,
                bound_extra_tokens: None,
            },
        };
        let view = |health| EndpointView::new(&endpoint(Wire::SystemOne), None).with_health(health);
        let cells = |view: &EndpointView| view.line()[7..].join(" ");
        assert_eq!(cells(&view(None)), "- - - -");
        assert!(serde_json::to_value(view(None)).unwrap()["health"].is_null());
        let all =
            vec![health(None, false, Some(2.0)), health(Some(0.25), true, None), health(Some(1.0), false, Some(17.32))];
        let shown = view(Some(all));
        assert_eq!(cells(&shown), "25 % 12.3 × 17.3 connect_error: name not found");
        assert!(shown.is_failing() && !view(Some(vec![health(Some(1.0), false, None)])).is_failing());
        assert_eq!(serde_json::to_value(&shown).unwrap()["health"][1]["server"], "s");
    }

    #[test]
    fn view_omits_boxes_without_images() {
        let types = |endpoint: &Endpoint| EndpointView::new(endpoint, None).question_types;
        assert_eq!(types(&endpoint(Wire::SystemOne)), ["noul", "choice", "score"]);
        let seeing = Endpoint { attachments: AttachmentForm::Assets, ..endpoint(Wire::SystemOne) };
        assert_eq!(types(&seeing), ["noul", "choice", "score", "box"]);
        let narrow = Endpoint { question_types: Some(vec![QuestionType::Score]), ..endpoint(Wire::OpenAiDecisions) };
        assert_eq!(types(&narrow), ["score"]);
    }

    #[test]
    fn decimal_formats_thousandths() {
        for (number, text) in [(0, "0"), (50, "0.05"), (500, "0.5"), (1_000, "1"), (20_125, "20.125"), (10_000, "10")] {
            assert_eq!(decimal(number), text);
        }
    }

    #[test]
    fn chat_settings_are_shown_for_chat_models_only() {
        let json = |wire| serde_json::to_value(EndpointView::new(&endpoint(wire), None)).unwrap();
        let chat = &json(Wire::ChatCompletions)["chat"];
        assert_eq!((&chat["method"], &chat["temperature"]), (&"auto".into(), &"1".into()));
        assert_eq!(chat["min_label_probability"], "0.5");
        assert!(json(Wire::SystemOne).get("chat").is_none());
    }

    fn report(outcome: Result<Option<ReportedUsage>, AttemptFailure>) -> ProviderTestReport {
        let endpoint = Endpoint::new("a/b".parse().unwrap(), "p".parse().unwrap(), Wire::SystemOne, "m");
        ProviderTestReport::new(&endpoint, &ProviderTest { latency: Duration::from_micros(12_345), outcome })
    }

    fn text(report: &ProviderTestReport) -> String {
        provider_test_lines(report).into_iter().flat_map(|line| [line.text, "\n".to_owned()]).collect()
    }

    #[test]
    fn lines_show_status_latency_and_provider_error() {
        let answered = report(Ok(Some(ReportedUsage { input_tokens: 9, output_tokens: 2 })));
        let expected = "p: answered, status 200, 12.3 ms (m, wire system-one)\n  Tokens:   9 in, 2 out\n";
        assert_eq!(text(&answered), expected);
        assert!(answered.ok && !provider_test_lines(&answered)[0].is_problem);
        let error = ProviderError { code: Some("invalid_key".to_owned()), message: Some("bad key".to_owned()) };
        let failure =
            AttemptFailure { provider_error: Some(Box::new(error)), ..AttemptFailure::from_status(401, None) };
        let failed = report(Err(failure));
        let shown = text(&failed);
        assert!(shown.starts_with("p: provider_auth_failed, status 401, 12.3 ms"), "{shown}");
        assert!(shown.contains("Code:     invalid_key\n") && shown.contains("Message:  bad key\n"), "{shown}");
        assert!(!failed.ok && provider_test_lines(&failed)[0].is_problem);
    }
}
