//! A scripted chat server, and a model with a known distribution.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adapters_provider::ProviderSettings;
use domain::decision::{DecisionProvider, NeverDisconnects, ProviderAnswer, ProviderCall, SentBytes};
use domain::json::Json;
use domain::question::ProviderInput;
use domain::routing::{AttemptFailure, ChatMethod, ChatSettings, Endpoint, Wire};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::support::{self, AMPLE, Upstream};

/// The server's reaction to a request.
pub enum Does {
    Answer(u16, Value),
    /// The same after a tenth of a second.
    Late(u16, Value),
    Stall,
    Close,
}

/// A server with a script that receives the index and the body of each request.
pub struct Server {
    upstream: Upstream,
    pub bodies: UnboundedReceiver<Value>,
    pub most_at_once: Arc<AtomicUsize>,
    provider: Arc<dyn DecisionProvider>,
}

impl Server {
    pub async fn start(script: impl Fn(usize, &Value) -> Does + Send + Sync + 'static) -> Self {
        let (tell, bodies) = unbounded_channel();
        let (script, seen) = (Arc::new(script), Arc::new(AtomicUsize::new(0)));
        let most_at_once = Arc::new(AtomicUsize::new(0));
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&most_at_once));
        let upstream = Upstream::start(move |mut socket| {
            let (tell, script, seen) = (tell.clone(), Arc::clone(&script), Arc::clone(&seen));
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            async move {
                while let Some((_, body)) = support::read_request(&mut socket).await {
                    let body: Value = serde_json::from_slice(&body).unwrap();
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    let does = script(seen.fetch_add(1, Ordering::SeqCst), &body);
                    let _ = tell.send(body);
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    if matches!(does, Does::Late(..)) {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    match does {
                        Does::Answer(status, body) | Does::Late(status, body) => {
                            let answer = http(status, &body.to_string());
                            if socket.write_all(answer.as_bytes()).await.is_err() {
                                break;
                            }
                        }
                        Does::Stall => support::closed(&mut socket).await,
                        Does::Close => break,
                    }
                }
            }
        })
        .await;
        let settings = ProviderSettings::new("acme".parse().unwrap(), upstream.base_url(), Wire::ChatCompletions);
        let provider = support::provider_of(&support::settings(), Wire::ChatCompletions, settings);
        Self { upstream, bodies, most_at_once, provider }
    }

    /// A model with a known likelihood for each option text, for [`label_answer`] and structured answers.
    pub async fn of_model(likely: impl Fn(&str) -> f64 + Send + Sync + 'static) -> Self {
        Self::start(move |_, body| {
            let answer = if body["logprobs"] == true { label_answer(body, &likely) } else { stated_answer(body) };
            Does::Answer(200, answer)
        })
        .await
    }

    pub fn provider(&self) -> &dyn DecisionProvider {
        self.provider.as_ref()
    }

    pub fn base_url(&self) -> String {
        self.upstream.base_url()
    }

    pub async fn decide(
        &self,
        provider_input: &Arc<ProviderInput>,
        chat: ChatSettings,
    ) -> Result<ProviderAnswer, AttemptFailure> {
        self.provider.decide(call(provider_input, chat, AMPLE)).await
    }

    pub async fn decide_within(
        &self,
        provider_input: &Arc<ProviderInput>,
        chat: ChatSettings,
        timeout: Duration,
    ) -> Result<ProviderAnswer, AttemptFailure> {
        self.provider.decide(call(provider_input, chat, timeout)).await
    }

    /// Returns the bodies received since the last call.
    pub fn requests(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.bodies.try_recv().ok()).collect()
    }
}

pub fn call(provider_input: &Arc<ProviderInput>, chat: ChatSettings, timeout: Duration) -> ProviderCall {
    let endpoint = Endpoint { chat, ..support::endpoint_of(Wire::ChatCompletions) };
    ProviderCall {
        endpoint: Arc::new(endpoint),
        provider_input: Arc::clone(provider_input),
        timeout,
        client: Arc::new(NeverDisconnects),
        sent: SentBytes::default(),
    }
}

pub fn by(method: ChatMethod) -> ChatSettings {
    ChatSettings { method, ..ChatSettings::default() }
}

fn http(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} .\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

