//! `tollgate ask`: sends a Decisions request to the running server and prints the answers.

use std::net::SocketAddr;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cli::AskArgs;
use crate::commands::context::{read_input, read_secret};
use crate::commands::prelude::*;
use crate::commands::server_client::ServerClient;
use crate::commands::servers::{self, STATUS};

/// The environment variable with the API key.
const KEY_VARIABLE: &str = "TOLLGATE_KEY";
/// The path of the operation below the base path.
const PATH: &str = "/api/alpha/decisions";

/// Sends a Decisions request to the running server and prints the answers.
pub async fn run(context: &Context, args: AskArgs) -> anyhow::Result<ExitCode> {
    let key = api_key(context, args.key_file.as_deref())?;
    let body = body(&args)?;
    let (address, base_path) = server(context).await?;
    let client = ServerClient::new(address, context.config.limits.request_timeout + GRACE)?;
    let answer = client.send(&Method::POST, &format!("{base_path}{PATH}"), Some(&key), Some(body)).await?;
    let (status, response) = (answer.status, answer.body);
    let raw: &RawValue =
        serde_json::from_str(&response).map_err(|_| anyhow!("the server answered {status} without JSON"))?;
    if status != 200 {
        if context.output.is_json() {
            context.output.show(&raw, String::new)?;
        }
        let message = error_message(&response).unwrap_or_else(|| "no message".to_owned());
        bail!("{status}: {message}");
    }
    context.output.show(&raw, || answers_text(&response).unwrap_or_else(|| indent(&response)))
}

/// Returns the API key of `--key-file`, by default of the environment.
///
/// # Errors
/// There is none.
pub fn api_key(context: &Context, key_file: Option<&Path>) -> anyhow::Result<String> {
    match key_file {
        Some(file) => read_secret("--key-file", file),
        None => context.environment.get(KEY_VARIABLE).map(str::to_owned).with_context(|| {
            format!("no API key: set {KEY_VARIABLE} or --key-file; `tollgate key create` creates a key")
        }),
    }
}

/// Returns the address and the base path of a running server, or those of the configuration.
///
/// # Errors
/// No server runs, and the configuration has no port.
pub async fn server(context: &Context) -> anyhow::Result<(SocketAddr, String)> {
    let found = servers::running(context, STATUS).await.unwrap_or_default();
    let ready = found.into_iter().filter_map(|server| server.own_status().ok()).find(|status| status.state.is_ready());
    if let Some(status) = ready {
        let address =
            status.address.and_then(|address| address.parse().ok()).context("the server has no usable address")?;
        return Ok((address, status.base_path));
    }
    let configured = &context.config.server;
    if configured.listen.port() == 0 {
        bail!("no server is running on this machine and data folder");
    }
    Ok((configured.listen, configured.base_path.clone()))
}

/// The additional time that a server takes for a response after its own deadline.
pub const GRACE: Duration = Duration::from_secs(10);

/// The longest name of a question in `NAME=TEXT`.
const MAX_NAME: usize = 64;

/// Returns the JSON body of the request.
///
/// # Errors
/// A file cannot be used, or two questions have the same name.
pub fn body(args: &AskArgs) -> anyhow::Result<String> {
    let model = Json::string(&args.model);
    if let Some(file) = &args.from {
        let (text, name) = read_input(file)?;
        let record = Json::parse(&text).map_err(|error| anyhow!("{name} cannot be used: {error}"))?;
        let members = record.members().ok_or_else(|| anyhow!("{name} cannot be used: it must be a JSON object"))?;
        let others = members.iter().filter(|(name, _)| name != "model");
        let all = [("model", model.text())].into_iter();
        return Ok(Json::object(all.chain(others.map(|(name, value)| (name.as_str(), value.text()))))
            .text()
            .to_owned());
    }
    let state = match &args.state_file {
        Some(file) => read_input(file)?.0,
        None => args.state.clone().unwrap_or_default(),
    };
    let questions = questions(args)?;
    let questions = Json::object(questions.iter().map(|(name, question)| (name.as_str(), question.text())));
    let state = Json::string(&state);
    let members = [("model", model.text()), ("questions", questions.text()), ("state", state.text())];
    Ok(Json::object(members).text().to_owned())
}

fn questions(args: &AskArgs) -> anyhow::Result<Vec<(String, Json)>> {
    let mut questions: Vec<(String, Json)> = Vec::with_capacity(args.question.len());
    for (index, text) in args.question.iter().enumerate() {
        let (name, text) = split_name(text);
        let name = name.map_or_else(|| format!("q{}", index + 1), str::to_owned);
        ensure!(questions.iter().all(|(other, _)| *other != name), "two questions are named {name:?}");
        questions.push((name, question(text, args)));
    }
    Ok(questions)
}

