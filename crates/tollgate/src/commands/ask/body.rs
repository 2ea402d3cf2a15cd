//! The body of the request.

use anyhow::{anyhow, ensure};
use domain::json::Json;

use crate::cli::AskArgs;
use crate::commands::input::read_input;

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
}
