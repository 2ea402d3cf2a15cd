//! `tollgate eval`: a provider with planted answers, and a command that is killed.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Call, Recorded, Upstream};

use crate::gateway::{TestGateway, outdated_for, providers_toml_of_cases};

/// A question with a name that would be a script in a page.
const HOSTILE: &str = "<script>alert('a')</script>";

/// Returns the number of the item in a request: its state is `item N.`.
fn number(request: &Recorded) -> usize {
    let text = request.text();
    let rest = text.split_once("item ").map_or("", |(_, rest)| rest);
    rest.split_once('.').and_then(|(number, _)| number.parse().ok()).unwrap_or(usize::MAX)
}

/// Answers yes to even items. Each tenth item is answered the wrong way, with less confidence.
fn planted(request: &Recorded) -> (u16, String) {
    let number = number(request);
    let (is_even, is_wrong) = (number.is_multiple_of(2), number.is_multiple_of(10));
    let share = if is_wrong { 0.6 } else { 0.97 };
    let noul = if is_even == is_wrong { 1.0 - share } else { share };
    let names = if request.text().contains("alert") { vec!["refund", HOSTILE] } else { vec!["refund"] };
    let answers: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({"type": "noul", "noul": noul}))).collect();
    let answer = json!({"model": "judge-1.0", "answers": answers, "usage": {"input_tokens": 100, "output_tokens": 1}});
    (200, answer.to_string())
}