/// Splits `NAME=TEXT`; a text with another beginning has no name.
fn split_name(text: &str) -> (Option<&str>, &str) {
    let is_name = |name: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(fits)
    };
    match text.split_once('=') {
        Some((name, rest)) if is_name(name) => (Some(name), rest.trim_start()),
        _ => (None, text),
    }
}

fn question(text: &str, args: &AskArgs) -> Json {
    let instructions = Json::string(text);
    let criteria = if !args.options.is_empty() {
        Some(("\"choice\"", Json::object(args.options.iter().map(|option| (option.trim(), "null")))))
    } else if !args.levels.is_empty() {
        let levels: Vec<Json> = args.levels.iter().map(|level| Json::string(level.trim())).collect();
        Some(("\"score\"", Json::array(levels.iter().map(Json::text))))
    } else {
        None
    };
    let (kind, criteria) = criteria.map_or(("\"noul\"", None), |(kind, criteria)| (kind, Some(criteria)));
    let members = [("type", kind), ("instructions", instructions.text())].into_iter();
    Json::object(members.chain(criteria.as_ref().map(|criteria| ("criteria", criteria.text()))))
}

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
fn answers_text(body: &str) -> Option<String> {
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
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn written(words: &[&str]) -> anyhow::Result<String> {
        let cli = Cli::try_parse_from([&["tollgate", "ask"][..], words].concat())?;
        let Command::Ask(args) = cli.command else { unreachable!("another command") };
        body(&args)
    }

    #[test]
    fn body_has_one_question_per_option() {
        assert_eq!(
            written(&["a/b", "--question", "Is it good?", "--question", "late=Is it late?", "--state", "x \"y\""])
                .unwrap(),
            r#"{"model":"a/b","questions":{"q1":{"type":"noul","instructions":"Is it good?"},"late":{"type":"noul","instructions":"Is it late?"}},"state":"x \"y\""}"#
        );
        assert_eq!(
            written(&["a/b", "--question", "x = y?", "--options", "one, two", "--state", "s"]).unwrap(),
            r#"{"model":"a/b","questions":{"q1":{"type":"choice","instructions":"x = y?","criteria":{"one":null,"two":null}}},"state":"s"}"#
        );
        assert_eq!(
            written(&["a/b", "--question", "mood=How?", "--levels", "calm,furious", "--state", "s"]).unwrap(),
            r#"{"model":"a/b","questions":{"mood":{"type":"score","instructions":"How?","criteria":["calm","furious"]}},"state":"s"}"#
        );
        let twice = written(&["a/b", "--question", "a=x", "--question", "a=y", "--state", "s"]).unwrap_err();
        assert_eq!(twice.to_string(), "two questions are named \"a\"");
    }

    #[test]
    fn body_of_file_gets_the_model() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), r#"{"questions":"text","model":"c/d","user":"u"}"#).unwrap();
        let path = file.path().display().to_string();
        assert_eq!(written(&["a/b", "--from", &path]).unwrap(), r#"{"model":"a/b","questions":"text","user":"u"}"#);
        std::fs::write(file.path(), "[]").unwrap();
        assert!(written(&["a/b", "--from", &path]).unwrap_err().to_string().contains("must be a JSON object"));
        for words in [
            &["a/b"][..],
            &["a/b", "--question", "x"],
            &["a/b", "--question", "x", "--from", "f"],
            &["a/b", "--question", "x", "--state", "s", "--options", "a", "--levels", "b"],
        ] {
            assert!(written(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn text_shows_each_type_of_answer() {
        let body = r#"{"answers":{
            "refund":{"type":"noul","noul":0.97},
            "topic":{"type":"choice","choice":"billing","probabilities":{"other":0.2,"billing":0.8}},
            "mood":{"type":"score","score":1.25},
            "odd":{"type":"refusal"}},
            "model":"a/b","usage":{"input_tokens":429,"output_tokens":31,"cost":0.000018018000000001},"id":"gen-dec-1",
            "provider":"Alpha"}"#;
        let shown = answers_text(body).unwrap();
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
        assert_eq!(answers_text(r#"{"answers":"yes","model":"a/b"}"#), None);
        assert_eq!(answers_text("<html>"), None);
        assert_eq!(error_message(r#"{"error":{"code":404,"message":"no"}}"#).unwrap(), "no");
    }
}
