//! Every inbound wire with every outbound wire: the same questions get the same answers, in the format of the inbound
//! wire.

use std::fmt::Write;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tollgate_tests::vendors::{self, HEAT, HEAT_CONFIDENCE, HEAT_SCORE, QUEUE, QUEUE_CONFIDENCE, REFUND};
use tollgate_tests::{Behaviour, Call, Recorded, Report, Upstream};

use crate::gateway::TestGateway;

/// An outbound wire: its name, its simulated provider, and further provider settings.
type Out = (&'static str, fn(&Recorded) -> (u16, String), &'static str);

const OUT: [Out; 6] = [
    ("system-one", vendors::system_one, ""),
    ("openai-decisions", vendors::openai, ""),
    ("gemini-decisions", vendors::gemini, ""),
    ("sglang-decisions", vendors::sglang, ""),
    ("chat-completions", vendors::chat_logprobs, "method = \"logprobs\""),
    ("chat-completions", vendors::chat_structured, "method = \"structured\""),
];

/// An inbound wire: its name, its path, a body with a question of each type, and a reader of its responses.
struct In {
    name: &'static str,
    path: &'static str,
    body: fn(&str, &[Value]) -> Value,
    question: fn(&str) -> Value,
    read: fn(&Value, &str) -> Result<ExtractedAnswer>,
}

/// The content of an answer in any format.
#[derive(Debug, PartialEq)]
struct ExtractedAnswer {
    value: f64,
    chosen: Option<String>,
    distribution: Vec<f64>,
    confidence: Option<f64>,
}

const IN: [In; 8] = [
    In {
        name: "contract",
        path: "/api/v1/api/alpha/decisions",
        body: system_one_body,
        question: system_one,
        read: read_map,
    },
    In {
        name: "contract at the root",
        path: "/api/alpha/decisions",
        body: system_one_body,
        question: system_one,
        read: read_map,
    },
    In { name: "System One", path: "/v1/systemone", body: system_one_body, question: system_one, read: read_map },
    In {
        name: "System One below the base",
        path: "/api/v1/systemone",
        body: system_one_body,
        question: system_one,
        read: read_map,
    },
    In {
        name: "System One by shape",
        path: "/v1/decisions",
        body: system_one_body,
        question: system_one,
        read: read_map,
    },
    In { name: "OpenAI", path: "/v1/decisions", body: array_body, question: openai, read: read_openai },
    In { name: "Gemini", path: "/v1beta/decisions", body: gemini_body, question: gemini, read: read_map },
    In { name: "SGLang", path: "/v1/decisions", body: array_body, question: sglang, read: read_sglang },
];

const STATE: &str = "The blender smokes. I want my money back.";

fn map(questions: &[Value]) -> Value {
    let member = |question: &Value| {
        let mut question = question.clone();
        let name = question.as_object_mut().and_then(|members| members.remove("name"));
        (name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default(), question)
    };
    Value::Object(questions.iter().map(member).collect())
}

fn system_one_body(model: &str, questions: &[Value]) -> Value {
    json!({"model": model, "state": STATE, "questions": map(questions)})
}

fn gemini_body(model: &str, questions: &[Value]) -> Value {
    json!({"model": model, "input": [{"type": "text", "text": STATE}], "questions": map(questions)})
}

fn array_body(model: &str, questions: &[Value]) -> Value {
    json!({"model": model, "input": STATE, "questions": questions})
}

fn system_one(kind: &str) -> Value {
    match kind {
        "noul" => json!({"name": "refund", "type": "noul", "instructions": "Does the writer want a refund?",
            "criteria": {"true": "asks for money back", "false": "anything else"}}),
        "choice" => json!({"name": "queue", "type": "choice", "instructions": "Who handles it?",
            "criteria": {"billing": "money", "hardware": "device faults", "other": null}}),
        _ => json!({"name": "heat", "type": "score", "instructions": "How upset?",
            "criteria": ["calm", "annoyed", "furious"]}),
    }
}

fn gemini(kind: &str) -> Value {
    let mut question = system_one(kind);
    if kind == "noul" {
        question["criteria"] = json!({"true_description": "asks for money back", "false_description": "anything else"});
    }
    question
}

fn openai(kind: &str) -> Value {
    match kind {
        "noul" => json!({"name": "refund", "type": "predicate", "instructions": "The writer wants a refund."}),
        "choice" => json!({"name": "queue", "type": "choice", "instructions": "Who handles it?", "choices": [
            {"value": "billing", "description": "money"}, {"value": "hardware", "description": "device faults"},
            {"value": "other"}]}),
        _ => json!({"name": "heat", "type": "score", "instructions": "How upset?",
            "levels": [{"label": "calm"}, {"label": "annoyed"}, {"label": "furious"}]}),
    }
}