fn planted_or_overloaded(request: &Recorded) -> (u16, String) {
    if number(request) == 7 { (400, r#"{"error":{"message":"no"}}"#.to_owned()) } else { planted(request) }
}

fn dataset(items: usize) -> String {
    let line = |number: usize| {
        let is_even = number.is_multiple_of(2);
        json!({"state": format!("item {number}."), "labels": {"refund": is_even, HOSTILE: is_even}}).to_string() + "\n"
    };
    (0..items).map(line).collect()
}

/// Starts a gateway with a preset and a dataset.
async fn start(alpha: &Upstream, items: usize) -> Result<TestGateway> {
    // Two models of one provider: `acme/alone` and `acme/alone-0`.
    let url = alpha.base_url();
    let mut gateway = TestGateway::start(&providers_toml_of_cases(&url, &url, 5_000, 1)).await?;
    let noul = json!({"type": "noul", "instructions": "Is it?"});
    let preset = json!({"models": ["acme/alone"], "questions": {"refund": noul, HOSTILE: noul}});
    std::fs::write(gateway.instance.path().join("preset.json"), preset.to_string())?;
    std::fs::write(gateway.instance.path().join("items.jsonl"), dataset(items))?;
    gateway.instance.json(&["preset", "create", "triage", "--from", "preset.json"]).await?;
    gateway.instance.set_env("TOLLGATE_KEY", gateway.inference.secret.clone());
    // The preset is in force within a second.
    let path = "/api/v1/presets/triage";
    let call = Call::get(path).key(&gateway.inference.secret);
    outdated_for(&gateway.server, &call, 200, Instant::now()).await?;
    Ok(gateway)
}

const RUN: [&str; 10] = [
    "eval",
    "run",
    "--preset",
    "triage",
    "--dataset",
    "items.jsonl",
    "--model",
    "acme/alone",
    "--results",
    "results.jsonl",
];

/// Returns the items of the answers in whole lines of the result file.
fn recorded(gateway: &TestGateway) -> Result<Vec<String>> {
    let file = gateway.instance.path().join("results.jsonl");
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut items = Vec::new();
    for line in whole.lines().skip(1) {
        let row: Value = serde_json::from_str(line)?;
        let item = row["item"].as_str().context("a line without an item")?;
        items.extend(row["error"].is_null().then(|| item.to_owned()));
    }
    Ok(items)
}

#[tokio::test]
async fn killed_evaluation_continues_without_asking_again() -> Result<()> {
    let slow = r#"{"model":"judge-1.0","answers":{"refund":{"type":"noul","noul":0.9}},"usage":{"input_tokens":9,"output_tokens":1}}"#;
    let alpha = Upstream::start(Behaviour::Late(Duration::from_millis(10), slow.to_owned())).await?;
    let gateway = start(&alpha, 300).await?;
    let preset = json!({"models": ["acme/alone"], "questions": {"refund": {"type": "noul", "instructions": "Is it?"}}});
    std::fs::write(gateway.instance.path().join("preset.json"), preset.to_string())?;
    gateway.instance.json(&["preset", "create", "triage", "--from", "preset.json"]).await?;
    let labelled = (0..300).map(|number| format!("{{\"state\":\"item {number}.\",\"labels\":{{\"refund\":true}}}}\n"));
    std::fs::write(gateway.instance.path().join("items.jsonl"), labelled.collect::<String>())?;
    sleep(Duration::from_secs(1)).await;
    let arguments = [&RUN[..], &["--yes", "--concurrency", "4"]].concat();
    for before in [40, 90] {
        let mut child = gateway.instance.spawn(&arguments)?;
        while recorded(&gateway)?.len() < before {
            sleep(Duration::from_millis(5)).await;
            ensure!(child.try_wait()?.is_none(), "it ended with {} answers", recorded(&gateway)?.len());
        }
        child.kill().await?;
    }
    let before = recorded(&gateway)?;
    ensure!((90..300).contains(&before.len()), "{} answers before the kill", before.len());
    // A request on its way to the provider may still arrive.
    sleep(Duration::from_millis(200)).await;
    alpha.take_requests();
    let file = gateway.instance.path().join("results.jsonl");
    let whole = std::fs::read_to_string(&file)?;
    std::fs::write(&file, format!("{whole}{{\"item\":\"12"))?;

    let output = gateway.instance.run(&[&arguments[..], &["--json"]].concat()).await?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(report["data"]["groups"][0]["answers"] == 300, "{report}");
    let after = recorded(&gateway)?;
    ensure!(after.len() == 300 && after.iter().collect::<BTreeSet<_>>().len() == 300, "{} answers", after.len());
    let asked = alpha.take_requests().len();
    ensure!(asked == 300 - before.len(), "{asked} requests after {} answers", before.len());

    let again = gateway.instance.run(&[&arguments[..], &["--json"]].concat()).await?;
    ensure!(again.stdout == output.stdout && alpha.take_requests().is_empty(), "the repetition asked again");
    let shown = gateway.instance.run(&["eval", "report", "--results", "results.jsonl", "--json"]).await?;
    ensure!(shown.stdout == output.stdout && shown.status.code() == output.status.code(), "another report");
    // A corrected label asks nothing again.
    let labelled =
        (0..300).map(|number| format!("{{\"state\":\"item {number}.\",\"labels\":{{\"refund\":{}}}}}\n", number > 0));
    std::fs::write(gateway.instance.path().join("items.jsonl"), labelled.collect::<String>())?;
    let corrected = gateway.instance.run(&[&arguments[..], &["--json"]].concat()).await?;
    let report: Value = serde_json::from_slice(&corrected.stdout)?;
    ensure!(report["data"]["groups"][0]["answers"] == 300 && corrected.stdout != output.stdout, "{report}");
    ensure!(alpha.take_requests().is_empty(), "a corrected label asked again");
    let shown = gateway.instance.run(&["eval", "report", "--results", "results.jsonl", "--json"]).await?;
    ensure!(shown.stdout == corrected.stdout, "another report");
    // Another version of the preset is another evaluation.
    gateway.instance.json(&["preset", "create", "triage", "--from", "preset.json"]).await?;
    sleep(Duration::from_secs(1)).await;
    let said = gateway.instance.refused(&arguments).await?;
    ensure!(said.contains("version 2") && said.contains("version 3"), "{said}");
    Ok(())
}

#[tokio::test]
async fn evaluation_reports_planted_answers() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Speak(planted)).await?;
    let gateway = start(&alpha, 1_000).await?;
    let instance = &gateway.instance;
    let said = instance.refused(&RUN).await?;
    ensure!(said.contains("Sending 1000 requests costs 0.0") && said.contains("--yes"), "{said}");
    ensure!(alpha.take_requests().is_empty(), "it asked without a confirmation");
    let two =
        [&RUN[..], &["--model", "acme/alone-0", "--yes", "--html", "report.html", "--concurrency", "32"]].concat();
    let output = instance.run(&[&two[..], &["--json"]].concat()).await?;
    ensure!(output.status.code() == Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let groups = report["data"]["groups"].as_array().context("no groups")?;
    ensure!(groups.len() == 4, "{} groups", groups.len());
    for group in groups {
        ensure!(group["answers"] == 1_000 && group["labels"]["reference"] == 900, "{group}");
        let share = group["accuracy"]["share"].as_f64().unwrap_or_default();
        ensure!((0.85..0.95).contains(&share), "{group}");
        // The wrong answers are those with the lower score.
        ensure!(group["threshold"]["threshold"] == 0.97 && group["threshold"]["risk"]["count"] == 0, "{group}");
        ensure!(group["origin"]["wire"] == "system-one" && group["origin"]["method"] == "native", "{group}");
        // 100 tokens at 0.042 USD a million.
        ensure!(group["usd_per_1000"] == json!(0.0042), "{group}");
    }
    ensure!(report["data"]["comparisons"].as_array().is_some_and(|compared| compared.len() == 2), "{report}");
    ensure!(report["data"]["comparisons"][0]["mcnemar_p_value"] == 1.0, "{report}");
    // Both models cost the same.
    let finding = report["data"]["cascades"][0]["finding"].as_str().unwrap_or_default();
    ensure!(finding.starts_with("does not pay"), "{report}");
    let page = std::fs::read_to_string(instance.path().join("report.html"))?;
    ensure!(page.contains("<svg") && page.contains("&lt;script&gt;alert(&#39;a&#39;)&lt;/script&gt;"), "{page}");
    ensure!(!page.contains("<script") && page.contains("tested threshold 0.97"), "{page}");
    let shown = instance.run(&["eval", "report", "--results", "results.jsonl"]).await?;
    let shown = String::from_utf8(shown.stdout)?;
    ensure!(shown.contains("tested threshold 0.97") && shown.contains("ECE 0."), "{shown}");
    ensure!(shown.contains("random sample of the traffic") && shown.contains("does not pay"), "{shown}");

    for (options, code) in [
        (&["--require", "refund.accuracy>=0.8"][..], 0),
        (&["--require", "refund.accuracy>=0.95"], 1),
        (&["--require", "urgent.accuracy>=0"], 1),
        (&["--alpha", "0.001"], 3),
        (&["--alpha", "0.001", "--require", "refund.accuracy>=0.95"], 1),
        (&["--alpha", "0"], 2),
        (&["--require", "refund"], 2),
    ] {
        let arguments = [&["eval", "report", "--results", "results.jsonl"], options].concat();
        let output = instance.run(&arguments).await?;
        ensure!(output.status.code() == Some(code), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

#[tokio::test]
async fn copies_of_a_state_are_asked_once_and_are_no_labels() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Speak(planted)).await?;
    let gateway = start(&alpha, 40).await?;
    let file = gateway.instance.path().join("items.jsonl");
    let wrong = json!({"state": "item 3.", "labels": {"refund": true}});
    std::fs::write(&file, format!("{}{}{wrong}\n", dataset(40), dataset(40)))?;
    let said = gateway.instance.refused(&RUN).await?;
    let expected = "line 81: labels.refund: true, but line 4 has false for the same state";
    ensure!(said.contains(expected) && alpha.take_requests().is_empty(), "{said}");
    std::fs::write(&file, dataset(40).repeat(10))?;
    let output = gateway.instance.run(&[&RUN[..], &["--yes", "--json"]].concat()).await?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(said.contains("360 of 400 items repeat a state; each state counts once"), "{said}");
    // Forty labels are too few, half of which are for the candidates.
    ensure!(output.status.code() == Some(3) && alpha.take_requests().len() == 40, "{said}");
    let report: Value = serde_json::from_slice(&output.stdout)?;
    for group in report["data"]["groups"].as_array().context("no groups")? {
        ensure!(group["answers"] == 40 && group["labels"]["reference"] == 20, "{group}");
    }
    Ok(())
}

#[tokio::test]
async fn levels_within_the_tolerance_are_no_errors() -> Result<()> {
    // The most probable level is 1.
    let level = r#"{"model":"judge-1.0","answers":{"heat":{"type":"score","score":1.1,
        "probabilities":{"0":0.1,"1":0.7,"2":0.2}}},"usage":{"input_tokens":9,"output_tokens":1}}"#;
    let alpha = Upstream::start(Behaviour::json(level)).await?;
    let gateway = start(&alpha, 1).await?;
    let heat = json!({"type": "score", "instructions": "How?", "criteria": ["calm", "annoyed", "furious"]});
    let preset = json!({"models": ["acme/alone"], "questions": {"heat": heat}});
    let labels = |number: usize| json!({"heat": number % 4 / 2 + 1});
    let lines = (0..40).map(|number| json!({"state": format!("item {number}."), "labels": labels(number)}).to_string());
    let write = |file: &str, text: String| std::fs::write(gateway.instance.path().join(file), text);
    write("preset.json", preset.to_string())?;
    write("items.jsonl", lines.collect::<Vec<_>>().join("\n"))?;
    gateway.instance.json(&["preset", "create", "triage", "--from", "preset.json"]).await?;
    sleep(Duration::from_secs(1)).await;
    gateway.instance.run(&[&RUN[..], &["--yes"]].concat()).await?;
    // Some items choose the candidates of a threshold; of the others about half have the label 2.
    for (tolerance, is_right) in [(&[][..], false), (&["--tolerance", "0"], false), (&["--tolerance", "1"], true)] {
        let arguments = [&["eval", "report", "--results", "results.jsonl", "--json"], tolerance].concat();
        let report: Value = serde_json::from_slice(&gateway.instance.run(&arguments).await?.stdout)?;
        let accuracy = &report["data"]["groups"][0]["accuracy"];
        ensure!(accuracy["total"] == 20, "{accuracy}");
        ensure!((accuracy["count"] == accuracy["total"]) == is_right, "{tolerance:?}: {accuracy}");
    }
    Ok(())
}

