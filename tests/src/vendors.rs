//! Simulated providers of every wire, after their public descriptions. Each reads requests by its own rules, responds
//! 400 to invalid ones, and gives the same answers to the same three questions.
//!
//! The answers: `refund` is yes with 0.93; `queue` is billing with 0.8, 0.15 and 0.05; `heat` is 1.5 on three levels
//! with 0.1, 0.3 and 0.6.

use serde_json::{Map, Value, json};

use crate::Recorded;

/// The probability of yes for `refund`.
pub const REFUND: f64 = 0.93;
/// The probabilities of the three options of `queue`, in their order.
pub const QUEUE: [f64; 3] = [0.8, 0.15, 0.05];
/// The probabilities of the three levels of `heat`.
pub const HEAT: [f64; 3] = [0.1, 0.3, 0.6];
/// The expectation of [`HEAT`].
pub const HEAT_SCORE: f64 = 1.5;
/// System One's confidence in [`QUEUE`]: (3 x 0.8 - 1) / 2.
pub const QUEUE_CONFIDENCE: f64 = 0.7;
/// System One's confidence in [`HEAT`]: 1 - (0.1 x 2 + 0.3 x 1) / (2 / 3).
pub const HEAT_CONFIDENCE: f64 = 0.25;

type Spoken = (u16, String);

fn refused(why: &str) -> Spoken {
    (400, json!({"error": {"message": why}}).to_string())
}

fn read(request: &Recorded) -> Result<Value, Spoken> {
    serde_json::from_slice(&request.body).map_err(|_| refused("no JSON"))
}

fn said(answer: Result<Value, Spoken>) -> Spoken {
    answer.map_or_else(|refused| refused, |body| (200, body.to_string()))
}

fn demand(holds: bool, what: &str) -> Result<(), Spoken> {
    if holds { Ok(()) } else { Err(refused(what)) }
}

fn keyed(names: impl IntoIterator<Item = String>, numbers: &[f64]) -> Value {
    Value::Object(names.into_iter().zip(numbers).map(|(name, number)| (name, json!(number))).collect())
}

fn levels() -> impl Iterator<Item = String> {
    (0..HEAT.len()).map(|level| level.to_string())
}

/// Returns the options of `queue`. Vendors choose distributions by the number of outcomes and need no names.
fn queue_options(question: &Value) -> Result<Vec<String>, Spoken> {
    let options = question["criteria"].as_object().ok_or_else(|| refused("a choice needs criteria"))?;
    demand(options.len() == QUEUE.len(), "three options were asked")?;
    // In the order of the test's question, which a map does not preserve.
    Ok(["billing", "hardware", "other"].map(str::to_owned).into())
}

/// Responds as System One.
pub fn system_one(request: &Recorded) -> Spoken {
    said(read(request).and_then(|body| {
        demand(body["model"].is_string() && !body["state"].is_null(), "model and state are required")?;
        let questions = body["questions"].as_object().ok_or_else(|| refused("questions are a map"))?;
        let mut answers = Map::new();
        for (name, question) in questions {
            let answer = match question["type"].as_str() {
                Some("noul") => json!({"type": "noul", "noul": REFUND}),
                Some("choice") => json!({"type": "choice", "choice": "billing", "confidence": QUEUE_CONFIDENCE,
                    "probabilities": keyed(queue_options(question)?, &QUEUE)}),
                Some("score") => json!({"type": "score", "score": HEAT_SCORE, "confidence": HEAT_CONFIDENCE,
                    "legend": {"0": "calm", "1": "annoyed", "2": "furious"},
                    "probabilities": keyed(levels(), &HEAT)}),
                _ => return Err(refused("no such type")),
            };
            answers.insert(name.clone(), answer);
        }
        Ok(json!({"model": "vendor-1", "answers": answers, "usage": {"input_tokens": 100, "output_tokens": 3}}))
    }))
}