fn sglang(kind: &str) -> Value {
    match kind {
        "noul" => json!({"id": "refund", "type": "yes_no", "question": "Does the writer want a refund?",
            "yes": "asks for money back", "no": "anything else"}),
        "choice" => json!({"id": "queue", "type": "choice", "question": "Who handles it?", "options": [
            {"name": "billing", "description": "money"}, {"name": "hardware", "description": "device faults"},
            {"name": "other"}]}),
        _ => json!({"id": "heat", "type": "score", "question": "How upset?", "levels": ["calm", "annoyed", "furious"]}),
    }
}

const OPTIONS: [&str; 3] = ["billing", "hardware", "other"];
const LEVELS: [&str; 3] = ["0", "1", "2"];

fn name_of(kind: &str) -> &'static str {
    match kind {
        "noul" => "refund",
        "choice" => "queue",
        _ => "heat",
    }
}

fn numbers(distribution: &Value, names: [&str; 3]) -> Result<Vec<f64>> {
    names
        .iter()
        .map(|name| distribution[*name].as_f64().with_context(|| format!("no {name} in {distribution}")))
        .collect()
}

fn read_map(answer: &Value, kind: &str) -> Result<ExtractedAnswer> {
    let answers = answer["answers"].as_object().with_context(|| format!("no answers in {answer}"))?;
    ensure!(answers.len() == 1, "{answer}");
    extract_answer(&answers[name_of(kind)], kind, kind, "noul")
}

fn read_sglang(answer: &Value, kind: &str) -> Result<ExtractedAnswer> {
    ensure!(answer["object"] == "decisions", "{answer}");
    let answer = &answer["answers"][name_of(kind)];
    if kind == "noul" {
        ensure!(answer["type"] == "yes_no", "{answer}");
        let value = answer["probabilities"]["yes"].as_f64().context("yes")?;
        return Ok(ExtractedAnswer { value, chosen: None, distribution: Vec::new(), confidence: None });
    }
    // The wire has no confidence.
    let extracted = extract_answer(answer, kind, kind, "")?;
    Ok(ExtractedAnswer { confidence: None, ..extracted })
}

fn extract_answer(answer: &Value, kind: &str, type_name: &str, noul: &str) -> Result<ExtractedAnswer> {
    ensure!(answer["type"] == type_name, "{answer}");
    let confidence = answer["confidence"].as_f64();
    Ok(match kind {
        "noul" => {
            let value = answer[noul].as_f64().with_context(|| format!("{answer}"))?;
            ExtractedAnswer { value, chosen: None, distribution: Vec::new(), confidence: None }
        }
        "choice" => ExtractedAnswer {
            value: 0.0,
            chosen: answer["choice"].as_str().map(str::to_owned),
            distribution: numbers(&answer["probabilities"], OPTIONS)?,
            confidence,
        },
        _ => ExtractedAnswer {
            value: answer["score"].as_f64().with_context(|| format!("{answer}"))?,
            chosen: None,
            distribution: numbers(&answer["probabilities"], LEVELS)?,
            confidence,
        },
    })
}

fn read_openai(answer: &Value, kind: &str) -> Result<ExtractedAnswer> {
    let answers = answer["answers"].as_array().with_context(|| format!("no answers in {answer}"))?;
    let [one] = &answers[..] else { bail!("{} answers to one question", answers.len()) };
    ensure!(one["name"] == name_of(kind), "{one}");
    let distribution: Vec<f64> = one["probabilities"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry["probability"].as_f64())
        .collect();
    let confidence = one["confidence"].as_f64();
    let (type_name, value) = match kind {
        "noul" => ("predicate", &one["probability"]),
        "choice" => ("choice", &json!(0.0)),
        _ => ("score", &one["score"]),
    };
    ensure!(one["type"] == type_name, "{one}");
    let value = value.as_f64().with_context(|| format!("{one}"))?;
    Ok(ExtractedAnswer { value, chosen: one["choice"].as_str().map(str::to_owned), distribution, confidence })
}

fn config(upstreams: &[Upstream]) -> Result<String> {
    let mut toml = String::new();
    for (index, ((wire, _, more), upstream)) in OUT.iter().zip(upstreams).enumerate() {
        write!(
            toml,
            "[[providers]]\nslug = \"p{index}\"\nwire = \"{wire}\"\nbase_url = \"{}\"\n\
             [[endpoints]]\nmodel = \"acme/m{index}\"\nprovider = \"p{index}\"\nupstream_model = \"vendor-1\"\n\
             input_usd_per_million_tokens = \"1\"\noutput_usd_per_million_tokens = \"0\"\n{more}\n",
            upstream.base_url()
        )?;
    }
    Ok(toml)
}

/// Starts a provider of each outbound wire, and a gateway with the model `acme/m` and its index for each.
async fn start() -> Result<(TestGateway, Vec<Upstream>)> {
    let mut upstreams = Vec::new();
    for (_, speaks, _) in OUT {
        upstreams.push(Upstream::start(Behaviour::Speak(speaks)).await?);
    }
    Ok((TestGateway::start(&config(&upstreams)?).await?, upstreams))
}