#[tokio::test]
async fn evaluation_stops_at_limits_and_counts_errors() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Speak(planted_or_overloaded)).await?;
    let mut gateway = start(&alpha, 60).await?;
    let file = gateway.instance.path().join("items.jsonl");
    let lines = dataset(60);
    std::fs::write(
        &file,
        format!("{lines}{{\"state\":\"x\",\"labels\":{{\"refund\":\"yes\"}}}}\n{{\"state\":\"x\"}}\n"),
    )?;
    let said = gateway.instance.refused(&RUN).await?;
    ensure!(said.contains("line 61") && said.contains("\"yes\" is not a label of this question"), "{said}");
    ensure!(said.contains("line 62") && said.contains("2 invalid lines in items.jsonl"), "{said}");
    std::fs::write(&file, &lines)?;
    ensure!(alpha.take_requests().is_empty(), "it asked in spite of invalid labels");

    // 100 tokens cost 0.0000042 USD; a hold is higher.
    let poor = gateway.instance.key(&["--name", "poor", "--limit-usd", "0.0001"]).await?;
    gateway.instance.set_env("TOLLGATE_KEY", poor.secret);
    let arguments = [&RUN[..], &["--yes", "--concurrency", "2"]].concat();
    let said = gateway.instance.refused(&arguments).await?;
    ensure!(said.contains("402: ") && said.contains("the same command continues"), "{said}");
    let kept = recorded(&gateway)?.len();
    ensure!((1..59).contains(&kept), "{kept} answers");
    gateway.instance.set_env("TOLLGATE_KEY", gateway.inference.secret.clone());
    alpha.take_requests();
    let output = gateway.instance.run(&arguments).await?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(output.status.code() == Some(3) && recorded(&gateway)?.len() == 59, "{said}");
    ensure!(said.contains(&format!("1 of {} requests failed", 60 - kept)), "{said}");
    ensure!(alpha.take_requests().len() == 60 - kept, "an answered request was repeated");
    let shown = gateway.instance.run(&["eval", "report", "--results", "results.jsonl", "--json"]).await?;
    let report: Value = serde_json::from_slice(&shown.stdout)?;
    ensure!(report["data"]["failed_requests"] == json!({"acme/alone": 1}), "{report}");

    gateway.instance.set_env("TOLLGATE_KEY", "sk-tg-v1-unknown");
    let said = gateway.instance.refused(&arguments).await?;
    ensure!(said.contains("401: ") && !said.contains("sk-tg"), "{said}");
    Ok(())
}

