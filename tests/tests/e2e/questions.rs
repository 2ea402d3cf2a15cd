//! Invalid questions are rejected with their path before any provider is called.

use anyhow::{Context, Result, ensure};
use tollgate_tests::{Behaviour, Report, Upstream};

use crate::gateway::{ANSWER, TestGateway};

fn asking(questions: &str, state: &str) -> String {
    format!(r#"{{"model":"acme/alone","questions":{questions}{state}}}"#)
}

#[tokio::test]
async fn invalid_questions_are_rejected_with_path() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = TestGateway::with_providers(&alpha, &beta, 5_000).await?;
    let many = |n: usize| (0..n).map(|i| format!("\"o{i}\":null")).collect::<Vec<_>>().join(",");
    let choice_256 = format!(r#"{{"q":{{"type":"choice","criteria":{{{}}}}}}}"#, many(256));
    let score_11 = format!(r#"{{"q":{{"type":"score","criteria":[{}]}}}}"#, ["\"l\""; 11].join(","));
    let good = r#""good":{"type":"noul","instructions":"?"}"#;
    let cases = [
        ("{}", "questions"),
        (r#"{"q":{"type":"magic"}}"#, "questions.q.type"),
        (r#"{"q":{"type":7}}"#, "questions.q.type"),
        (&format!(r#"{{{good},"q":"plain"}}"#), "questions.q"),
        (&format!(r#"{{{good},"q":null}}"#), "questions.q"),
        (&format!(r#"{{{good},"q":{{"instructions":"?"}}}}"#), "questions.q.type"),
        (&format!("{{{good},{good}}}"), "questions.good"),
        (r#"{"q":{"type":"noul"}}"#, "questions.q.criteria"),
        (r#"{"q":{"type":"noul","instructions":5}}"#, "questions.q.instructions"),
        (r#"{"q":{"type":"noul","instructions":true}}"#, "questions.q.instructions"),
        (r#"{"q":{"type":"noul","instructions":"?","criteria":[]}}"#, "questions.q.criteria"),
        (r#"{"q":{"type":"noul","instructions":"?","criteria":"x"}}"#, "questions.q.criteria"),
        (r#"{"q":{"type":"noul","criteria":{"true":1}}}"#, "questions.q.criteria.true"),
        (r#"{"q":{"type":"choice","instructions":"?"}}"#, "questions.q.criteria"),
        (r#"{"q":{"type":"choice","criteria":[]}}"#, "questions.q.criteria"),
        (r#"{"q":{"type":"choice","criteria":{}}}"#, "1 to 255"),
        (&choice_256, "1 to 255"),
        (r#"{"q":{"type":"choice","criteria":{"x":1}}}"#, "questions.q.criteria.x"),
        (r#"{"q":{"type":"choice","criteria":{"x":null,"x":null}}}"#, "questions.q.criteria.x"),
        (r#"{"q":{"type":"score","instructions":"?"}}"#, "questions.q.criteria"),
        (r#"{"q":{"type":"score","criteria":{}}}"#, "questions.q.criteria"),
        (r#"{"q":{"type":"score","criteria":[]}}"#, "1 to 10"),
        (&score_11, "1 to 10"),
        (r#"{"q":{"type":"score","criteria":["x",null]}}"#, "questions.q.criteria[1]"),
        (r#"{"q":{"type":"noul","type":"score","instructions":"?"}}"#, "questions.q.type"),
    ];
    let mut report = Report::default();
    for (questions, path) in cases {
        let reply = gateway.server.decide(&gateway.inference.secret, asking(questions, r#","state":"x""#)).await?;
        report.case(&format!("{questions:.80}"), reply.error(400, path));
    }
    for state in ["", r#","state":null"#, r#","state":5"#, r#","state":false"#] {
        let typed = asking(r#"{"q":{"type":"noul","instructions":"?"}}"#, state);
        let reply = gateway.server.decide(&gateway.inference.secret, typed).await?;
        report.case(&format!("state {state:?}"), reply.error(400, "state"));
    }
    ensure!(alpha.take_requests().is_empty(), "a provider was called with broken questions");
    gateway.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn sandbox_answers_questions_at_their_limits() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let many = (0..255).map(|i| format!("\"o{i}\":null")).collect::<Vec<_>>().join(",");
    let levels = ["\"l\""; 10].join(",");
    let questions = format!(
        r#"{{"refund":{{"type":"noul","instructions":"Refund?","criteria":{{"true":"money","false":null}}}},
            "alone":{{"type":"noul","criteria":{{"true":{{"a":1}}}}}},
            "queue":{{"type":"choice","criteria":{{{many}}}}},
            "one":{{"type":"choice","instructions":null,"criteria":{{"only":["x"]}}}},
            "heat":{{"type":"score","instructions":["how"],"criteria":[{levels}]}},
            "flat":{{"type":"score","criteria":["only"]}}}}"#
    );
    let body = format!(r#"{{"model":"sandbox/decider","questions":{questions},"state":{{"text":"money back"}}}}"#);
    let answer = gateway.decide(&body).await?;
    let answers = answer["answers"].as_object().context("no answers")?;
    ensure!(answers.len() == 6, "{answer}");
    let number = |name: &str, member: &str| answers[name][member].as_f64().with_context(|| format!("{name}: {answer}"));
    ensure!((0.0..=1.0).contains(&number("refund", "noul")?));
    ensure!((0.0..=9.0).contains(&number("heat", "score")?));
    ensure!(number("flat", "score")?.abs() < f64::EPSILON);
    ensure!(answers["one"]["choice"] == "only");
    ensure!(answers["queue"]["choice"].as_str().is_some_and(|option| option.starts_with('o')));
    ensure!(gateway.decide(&body).await?["answers"] == answer["answers"], "the sandbox is not stable");
    Ok(())
}