pub fn user_message(body: &Value) -> &str {
    body["messages"][1]["content"].as_str().unwrap()
}

/// Returns the labels and texts that a request offers.
pub fn offered(body: &Value) -> Vec<(String, String)> {
    user_message(body)
        .split("<option label=\"")
        .skip(1)
        .map(|rest| {
            let (label, rest) = rest.split_once("\">").unwrap();
            (label.to_owned(), rest.split_once("</option>").unwrap().0.to_owned())
        })
        .collect()
}

/// Builds a first token from the likelihood of the offered options: 98 % on the labels, each in three spellings, and
/// the rest on a word; cut to the requested number.
pub fn label_answer(body: &Value, likely: &impl Fn(&str) -> f64) -> Value {
    let offered = offered(body);
    let sum: f64 = offered.iter().map(|(_, text)| likely(text)).sum();
    let mut tokens = vec![("The".to_owned(), 0.02)];
    for (label, text) in &offered {
        let probability = 0.98 * likely(text) / sum;
        // Digits have no lower case, and a token must not repeat.
        let spellings =
            [(label.clone(), 0.97), (format!(" {label}"), 0.02), (format!("\u{2581}{}", label.to_lowercase()), 0.01)];
        tokens.extend(spellings.map(|(token, share)| (token, probability * share)));
    }
    tokens.sort_by(|a, b| b.1.total_cmp(&a.1));
    tokens.truncate(usize::try_from(body["top_logprobs"].as_u64().unwrap()).unwrap());
    of_tokens(&tokens)
}

pub fn of_tokens(tokens: &[(String, f64)]) -> Value {
    let top: Vec<Value> = tokens.iter().map(|(token, p)| json!({"token": token, "logprob": p.ln()})).collect();
    let content = json!([{"token": tokens[0].0, "logprob": tokens[0].1.ln(), "top_logprobs": top}]);
    json!({
        "choices": [{"message": {"role": "assistant", "content": tokens[0].0}, "logprobs": {"content": content}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 1},
    })
}

/// Builds an object of probabilities: 0.75 for yes, and ratios 1, 2, 3 and so on for options.
pub fn stated_answer(body: &Value) -> Value {
    let members = user_message(body).rsplit_once("of these members:").unwrap().1;
    let mut stated = serde_json::Map::new();
    for line in members.trim().lines() {
        let (key, wanted) = line.split_once(": ").unwrap();
        let value = match wanted.split_once("\"o0\" to \"o") {
            None => json!(0.75),
            Some((_, last)) => {
                let last: usize = last.trim_end_matches('"').parse().unwrap();
                let options = (0..=last).map(|option| (format!("o{option}"), json!(option + 1)));
                Value::Object(options.collect())
            }
        };
        stated.insert(key.trim_matches('"').to_owned(), value);
    }
    saying(&Value::Object(stated).to_string())
}

pub fn saying(content: &str) -> Value {
    json!({
        "choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 300, "completion_tokens": 40},
    })
}

pub fn error(message: &str) -> Value {
    json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": null}})
}

/// Returns the answer to a question.
pub fn answer_to(answer: &ProviderAnswer, name: &str) -> Value {
    serde_json::from_str::<Value>(answer.answers.text()).unwrap()[name].clone()
}

pub fn names(answer: &ProviderAnswer) -> Vec<String> {
    answer.answers.members().unwrap().into_iter().map(|(name, _)| name).collect()
}

/// Returns a distribution in ten-thousandths, by name.
pub fn units(answer: &Value) -> Vec<(String, u32)> {
    let probabilities = answer["probabilities"].as_object().unwrap();
    probabilities
        .iter()
        .map(|(name, value)| {
            let number = value.as_f64().unwrap() * 10_000.0;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 10 000")]
            (name.clone(), number.round() as u32)
        })
        .collect()
}

pub fn choice_of(options: usize) -> Arc<ProviderInput> {
    let options: Vec<String> = (0..options).map(|option| format!("\"n{option:03}\":null")).collect();
    let criteria = Json::parse(&format!("{{{}}}", options.join(","))).unwrap();
    support::provider_input(&format!(
        r#"{{"model":"m","state":"s","questions":{{"q":{{"type":"choice","criteria":{}}}}}}}"#,
        criteria.text()
    ))
}