/// Thirty-two requests at once compete for one that the rate permits every second: the last ones lose thirty times.
#[tokio::test]
async fn evaluation_waits_for_the_rate_of_its_key() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Speak(planted)).await?;
    let mut gateway = start(&alpha, 90).await?;
    let slow = gateway.instance.key(&["--name", "slow", "--rpm", "60"]).await?;
    gateway.instance.set_env("TOLLGATE_KEY", slow.secret);
    let arguments = [&RUN[..], &["--yes", "--concurrency", "32"]].concat();
    let output = gateway.instance.run(&arguments).await?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(output.status.code() == Some(3) && recorded(&gateway)?.len() == 90, "{said}");
    // The preset and the model are read under the same rate.
    std::fs::write(gateway.instance.path().join("items.jsonl"), dataset(91))?;
    let output = gateway.instance.run(&arguments).await?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(output.status.code() == Some(3) && recorded(&gateway)?.len() == 91, "{said}");
    Ok(())
}

/// The first 25 of 60 items, which is more than the failures after which a run stops, are refused by a guardrail.
#[tokio::test]
async fn evaluation_goes_on_after_refused_items_and_reports_the_others() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Speak(planted)).await?;
    let mut gateway = start(&alpha, 60).await?;
    let filter = json!({"pattern": r"item (\d|1\d|2[0-4])\.", "action": "block", "label": "EARLY"});
    let rules = gateway.instance.path().join("rules.json");
    std::fs::write(&rules, json!({"name": "early", "content_filters": [filter]}).to_string())?;
    let made = gateway.instance.json(&["guardrail", "create", "--from", "rules.json"]).await?;
    let guardrail = made["id"].as_str().context("no id")?;
    let refused = gateway.instance.key(&["--name", "refused"]).await?;
    gateway.instance.json(&["guardrail", "assign", guardrail, &refused.hash]).await?;
    gateway.instance.set_env("TOLLGATE_KEY", refused.secret);
    let twice = [&RUN[..], &["--yes", "--model", "Acme/Alone"]].concat();
    let said = gateway.instance.refused(&twice).await?;
    ensure!(said.contains("are one model, acme/alone"), "{said}");
    let arguments = [&RUN[..], &["--yes", "--concurrency", "1", "--json"]].concat();
    let mut reports = Vec::new();
    for pending in [60, 25] {
        let output = gateway.instance.run(&arguments).await?;
        let said = String::from_utf8(output.stderr)?;
        ensure!(output.status.code() == Some(3), "{pending}: {said}");
        ensure!(said.contains(&format!("25 of {pending} requests failed")) && said.contains("403: "), "{said}");
        ensure!(recorded(&gateway)?.len() == 35, "{said}");
        reports.push(serde_json::from_slice::<Value>(&output.stdout)?);
    }
    ensure!(reports[0] == reports[1], "a repeated run reports something else");
    gateway.instance.set_env("TOLLGATE_KEY", gateway.inference.secret.clone());
    alpha.take_requests();
    let alias = arguments.iter().map(|argument| if *argument == "acme/alone" { "Acme/Alone" } else { argument });
    gateway.instance.run(&alias.collect::<Vec<_>>()).await?;
    ensure!(alpha.take_requests().len() == 25, "an answered item was asked again under another name");
    Ok(())
}
