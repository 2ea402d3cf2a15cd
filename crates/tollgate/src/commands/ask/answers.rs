//! The answers of a response, for people.

use domain::json::Json;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::output::{escape, table};

/// The maximum number of options that are shown beside the chosen one.
const MAX_OTHERS: usize = 4;

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    answers: &'a RawValue,
    model: String,
    provider: Option<String>,
    id: String,
    #[serde(borrow)]
    usage: Usage<'a>,
}

#[derive(Deserialize)]
struct Usage<'a> {
    input_tokens: u64,
    output_tokens: u64,
    /// Shown as it was sent, with every digit.
    #[serde(borrow)]
    cost: &'a RawValue,
}

/// Returns the text of a response of the Decisions operation; `None` for other answers, such as those to opaque
/// questions.
pub fn text(body: &str) -> Option<String> {
    let response: Response<'_> = serde_json::from_str(body).ok()?;
    // In the order of the response.
    let answers = Json::parse(response.answers.get()).ok()?.members()?;
    let row = |(name, answer): (String, Json)| {
        let (answer, detail) = describe(&serde_json::from_str(answer.text()).ok()?)?;
        Some([name, answer, detail])
    };
    let rows: Vec<[String; 3]> = answers.into_iter().map(row).collect::<Option<_>>()?;
    let Usage { input_tokens, output_tokens, cost } = response.usage;
    Some(format!(
        "{}\n{} by {}: {input_tokens} tokens in, {output_tokens} out, {cost} USD ({})\n",
        table(["QUESTION", "ANSWER", "DETAIL"], &rows),
        escape(&response.model),
        escape(response.provider.as_deref().unwrap_or("-")),
        escape(&response.id),
    ))
}

/// Returns the answer in a word, and its probabilities.
fn describe(answer: &Value) -> Option<(String, String)> {
    match answer["type"].as_str()? {
        "noul" => {
            let yes = answer["noul"].as_f64()?;
            let word = if yes >= 0.5 { "yes" } else { "no" };
            Some((word.to_owned(), format!("yes {}", per_cent(yes))))
        }
        "choice" => {
            let choice = label(&answer["choice"])?;
            Some((choice, probabilities(answer)))
        }
        "score" => Some((answer["score"].to_string(), probabilities(answer))),
        "refusal" => Some(("refused".to_owned(), String::new())),
        _ => None,
    }
}

fn label(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_bool().map(|value| value.to_string()))
}

/// Returns the largest probabilities, the largest first.
fn probabilities(answer: &Value) -> String {
    let named: Vec<(String, f64)> = match &answer["probabilities"] {
        Value::Object(members) => {
            members.iter().filter_map(|(name, share)| Some((name.clone(), share.as_f64()?))).collect()
        }
        Value::Array(levels) => {
            let numbered = levels.iter().enumerate();
            numbered.filter_map(|(level, share)| Some((level.to_string(), share.as_f64()?))).collect()
        }
        _ => Vec::new(),
    };
    let mut named = named;
    named.sort_by(|one, other| other.1.total_cmp(&one.1));
    let shown: Vec<String> =
        named.iter().take(MAX_OTHERS + 1).map(|(name, share)| format!("{name} {}", per_cent(*share))).collect();
    shown.join(", ")
}

fn per_cent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Returns the message of an error response; `None` for another body.
pub fn error_message(body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).ok()?;
    body["error"]["message"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_shows_each_type_of_answer() {
        let body = r#"{"answers":{
            "refund":{"type":"noul","noul":0.97},
            "topic":{"type":"choice","choice":"billing","probabilities":{"other":0.2,"billing":0.8}},
            "mood":{"type":"score","score":1.25},
            "odd":{"type":"refusal"}},
            "model":"a/b","usage":{"input_tokens":429,"output_tokens":31,"cost":0.000018018000000001},"id":"gen-dec-1",
            "provider":"Alpha"}"#;
        let shown = text(body).unwrap();
        let lines: Vec<String> =
            shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            [
                "QUESTION ANSWER DETAIL",
                "refund yes yes 97 %",
                "topic billing billing 80 %, other 20 %",
                "mood 1.25",
                "odd refused",
                "",
                "a/b by Alpha: 429 tokens in, 31 out, 0.000018018000000001 USD (gen-dec-1)",
            ]
        );
    }

    #[test]
    fn text_is_none_for_opaque_answers() {
        assert_eq!(text(r#"{"answers":"yes","model":"a/b"}"#), None);
        assert_eq!(text("<html>"), None);
        assert_eq!(error_message(r#"{"error":{"code":404,"message":"no"}}"#).unwrap(), "no");
    }
}
