//! Valid settings that are probably mistakes: `doctor` warns of them, and the server accepts them.

use std::net::IpAddr;

use domain::question::{ConfidenceSource, QuestionType};
use domain::routing::{AttachmentForm, Endpoint, Wire};
use http::Uri;

use crate::config::{Config, ProviderConfig};

/// Returns warnings about a provider.
pub fn provider_warnings(config: &Config, provider: &ProviderConfig) -> Vec<String> {
    let mut odd = Vec::new();
    if !config.endpoints.iter().any(|endpoint| endpoint.provider == provider.slug) {
        odd.push("no endpoint uses it".to_owned());
    }
    if provider.api_key.is_some() && is_unencrypted(&provider.base_url) {
        odd.push(
            "the API key and requests are sent unencrypted: base_url is http:// and not on this machine".to_owned(),
        );
    }
    if provider.api_key.is_none() && (provider.auth_header.is_some() || provider.auth_scheme.is_some()) {
        odd.push("auth_header or auth_scheme is set, but no API key".to_owned());
    }
    if provider.attempt_timeout > config.limits.request_timeout {
        odd.push(
            "attempt_timeout_ms is longer than limits.request_timeout_ms, so one attempt can use the whole deadline"
                .to_owned(),
        );
    }
    odd
}

/// Returns true for `http://` URLs outside the loopback.
fn is_unencrypted(base_url: &str) -> bool {
    let Ok(uri) = base_url.parse::<Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    uri.scheme_str() == Some("http") && !loopback
}

/// Returns warnings about a single endpoint.
pub fn endpoint_warnings(endpoint: &Endpoint) -> Vec<String> {
    let mut odd = limits_above_wire(endpoint);
    let asks_boxes = endpoint.question_types.as_ref().is_some_and(|types| types.contains(&QuestionType::Box));
    if asks_boxes && endpoint.attachments == AttachmentForm::None {
        odd.push("question_types has box, but image_transport is none: box questions are never sent".to_owned());
    }
    let wire = endpoint.wire.as_str();
    match (endpoint.wire, endpoint.confidence) {
        (Wire::SglangDecisions | Wire::ChatCompletions, ConfidenceSource::Native | ConfidenceSource::SystemOne) => {
            let source = endpoint.confidence.as_str();
            odd.push(format!("confidence is {source}, but the wire {wire} has none: answers will not have it"));
        }
        (Wire::GeminiDecisions, ConfidenceSource::SystemOne) => {
            odd.push(
                "confidence is system-one, but on this wire it is the largest probability: use computed".to_owned(),
            );
        }
        _ => {}
    }
    odd
}

/// Returns warnings about limits above those of the wire.
fn limits_above_wire(endpoint: &Endpoint) -> Vec<String> {
    let (own, wire) = (endpoint.own_limits, endpoint.wire.limits());
    let pairs = [
        ("max_questions", own.max_questions, wire.max_questions),
        ("max_options", own.max_options, wire.max_options),
        ("max_levels", own.max_levels, wire.max_levels),
    ];
    let beyond = |(key, own, wire): (&str, Option<usize>, Option<usize>)| {
        let (own, wire) = own.zip(wire)?;
        let name = endpoint.wire.as_str();
        (own > wire).then(|| format!("{key} is {own}, but the wire {name} is described with at most {wire}"))
    };
    pairs.into_iter().filter_map(beyond).collect()
}