/// Responds as OpenAI Decisions.
pub fn openai(request: &Recorded) -> Spoken {
    said(read(request).and_then(|body| {
        demand(body["input"].is_string() || body["input"].is_array(), "input is a string or items")?;
        let questions = body["questions"].as_array().ok_or_else(|| refused("questions are an array"))?;
        let mut answers = Vec::new();
        for question in questions {
            demand(question["instructions"].is_string() || question["instructions"].is_array(), "instructions")?;
            let name = &question["name"];
            answers.push(match question["type"].as_str() {
                Some("predicate") => {
                    demand(question.get("criteria").is_none(), "a predicate has no criteria")?;
                    json!({"type": "predicate", "name": name, "probability": REFUND})
                }
                Some("choice") => {
                    let choices = question["choices"].as_array().ok_or_else(|| refused("choices"))?;
                    demand(choices.len() == QUEUE.len(), "three choices were asked")?;
                    let values = choices.iter().zip(QUEUE);
                    let probabilities: Vec<Value> =
                        values.map(|(choice, p)| json!({"value": choice["value"], "probability": p})).collect();
                    json!({"type": "choice", "name": name, "choice": choices[0]["value"], "confidence": 0.42,
                        "probabilities": probabilities})
                }
                Some("score") => {
                    let levels = question["levels"].as_array().ok_or_else(|| refused("levels"))?;
                    demand(levels.iter().all(|level| level["label"].is_string()), "a level has a label")?;
                    let levels = levels.iter().zip(HEAT).enumerate();
                    let probabilities: Vec<Value> = levels
                        .map(|(value, (level, p))| json!({"value": value, "label": level["label"], "probability": p}))
                        .collect();
                    json!({"type": "score", "name": name, "score": HEAT_SCORE, "confidence": 0.42,
                        "probabilities": probabilities})
                }
                _ => return Err(refused("no such type")),
            });
        }
        Ok(json!({"model": "vendor-1", "answers": answers,
            "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 103}}))
    }))
}

/// Responds as Gemini Decisions.
pub fn gemini(request: &Recorded) -> Spoken {
    said(read(request).and_then(|body| {
        demand(body["input"].is_string() || body["input"].is_array(), "input is a string or parts")?;
        let questions = body["questions"].as_object().ok_or_else(|| refused("questions are a map"))?;
        let mut answers = Map::new();
        for (name, question) in questions {
            demand(question["instructions"].is_string(), "instructions are a string")?;
            let answer = match question["type"].as_str() {
                Some("noul") => json!({"type": "noul", "noul": REFUND, "confidence": REFUND}),
                Some("choice") => json!({"type": "choice", "choice": "billing", "confidence": QUEUE[0],
                    "probabilities": keyed(queue_options(question)?, &QUEUE)}),
                Some("score") => json!({"type": "score", "score": HEAT_SCORE, "confidence": HEAT[2],
                    "probabilities": keyed(levels(), &HEAT)}),
                _ => return Err(refused("no such type")),
            };
            answers.insert(name.clone(), answer);
        }
        Ok(json!({"answers": answers,
            "usage": {"total_input_tokens": 100, "total_output_tokens": 3, "total_tokens": 103}}))
    }))
}

/// Responds as SGLang's native wire.
pub fn sglang(request: &Recorded) -> Spoken {
    said(read(request).and_then(|body| {
        demand(!body["input"].is_null(), "input is required")?;
        let known = ["model", "input", "questions", "images", "temperature", "prompt_format_version"];
        let members = body.as_object().ok_or_else(|| refused("no object"))?;
        demand(members.keys().all(|name| known.contains(&name.as_str())), "extra fields are forbidden")?;
        let questions = body["questions"].as_array().ok_or_else(|| refused("questions are an array"))?;
        let mut answers = Map::new();
        for question in questions {
            let id = question["id"].as_str().ok_or_else(|| refused("id"))?;
            demand(question["question"].is_string(), "question")?;
            let answer = match question["type"].as_str() {
                Some("yes_no") => json!({"type": "yes_no", "probabilities": {"yes": REFUND, "no": 0.07},
                    "label_mass": 0.98}),
                Some("choice") => {
                    let options = question["options"].as_array().ok_or_else(|| refused("options"))?;
                    let names: Option<Vec<String>> =
                        options.iter().map(|option| option["name"].as_str().map(str::to_owned)).collect();
                    let names = names.ok_or_else(|| refused("an option has a name"))?;
                    json!({"type": "choice", "choice": names[0], "probabilities": keyed(names, &QUEUE),
                        "label_mass": 0.98})
                }
                Some("score") => {
                    demand(question["levels"].as_array().is_some_and(|levels| levels.len() == 3), "levels")?;
                    json!({"type": "score", "score": HEAT_SCORE, "probabilities": keyed(levels(), &HEAT),
                        "label_mass": 0.98})
                }
                _ => return Err(refused("no such type")),
            };
            answers.insert(id.to_owned(), answer);
        }
        Ok(json!({"object": "decisions", "model": "vendor-1", "prompt_format_version": 1, "answers": answers,
            "usage": {"prompt_tokens": 100, "total_tokens": 103}}))
    }))
}

fn chat_user(body: &Value) -> Result<&str, Spoken> {
    let messages = body["messages"].as_array().ok_or_else(|| refused("messages"))?;
    let user = messages.iter().find(|message| message["role"] == "user").ok_or_else(|| refused("a user message"))?;
    user["content"].as_str().ok_or_else(|| refused("content"))
}

fn completion(message: &Value, logprobs: &Value) -> Value {
    json!({"id": "c", "object": "chat.completion", "model": "vendor-1",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message, "logprobs": logprobs}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 3, "total_tokens": 103}})
}

/// Responds as a chat model whose server returns log-probabilities, with the labels found in the prompt.
pub fn chat_logprobs(request: &Recorded) -> Spoken {
    said(read(request).and_then(|body| {
        demand(body["max_tokens"] == 1 && body["logprobs"] == true, "one token, with logprobs")?;
        let user = chat_user(&body)?;
        let labels: Vec<&str> = user.split("<option label=\"").skip(1).filter_map(|rest| rest.get(..1)).collect();
        let numbers: &[f64] = match labels.first() {
            Some(&"0") => &HEAT,
            Some(_) if labels.len() == 2 => &[REFUND, 1.0 - REFUND],
            Some(_) => &QUEUE,
            None => return Err(refused("no options are offered")),
        };
        demand(labels.len() == numbers.len(), "as many options as were asked")?;
        // A small part of the probability belongs to other tokens, as in reality.
        let top: Vec<Value> = labels
            .iter()
            .zip(numbers)
            .map(|(label, p)| json!({"token": format!(" {label}"), "logprob": (p * 0.98).ln(), "bytes": null}))
            .chain([json!({"token": "The", "logprob": 0.02_f64.ln(), "bytes": null})])
            .collect();
        let first = format!(" {}", labels[0]);
        let logprobs = json!({"content": [{"token": first, "logprob": (numbers[0] * 0.98).ln(), "bytes": null,
            "top_logprobs": top}]});
        Ok(completion(&json!({"role": "assistant", "content": first}), &logprobs))
    }))
}

/// Responds as a chat model that states probabilities under the keys found in the prompt.
pub fn chat_structured(request: &Recorded) -> Spoken {
    said(read(request).and_then(|body| {
        demand(body["response_format"]["type"] == "json_schema", "structured output was asked for")?;
        let user = chat_user(&body)?;
        let mut stated = Map::new();
        for question in user.split("<question key=\"").skip(1) {
            let key = question.split('"').next().unwrap_or_default();
            let options = question.split("</question>").next().unwrap_or_default();
            let keys = (0..3).map(|option| format!("o{option}"));
            let probabilities = match options.matches("<option key=").count() {
                0 => json!(REFUND),
                _ if options.contains("furious") => keyed(keys, &HEAT),
                _ => keyed(keys, &QUEUE),
            };
            stated.insert(key.to_owned(), probabilities);
        }
        let content = Value::Object(stated).to_string();
        Ok(completion(&json!({"role": "assistant", "content": content, "refusal": null}), &Value::Null))
    }))
}
