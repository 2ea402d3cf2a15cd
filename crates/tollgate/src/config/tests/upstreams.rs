//! Providers and endpoints with all their attributes.

use domain::question::{ConfidenceSource, QuestionType};
use domain::routing::{AttachmentForm, ChatMethod, ChatSettings, DataPolicy, EndpointLimits, Quantization, Wire};

use wires::provider::ModelLocation;
use wires::system_one::ResponseWrapper;

use super::*;

const ENDPOINT: &str = "[[endpoints]]\nmodel = \"a/b\"\nprovider = \"typesafe\"\nupstream_model = \"b\"\n";

/// Returns a provider with further lines, and a minimal endpoint.
fn provider(lines: &str) -> Result<Config, ConfigError> {
    read(&format!("{PROVIDER}{lines}\n{ENDPOINT}"))
}

fn provider_fault(lines: &str) -> String {
    provider(lines).unwrap_err().to_string()
}

/// Returns a provider and an endpoint with further lines.
fn both(of_provider: &str, of_endpoint: &str) -> Result<EndpointConfig, ConfigError> {
    read(&format!("{PROVIDER}{of_provider}\n{ENDPOINT}{of_endpoint}\n")).map(|mut config| config.endpoints.remove(0))
}

fn both_fault(of_provider: &str, of_endpoint: &str) -> String {
    both(of_provider, of_endpoint).unwrap_err().to_string()
}

#[test]
fn provider_without_attributes_uses_defaults_of_wire() {
    let config = provider("").unwrap();
    let provider = &config.providers[0];
    assert_eq!((provider.wire, provider.model_location), (Wire::SystemOne, ModelLocation::Body));
    assert_eq!(provider.response_wrapper, ResponseWrapper::None);
    assert_eq!((&provider.path, &provider.auth_header, &provider.auth_scheme), (&None, &None, &None));
    assert!(provider.headers.is_empty());
    assert_eq!(provider.capabilities, CapabilitySettings::default());
    let endpoint = &config.endpoints[0];
    assert_eq!(endpoint.capabilities, CapabilitySettings::default());
    assert_eq!(endpoint.capabilities.data_policy(), DataPolicy { zdr: false, collects: true });
    assert_eq!((endpoint.quantization, endpoint.chat), (Quantization::Unknown, ChatSettings::default()));
}

#[test]
fn every_http_wire_has_a_name() {
    let wires: Vec<Wire> = Wire::ALL.into_iter().filter(|wire| *wire != Wire::Sandbox).collect();
    for wire in &wires {
        let config = provider(&format!("wire = \"{}\"", wire.as_str())).unwrap();
        assert_eq!(config.providers[0].wire, *wire);
    }
    let (last, others) = wires.split_last().unwrap();
    let others: Vec<&str> = others.iter().map(|wire| wire.as_str()).collect();
    assert_eq!(
        provider_fault("wire = \"sandbox\""),
        format!("tollgate.toml, line 4: providers[0].wire must be {} or {}", others.join(", "), last.as_str())
    );
}

#[test]
fn misspelt_names_are_reported_with_the_nearest_name() {
    for (lines, expected) in [
        ("wire = \"sytem-one\"", "or chat-completions; the nearest is system-one"),
        ("wire = \"openai\"", "chat-completions; the nearest is openai-decisions"),
        ("model_location = \"pth\"", "must be body, path or both; the nearest is path"),
        ("response_wrapper = \"workersai\"", "or databricks; the nearest is workers-ai"),
        ("question_types = [\"chioce\"]", "must hold noul, choice, score or box; the nearest is choice"),
        ("data_collection = \"denny\"", "must be allow, deny or zdr; the nearest is deny"),
    ] {
        let message = provider_fault(lines);
        assert!(message.ends_with(expected), "{lines}: {message}");
    }
    let message = both_fault("", "quantization = \"fp88\"");
    assert!(message.ends_with("; the nearest is fp8"), "{message}");
}