/// Returns the reason why an endpoint cannot be distinguished from an earlier one.
pub fn duplicate_warning(endpoints: &[Endpoint], position: usize) -> Option<String> {
    let same = |other: &&Endpoint| {
        let endpoint = &endpoints[position];
        (&other.model, &other.provider, &other.upstream_model)
            == (&endpoint.model, &endpoint.provider, &endpoint.upstream_model)
    };
    endpoints[..position]
        .iter()
        .find(same)
        .map(|_| "the same model of the same provider is in the list twice".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, load_text};
    use crate::wiring::configured_endpoints;

    fn read(text: &str) -> Config {
        load_text(None, text, &Environment::default()).unwrap()
    }

    fn provider(lines: &str) -> Vec<String> {
        let config = read(&format!(
            "[[providers]]\nslug = \"p\"\n{lines}\n[[endpoints]]\nmodel = \"a/b\"\nprovider = \"p\"\nupstream_model = \"m\"\n"
        ));
        provider_warnings(&config, &config.providers[0])
    }

    fn endpoint(wire: &str, lines: &str) -> Vec<String> {
        let config = read(&format!(
            "[[providers]]\nslug = \"p\"\nbase_url = \"http://h\"\nwire = \"{wire}\"\n[[endpoints]]\nmodel = \"a/b\"\n\
             provider = \"p\"\nupstream_model = \"m\"\n{lines}\n"
        ));
        endpoint_warnings(&configured_endpoints(&config)[0])
    }

    #[test]
    fn provider_warns_about_unencrypted_and_missing_keys() {
        for safe in ["https://api.example/v1", "http://127.0.0.1:1/v1", "http://localhost:1", "http://[::1]:1"] {
            assert!(provider(&format!("base_url = \"{safe}\"\napi_key = \"env:K\"")).is_empty(), "{safe}");
        }
        assert!(provider("base_url = \"http://10.0.0.7\"").is_empty());
        assert!(provider("base_url = \"http://10.0.0.7\"\napi_key = \"env:K\"")[0].contains("unencrypted"));
        assert!(provider("base_url = \"https://h\"\nauth_header = \"api-key\"")[0].contains("but no API key"));
        assert!(provider("base_url = \"https://h\"\nattempt_timeout_ms = 60001")[0].contains("the whole deadline"));
        let unused = read("[[providers]]\nslug = \"p\"\nbase_url = \"https://h\"\n");
        assert_eq!(provider_warnings(&unused, &unused.providers[0]), ["no endpoint uses it"]);
    }

    #[test]
    fn endpoint_warns_when_attributes_contradict_wire() {
        for (wire, lines) in [
            ("system-one", "max_options = 255\nmax_questions = 5000\nconfidence = \"native\""),
            ("openai-decisions", "max_questions = 400"),
            ("gemini-decisions", "confidence = \"native\""),
            ("sglang-decisions", "max_options = 26"),
            ("system-one", "question_types = [\"box\"]\nimage_transport = \"assets\""),
        ] {
            assert!(endpoint(wire, lines).is_empty(), "{wire} {lines}");
        }
        for (wire, lines, expected) in [
            ("openai-decisions", "max_questions = 401", "max_questions is 401"),
            ("sglang-decisions", "max_options = 27", "at most 26"),
            ("sglang-decisions", "confidence = \"native\"", "answers will not have it"),
            ("chat-completions", "confidence = \"system-one\"", "answers will not have it"),
            ("gemini-decisions", "confidence = \"system-one\"", "the largest probability"),
            ("system-one", "question_types = [\"box\", \"noul\"]", "box questions are never sent"),
        ] {
            let odd = endpoint(wire, lines);
            assert_eq!(odd.len(), 1, "{wire} {lines}: {odd:?}");
            assert!(odd[0].contains(expected), "{odd:?}");
        }
    }

    #[test]
    fn duplicate_warning_reports_later_endpoint() {
        let text = "[[endpoints]]\nmodel = \"a/b\"\nprovider = \"p\"\nupstream_model = ";
        let config = read(&format!(
            "[[providers]]\nslug = \"p\"\nbase_url = \"http://h\"\n{text}\"m\"\n{text}\"n\"\n{text}\"m\"\n"
        ));
        let endpoints = configured_endpoints(&config);
        assert!(duplicate_warning(&endpoints, 0).is_none() && duplicate_warning(&endpoints, 1).is_none());
        assert!(duplicate_warning(&endpoints, 2).unwrap().contains("twice"));
    }
}