#[tokio::test]
async fn inbound_wires_get_same_answers_from_all_outbound_wires() -> Result<()> {
    let (gateway, _upstreams) = start().await?;
    let mut report = Report::default();
    for wire_in in &IN {
        for (index, (wire_out, _, more)) in OUT.iter().enumerate() {
            for kind in ["noul", "choice", "score"] {
                let body = (wire_in.body)(&format!("acme/m{index}"), &[(wire_in.question)(kind)]);
                let call = Call::post(wire_in.path).key(&gateway.inference.secret).json(body.to_string());
                let reply = gateway.server.send(&call).await?;
                let label = format!("{} -> {wire_out} {more}, {kind}", wire_in.name);
                let outcome = reply
                    .ok()
                    .and_then(|answer| (wire_in.read)(&answer, kind))
                    .and_then(|extracted| same(&extracted, kind));
                report.case(&label, outcome);
            }
        }
    }
    report.finish()
}

/// Checks that the answer equals the vendors' within rounding; a confidence must be System One's.
fn same(extracted: &ExtractedAnswer, kind: &str) -> Result<()> {
    let close = |a: f64, b: f64| (a - b).abs() < 0.006;
    let all_close = |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(*a, *b));
    let confident = |expected: f64| extracted.confidence.is_none_or(|confidence| close(confidence, expected));
    let fits = match kind {
        "noul" => close(extracted.value, REFUND),
        "choice" => {
            extracted.chosen.as_deref() == Some("billing")
                && all_close(&extracted.distribution, &QUEUE)
                && confident(QUEUE_CONFIDENCE)
        }
        _ => {
            close(extracted.value, HEAT_SCORE)
                && all_close(&extracted.distribution, &HEAT)
                && confident(HEAT_CONFIDENCE)
        }
    };
    ensure!(fits, "{extracted:?}");
    Ok(())
}

#[tokio::test]
async fn evidence_has_the_method_and_the_probabilities_of_every_outbound_wire() -> Result<()> {
    let (gateway, _upstreams) = start().await?;
    let questions = map(&["noul", "choice", "score"].map(system_one));
    let mut report = Report::default();
    for (index, (wire, _, more)) in OUT.iter().enumerate() {
        let expected = match *more {
            "" => "native",
            more if more.contains("logprobs") => "label_probabilities",
            _ => "stated",
        };
        let rows = evidence(&gateway, index, &questions).await;
        report.case(&format!("{wire} {more}"), rows.and_then(|rows| fits(&rows, wire, expected)));
    }
    report.finish()
}

/// Asks a preset of a model, and returns its evidence in the order of questions.
async fn evidence(gateway: &TestGateway, index: usize, questions: &Value) -> Result<Vec<Value>> {
    let config = json!({"model": format!("acme/m{index}"), "questions": questions});
    let add = Call::post(format!("/api/v1/presets/p{index}/decisions")).key(&gateway.management.secret);
    gateway.server.send(&add.json(config.to_string())).await?.ok()?;
    let ask = json!({"model": format!("@preset/p{index}"), "questions": {}, "state": STATE});
    let key = &gateway.inference.secret;
    let answer = gateway.server.send(&Call::post("/v1/systemone").key(key).json(ask.to_string())).await?.ok()?;
    let page = gateway.server.send(&Call::get(format!("/api/v1/evidence?preset=p{index}")).key(key)).await?.ok()?;
    let mut rows = page["data"].as_array().cloned().context("no rows")?;
    ensure!(rows.iter().all(|row| row["generation_id"] == answer["id"]), "{page}");
    rows.sort_by_key(|row| row["question"].as_str().map(str::to_owned));
    Ok(rows)
}

/// Checks the evidence of the three questions against the answers of the vendors, within rounding.
fn fits(rows: &[Value], wire: &str, method: &str) -> Result<()> {
    let heat = [("2", HEAT[2]), ("1", HEAT[1]), ("0", HEAT[0])];
    let queue = [("billing", QUEUE[0]), ("hardware", QUEUE[1]), ("other", QUEUE[2])];
    let refund = [("true", REFUND)];
    let expected =
        [("heat", json!(2), &heat[..]), ("queue", json!("billing"), &queue), ("refund", json!(true), &refund)];
    ensure!(rows.len() == expected.len(), "{rows:?}");
    for (row, (question, decision, probabilities)) in rows.iter().zip(expected) {
        let is_close = |found: &Value, value: f64| found.as_f64().is_some_and(|found| (found - value).abs() < 0.006);
        let found = row["probabilities"].as_object().with_context(|| format!("no probabilities: {row}"))?;
        ensure!(row["question"] == question && row["decision"] == decision, "{row}");
        ensure!(row["wire"] == wire && row["method"] == method, "{row} instead of {method}");
        ensure!(is_close(&row["score"], probabilities[0].1), "{row}");
        let is_same = probabilities.iter().all(|(name, value)| found.get(*name).is_some_and(|p| is_close(p, *value)));
        ensure!(is_same && found.len() == probabilities.len(), "{row}");
    }
    Ok(())
}