#[test]
fn provider_dialects_are_read() {
    let config = provider(
        "path = \"/ai/run/{model}\"\nmodel_location = \"both\"\nresponse_wrapper = \"workers-ai\"\n\
         auth_header = \"X-Api-Key\"\n\
         auth_scheme = \"\"\nheaders = [\"TypeSafe-Danger-Zone-Images: true\", \"x-region: eu, us\"]",
    );
    let read = config.unwrap().providers.remove(0);
    assert_eq!(read.path.as_deref(), Some("ai/run/{model}"));
    assert_eq!((read.model_location, read.response_wrapper), (ModelLocation::Both, ResponseWrapper::WorkersAi));
    assert_eq!((read.auth_header.as_deref(), read.auth_scheme.as_deref()), (Some("x-api-key"), Some("")));
    let headers = [("typesafe-danger-zone-images", "true"), ("x-region", "eu, us")];
    assert_eq!(read.headers, headers.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let other =
        provider("path = \"serving-endpoints/own/invocations\"\nmodel_location = \"path\"\nauth_scheme = \"Basic\"");
    let other = other.unwrap().providers.remove(0);
    assert_eq!((other.model_location, other.auth_scheme.as_deref()), (ModelLocation::Path, Some("Basic")));
}

#[test]
fn path_must_match_model_location() {
    for (lines, expected) in [
        ("path = \"run/{model}\"", "path has {model}, so model_location must be \"path\" or \"both\""),
        ("path = \"run\"\nmodel_location = \"both\"", "model_location is \"both\", but there is no {model} in path"),
        ("model_location = \"both\"", "there is no {model} in path"),
        ("model_location = \"path\"", "there is no path that could name the model"),
        ("model_location = \"header\"", "model_location must be body, path or both"),
        ("path = \"/\"", "must be a URL path"),
        ("path = \"run/{name}\"", "must be a URL path"),
        ("path = \"a b\"", "must be a URL path"),
        ("path = \"a#b\"", "must be a URL path"),
    ] {
        let message = provider_fault(lines);
        assert!(message.contains(expected) && message.starts_with("tollgate.toml, line "), "{lines}: {message}");
    }
}

#[test]
fn headers_and_schemes_reject_secrets() {
    let message = provider_fault("headers = [\"x-a: 1\", \"X-Api-Key: sk-very-secret\"]");
    assert!(message.starts_with("tollgate.toml, line 4: providers[0].headers must not hold x-api-key"), "{message}");
    assert!(message.contains("api_key names") && !message.contains("sk-very-secret"), "{message}");
    for (lines, expected) in [
        ("headers = [\"x-a: 1\", \"X-A: 2\"]", "has x-a more than once"),
        ("headers = [\"Transfer-Encoding: chunked\"]", "belongs to the connection"),
        ("headers = [\"x-a\"]", "in the form \"name: value\""),
        ("headers = [\"x-a: b\\u0007\"]", "not printable ASCII"),
        ("headers = \"x-a: 1\"", "must be an array of strings"),
        ("auth_header = \"x-mine\"\nheaders = [\"x-mine: 1\"]", "the header of auth_header"),
        ("auth_header = \"host\"", "belongs to the connection"),
        ("auth_header = \"sk-very-secret and more\"", "must be the name of a header"),
        ("auth_header = \"Bearer sk-very-secret\"", "must be the name of a header"),
        ("auth_header = \"proxy-sk-very-secret\"", "must not be proxy-*"),
        ("auth_header = \"sk-9f8e\"\nheaders = [\"sk-9f8e: 1\"]", "the header of auth_header"),
        ("headers = [\"sk-9f8e: 1\", \"sk-9f8e: 2\"]", "has a header more than once"),
        ("headers = [\"Bearer sk-very-secret: 1\"]", "invalid header name"),
        ("auth_scheme = \"Bearer sk-very-secret\"", "must be a word such as Bearer"),
        ("response_wrapper = \"databricks\"\nwire = \"chat-completions\"", "is for the wire system-one"),
    ] {
        let message = provider_fault(lines);
        assert!(message.contains(expected), "{lines}: {message}");
        assert!(!message.contains("sk-very-secret") && !message.contains("sk-9f8e"), "{lines}: {message}");
    }
    let variables = [("TOLLGATE__PROVIDERS__0__HEADERS", "x-a: 1, x-b: 2")];
    assert_eq!(with(&variables, PROVIDER).unwrap().providers[0].headers.len(), 2);
    let variables = [("TOLLGATE__PROVIDERS__0__HEADERS", "cookie: sk-very-secret")];
    let message = with(&variables, PROVIDER).unwrap_err().to_string();
    assert!(message.starts_with("environment variable TOLLGATE__PROVIDERS__0__HEADERS"), "{message}");
    assert!(!message.contains("sk-very-secret"));
}

const ALL_CAPABILITIES: &str = "confidence = \"native\"\nprobability_decimals = 4\nimage_transport = \"assets\"\n\
     question_types = [\"noul\", \"box\"]\n\
     max_questions = 128\nmax_options = 20\nmax_body_bytes = 2_000\nmax_input_tokens = 32768\n\
     data_collection = \"zdr\"\nindependent_questions = true";

#[test]
fn endpoint_inherits_attributes_of_provider() {
    let inherited = both(ALL_CAPABILITIES, "").unwrap().capabilities;
    assert_eq!(inherited, both("", ALL_CAPABILITIES).unwrap().capabilities);
    assert_eq!((inherited.confidence, inherited.independent_questions), (Some(ConfidenceSource::Native), Some(true)));
    assert_eq!((inherited.decimals, inherited.images), (Some(4), Some(AttachmentForm::Assets)));
    assert_eq!(inherited.question_types, Some(vec![QuestionType::Noul, QuestionType::Box]));
    let limits = EndpointLimits {
        max_questions: Some(128),
        max_options: Some(20),
        max_levels: Some(20),
        max_body_bytes: Some(2_000),
        max_input_tokens: Some(32_768),
    };
    assert_eq!((inherited.limits, inherited.data_policy()), (limits, DataPolicy { zdr: true, collects: false }));
    let own = both(
        ALL_CAPABILITIES,
        "confidence = \"computed\"\nprobability_decimals = 1\nimage_transport = \"none\"\n\
         question_types = [\"score\", \"score\"]\n\
         max_questions = 1",
    );
    let own = own.unwrap().capabilities;
    assert_eq!((own.confidence, own.decimals), (Some(ConfidenceSource::Computed), Some(1)));
    assert_eq!((own.images, own.question_types), (Some(AttachmentForm::None), Some(vec![QuestionType::Score])));
    assert_eq!((own.limits.max_questions, own.limits.max_options), (Some(1), Some(20)));
    assert_eq!(own.data_policy, Some(DataPolicy { zdr: true, collects: false }));
}

#[test]
fn zero_retention_implies_no_data_collection() {
    let policy =
        |of_provider: &str, of_endpoint: &str| both(of_provider, of_endpoint).unwrap().capabilities.data_policy();
    assert_eq!(policy("data_collection = \"zdr\"", ""), DataPolicy { zdr: true, collects: false });
    assert_eq!(
        policy("data_collection = \"allow\"", "data_collection = \"zdr\""),
        DataPolicy { zdr: true, collects: false }
    );
    assert_eq!(policy("data_collection = \"deny\"", ""), DataPolicy { zdr: false, collects: false });
    let message = both_fault("data_collection = \"sometimes\"", "");
    assert!(message.contains("must be allow, deny or zdr"), "{message}");
    let names = ["allow", "deny", "zdr"];
    for (least, of_provider) in names.iter().enumerate() {
        for (own, of_endpoint) in names.iter().enumerate() {
            let line = |name: &str| format!("data_collection = \"{name}\"");
            let read = both(&line(of_provider), &line(of_endpoint));
            if own >= least {
                assert_eq!(read.unwrap().capabilities, both("", &line(of_endpoint)).unwrap().capabilities);
                continue;
            }
            let expected = format!(
                "tollgate.toml, line 9: endpoints[0].data_collection is \"{of_endpoint}\", but the provider \
                 typesafe has data_collection = \"{of_provider}\", which must not be weakened"
            );
            assert_eq!(read.unwrap_err().to_string(), expected);
        }
    }
}

#[test]
fn capability_error_names_origin_when_value_does_not_fit() {
    for (of_provider, of_endpoint, expected) in [
        ("probability_decimals = 0", "", "tollgate.toml, line 4: providers[0].probability_decimals must be 1 to 15"),
        ("", "probability_decimals = 16", "tollgate.toml, line 9: endpoints[0].probability_decimals must be 1 to 15"),
        ("", "max_questions = 0", "max_questions must be 1 to"),
        ("", "max_options = 256", "max_options must be 1 to 255"),
        ("", "max_input_tokens = 0", "max_input_tokens must be 1 to"),
        ("", "max_body_bytes = 2000000000000", "max_body_bytes must be 1 to"),
        ("", "confidence = \"entropy\"", "confidence must be system-one, computed or native"),
        ("", "image_transport = \"png\"", "image_transport must be none, assets, images or input"),
        (
            "",
            "image_transport = \"input\"",
            "image_transport is \"input\", but the wire system-one supports none, assets or images only",
        ),
        ("wire = \"chat-completions\"", "image_transport = \"images\"", "the wire chat-completions supports none only"),
        ("wire = \"sglang-decisions\"\nimage_transport = \"assets\"", "", "supports none or images only"),
        ("wire = \"gemini-decisions\"\nimage_transport = \"images\"", "", "supports none or input only"),
        ("", "question_types = []", "must not be empty"),
        ("", "question_types = [\"yes\"]", "must hold noul, choice, score or box"),
        (
            "wire = \"openai-decisions\"",
            "question_types = [\"box\"]",
            "which the wire openai-decisions does not support",
        ),
        ("", "quantization = \"int3\"", "quantization must be int4, int8"),
        ("", "zdr = true", "unknown key endpoints.zdr"),
        ("quantization = \"int4\"", "", "unknown key providers.quantization"),
        ("", "max_question = 1", "the nearest known one is endpoints.max_questions"),
    ] {
        let message = both_fault(of_provider, of_endpoint);
        assert!(message.contains(expected), "{of_provider} {of_endpoint}: {message}");
    }
    let wires = [("system-one", "images"), ("sglang-decisions", "images"), ("openai-decisions", "input")];
    for (wire, images) in wires {
        let lines = format!("wire = \"{wire}\"\nimage_transport = \"{images}\"");
        assert_eq!(both(&lines, "").unwrap().capabilities.images.unwrap().as_str(), images);
    }
    assert_eq!(both("", "quantization = \"fp8\"").unwrap().quantization, Quantization::Fp8);
}

#[test]
fn chat_endpoint_has_method() {
    const CHAT: &str = "wire = \"chat-completions\"";
    let chat = |lines: &str| both(CHAT, lines).unwrap().chat;
    assert_eq!(chat(""), ChatSettings::default());
    let all = chat("method = \"logprobs\"\ntemperature = \"1.35\"\ntop_logprobs = 64");
    let expected = ChatSettings {
        method: ChatMethod::Logprobs,
        temperature_milli: 1_350,
        min_label_probability_milli: 500,
        top_logprobs: 64,
    };
    assert_eq!(all, expected);
    assert_eq!(chat("method = \"structured\"\ntemperature = \"20\"").temperature_milli, 20_000);
    assert_eq!(chat("temperature = \"0.05\"").temperature_milli, 50);
    for (lines, expected) in [
        ("method = \"guess\"", "method must be auto, logprobs or structured"),
        ("temperature = \"0.049\"", "temperature must be a decimal number from 0.05 to 20 with"),
        ("temperature = \"20.001\"", "temperature must be a decimal number from 0.05 to 20 with"),
        ("temperature = 1", "must be a string"),
        ("top_logprobs = 1", "top_logprobs must be 2 to 255"),
        ("top_logprobs = 256", "top_logprobs must be 2 to 255"),
        ("method = \"structured\"\ntop_logprobs = 5", "top_logprobs has no meaning beside method = \"structured\""),
    ] {
        let message = both_fault(CHAT, lines);
        assert!(message.contains(expected), "{lines}: {message}");
    }
    for key in ["method = \"auto\"", "temperature = \"1\"", "top_logprobs = 20"] {
        let message = both_fault("wire = \"openai-decisions\"", key);
        assert!(
            message.contains("is for the wire chat-completions; the provider speaks openai-decisions"),
            "{message}"
        );
    }
}
