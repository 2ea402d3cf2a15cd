//! Evidence after a crash, labels from files, and the report of evidence.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tollgate_tests::{Call, Instance, Server};

use crate::gateway::{PROMISED, QUESTIONS, TestGateway};

#[tokio::test]
async fn evidence_survives_a_crash_once_and_takes_labels_from_files() -> Result<()> {
    let TestGateway { instance, server, inference, .. } = TestGateway::start("").await?;
    let write = |file: &str, text: &str| std::fs::write(instance.path().join(file), text);
    let ids = answers(&instance, &server, &inference.secret, QUESTIONS, 5).await?;
    server.kill().await?;
    let server = instance.serve().await?;
    let read = async |query: &str| {
        let path = format!("/api/v1/evidence?preset=triage{query}");
        server.send(&Call::get(path).key(&inference.secret)).await?.ok()
    };
    let page = read("").await?;
    let found: Vec<_> = page["data"].as_array().context("no rows")?.iter().rev().collect();
    let found_ids: Vec<_> = found.iter().filter_map(|row| row["generation_id"].as_str()).collect();
    ensure!(found_ids == ids, "{ids:?}, {page}");
    ensure!(found.iter().all(|row| row["decision"].is_boolean() && row["score"].is_number()), "{page}");

    let lines = format!(
        "generation_id,question,label,source\n{},refund,true,human\n{},refund,maybe,human\n{},refund,false,\n",
        ids[0], ids[1], ids[2]
    );
    write("labels.csv", &lines)?;
    let imported = instance.run(&["labels", "import", "labels.csv", "--source", "system", "--json"]).await?;
    let said = String::from_utf8_lossy(&imported.stderr).into_owned();
    ensure!(imported.status.code() == Some(1) && said.contains("line 3: \"maybe\" is not a label"), "{said}");
    let counts: serde_json::Value = serde_json::from_slice(&imported.stdout)?;
    ensure!(counts == json!({"changed": 2, "unchanged": 0, "rejected": 1}), "{counts}");
    let labelled = read("&labelled=true").await?;
    let label = &labelled["data"][0]["label"];
    ensure!((&label["value"], &label["source"]) == (&json!(false), &json!("system")), "{labelled}");

    for (file, options) in [("out.jsonl", &[][..]), ("out.csv", &["--csv"])] {
        instance.json(&[&["labels", "export", "triage", "--output", file], options].concat()).await?;
        let counts = instance.json(&["labels", "import", file]).await?;
        ensure!(counts == json!({"changed": 0, "unchanged": 2, "rejected": 0}), "{file}: {counts}");
    }
    let counts = instance.json(&["labels", "import", "labels.csv", "--from-line", "4", "--source", "human"]).await?;
    ensure!(counts == json!({"changed": 1, "unchanged": 0, "rejected": 0}), "{counts}");
    // An import that is repeated leaves a newer label.
    let again = instance.run(&["labels", "import", "labels.csv", "--source", "system", "--json"]).await?;
    ensure!(again.stdout == imported.stdout, "{}", String::from_utf8_lossy(&again.stderr));
    let label = &read("&labelled=true").await?["data"][0]["label"];
    ensure!((&label["source"], &label["version"]) == (&json!("human"), &json!(2)), "{label}");

    // A byte that is no UTF-8 and an open quote, in a file as spreadsheets write it.
    let [one, two] = [&ids[3], &ids[4]];
    let text = format!("generation_id,question,label\r\n\r\n{one},refund,\u{1}\r\n{one},refund,true\r\n\"{two},x");
    let bytes: Vec<u8> = text.bytes().map(|byte| if byte == 1 { 0xff } else { byte }).collect();
    std::fs::write(instance.path().join("damaged.csv"), bytes)?;
    let damaged = ["labels", "import", "damaged.csv", "--source", "human"];
    let said = instance.refused(&damaged).await?;
    ensure!(said.contains("line 3: is not UTF-8") && said.contains("line 5: a quote is not closed"), "{said}");
    ensure!(said.contains("continue with --from-line 5"), "{said}");
    let rows = read("&labelled=true").await?;
    ensure!(rows["data"][0]["generation_id"] == **one, "{rows}");
    let said = instance.refused(&[&damaged[..], &["--from-line", "5"]].concat()).await?;
    ensure!(!said.contains("line 3") && said.contains("line 5: a quote is not closed"), "{said}");
    let audited = instance.run(&["doctor", "--audit"]).await?;
    ensure!(audited.status.success(), "{}", String::from_utf8_lossy(&audited.stdout));
    Ok(())
}

#[tokio::test]
async fn import_names_rejected_lines_in_order_and_goes_on() -> Result<()> {
    let TestGateway { instance, server, inference, .. } = TestGateway::start("").await?;
    let write = |file: &str, text: &str| std::fs::write(instance.path().join(file), text);
    let ids = answers(&instance, &server, &inference.secret, QUESTIONS, 2).await?;
    let [one, two] = [&ids[0], &ids[1]];
    // Lines that the server rejects stand among those that the command rejects.
    let rows = [
        "generation_id,question,label,source".to_owned(),
        format!("{one},refund,maybe,human"),
        format!("{one},refund,\"{}\",human", "x".repeat(70_000)),
        format!("{one},refund,true,human,more"),
        "gen-dec-unknown,refund,true,human".to_owned(),
        format!("{two},refund,TRUE,human"),
    ];
    write("order.csv", &rows.join("\n"))?;
    let imported = instance.run(&["labels", "import", "order.csv", "--json"]).await?;
    let said = String::from_utf8_lossy(&imported.stderr).into_owned();
    let faults =
        ["\"maybe\" is not a label", "is longer than 65536 bytes", "has 5 cells, the head has 4", "generation not"];
    let lines = (2..).zip(faults).map(|(line, fault)| said.find(&format!("line {line}: {fault}")));
    ensure!(lines.clone().all(|found| found.is_some()) && lines.is_sorted(), "{said}");
    let counts: Value = serde_json::from_slice(&imported.stdout)?;
    ensure!(counts == json!({"changed": 1, "unchanged": 0, "rejected": 4}), "{counts}");

    let row = format!(r#""question":"refund","label":true,"label":false,"source":"human","generation_id":"{one}""#);
    write("twice.jsonl", &format!("{{{row}}}\n"))?;
    let output = instance.run(&["labels", "import", "twice.jsonl"]).await?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1) && said.contains("line 1: label: is there twice"), "{said}");
    write("semicolons.csv", "generation_id;question;label\n")?;
    for (arguments, expected) in [
        (&["order.csv", "--from-line", "900"][..], "line 900 does not exist: the last line of the file is 6"),
        (&["order.csv", "--from-line", "0"], "--from-line"),
        (&["semicolons.csv"], "separated by commas; found: \"generation_id;question;label\""),
    ] {
        let said = instance.refused(&[&["labels", "import"], arguments].concat()).await?;
        ensure!(said.contains(expected) && !said.contains("are imported"), "{arguments:?}: {said}");
    }
    Ok(())
}

#[tokio::test]
async fn exported_labels_with_control_characters_are_read_as_they_were() -> Result<()> {
    let TestGateway { instance, server, inference, .. } = TestGateway::start("").await?;
    let options = ["a\nb", "\tx", "\u{202e}r", "\u{feff}", "=1+1", "'=1", "\"q\"", "\\u000a", "\u{9b}2J", "plain"];
    let criteria: serde_json::Map<String, Value> =
        options.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
    let questions = json!({"queue": {"type": "choice", "instructions": "?", "criteria": criteria}}).to_string();
    let ids = answers(&instance, &server, &inference.secret, &questions, options.len()).await?;
    for (id, option) in ids.iter().zip(options) {
        let body = json!({"generation_id": id, "category": "other", "labels": {"queue": option}, "source": "human"});
        let call = Call::post("/api/v1/generation/feedback").json(body.to_string()).key(&inference.secret);
        server.send(&call).await?.ok()?;
    }
    for (file, options) in [("odd.csv", &["--csv"][..]), ("odd.jsonl", &[])] {
        instance.json(&[&["labels", "export", "triage", "--output", file], options].concat()).await?;
        let counts = instance.json(&["labels", "import", file]).await?;
        ensure!(counts == json!({"changed": 0, "unchanged": 10, "rejected": 0}), "{file}: {counts}");
    }
    // A terminal that shows the file is not controlled by it.
    let text = std::fs::read_to_string(instance.path().join("odd.csv"))?;
    ensure!(text.lines().count() == 11 && !text.contains(['\t', '\u{9b}', '\u{202e}', '\u{feff}']), "{text:?}");
    Ok(())
}

/// Creates a preset, asks it, and returns the ids of the answers.
async fn answers(
    instance: &Instance,
    server: &Server,
    secret: &str,
    questions: &str,
    count: usize,
) -> Result<Vec<String>> {
    let preset = format!(r#"{{"model":"sandbox/decider","questions":{questions}}}"#);
    std::fs::write(instance.path().join("triage.json"), preset)?;
    instance.json(&["preset", "create", "triage", "--from", "triage.json"]).await?;
    ask(server, secret, count).await
}

/// Asks the preset, and returns the ids of the answers.
async fn ask(server: &Server, secret: &str, count: usize) -> Result<Vec<String>> {
    let body = |number| json!({"model": "@preset/triage", "questions": {}, "state": format!("It smokes {number}.")});
    let mut ids = Vec::new();
    for number in 0..count {
        let ask = Call::post("/api/v1/systemone").json(body(number).to_string()).key(secret);
        let answer = server.send(&ask).await?.ok()?;
        ids.push(answer["id"].as_str().context("no id")?.to_owned());
    }
    Ok(ids)
}

#[tokio::test]
async fn report_has_one_version_of_the_preset_if_one_is_named() -> Result<()> {
    let TestGateway { instance, server, inference, .. } = TestGateway::start("").await?;
    answers(&instance, &server, &inference.secret, QUESTIONS, 3).await?;
    instance.json(&["preset", "create", "triage", "--from", "triage.json"]).await?;
    tokio::time::sleep(PROMISED).await;
    let labelled = ask(&server, &inference.secret, 2).await?;
    let body =
        json!({"generation_id": labelled[0], "category": "other", "labels": {"refund": true}, "source": "human"});
    let feedback = Call::post("/api/v1/generation/feedback").json(body.to_string()).key(&inference.secret);
    server.send(&feedback).await?.ok()?;
    let report = async |options: &[&str]| {
        let output = instance.run(&[&["eval", "report", "--preset", "triage", "--json"], options].concat()).await?;
        let shown: Value = serde_json::from_slice(&output.stdout)?;
        let groups = shown["data"]["groups"].as_array().context("no groups")?;
        let figures = groups.iter().map(|group| json!([group["preset_version"], group["answers"]])).collect();
        anyhow::Ok((output.status.code(), Value::Array(figures)))
    };
    for (options, code, expected) in [
        (&[][..], 0, json!([[1, 3], [2, 2]])),
        (&["--version", "2"], 0, json!([[2, 2]])),
        // It has no label.
        (&["--version", "1"], 3, json!([[1, 3]])),
        (&["--version", "3"], 3, json!([])),
    ] {
        let found = report(options).await?;
        ensure!(found == (Some(code), expected), "{options:?}: {found:?}");
    }
    let said = instance.refused(&["eval", "report", "--preset", "triage", "--version", "x"]).await?;
    ensure!(said.contains("--version"), "{said}");
    Ok(())
}

#[tokio::test]
async fn report_of_evidence_counts_labels_by_source_and_has_no_threshold() -> Result<()> {
    let TestGateway { instance, server, inference, .. } = TestGateway::start("").await?;
    let questions = r#"{"refund":{"type":"noul","instructions":"?"},
        "queue":{"type":"choice","instructions":"?","criteria":{"billing":null,"other":null}},
        "heat":{"type":"score","instructions":"?","criteria":["calm","cross","furious"]}}"#;
    // The rows are more than a page.
    let ids = answers(&instance, &server, &inference.secret, questions, 350).await?;
    for (number, id) in ids.iter().take(9).enumerate() {
        let source = if number < 6 { "human" } else { "system" };
        let labels = json!({"refund": number % 3 > 0});
        let body = json!({"generation_id": id, "category": "other", "labels": labels, "source": source});
        let call = Call::post("/api/v1/generation/feedback").json(body.to_string()).key(&inference.secret);
        server.send(&call).await?.ok()?;
    }
    let report = ["eval", "report", "--preset", "triage", "--json"];
    let output = instance.run(&[&report[..], &["--html", "report.html"]].concat()).await?;
    let said = String::from_utf8_lossy(&output.stderr);
    // The other questions have no label, so they are left out.
    ensure!(output.status.code() == Some(0), "{said}");
    let shown: Value = serde_json::from_slice(&output.stdout)?;
    let groups = shown["data"]["groups"].as_array().context("no groups")?;
    ensure!(groups.len() == 3 && groups.iter().all(|group| group["answers"] == 350), "{shown}");
    ensure!(groups.iter().all(|group| group["threshold"].is_null() && group["volunteered"] == true), "{shown}");
    let refund = groups.iter().find(|group| group["question"] == "refund").context("no refund")?;
    ensure!(refund["labels"] == json!({"human": 6, "system": 3}) && refund["answers_for_candidates"] == 0, "{refund}");
    ensure!(refund["finding"].as_str().is_some_and(|finding| finding.contains("people chose the labels")), "{refund}");
    ensure!(refund["accuracy"]["total"] == 9 && refund["origin"]["provider"] == "sandbox", "{refund}");
    let page = std::fs::read_to_string(instance.path().join("report.html"))?;
    ensure!(page.contains("6 human, 3 system (volunteered)") && page.contains("<svg"), "{page}");

    // An inference key reads the presets of its workspace.
    std::fs::write(instance.path().join("key"), &inference.secret)?;
    let url = format!("http://{}/api/v1", server.address());
    let remote = instance.run(&[&report[..], &["--url", &url, "--key-file", "key"]].concat()).await?;
    ensure!(remote.stdout == output.stdout, "{}", String::from_utf8_lossy(&remote.stderr));
    let failed = instance.run(&[&report[..], &["--require", "refund.accuracy>=0.99"]].concat()).await?;
    ensure!(failed.status.code() == Some(1), "{}", String::from_utf8_lossy(&failed.stderr));
    instance.workspace("other").await?;
    for (options, expected) in [
        (&["--workspace", "other"][..], "preset \"triage\" not found"),
        (&["--workspace", "nobody"], "workspace \"nobody\" not found"),
        (&["--since", "yesterday"], "--since \"yesterday\" is neither a date nor"),
        (&["--version", "0"], "--version"),
    ] {
        let said = instance.refused(&[&report[..4], options].concat()).await?;
        ensure!(said.contains(expected), "{options:?}: {said}");
    }
    // A time with an offset, as of other commands.
    let none = instance.run(&[&report[..], &["--until", "2020-01-01T01:00:00+01:00"]].concat()).await?;
    let said = String::from_utf8_lossy(&none.stderr);
    ensure!(
        none.status.code() == Some(3) && said.contains("has no evidence of requests before 2020-01-01T00"),
        "{said}"
    );
    let shown: Value = serde_json::from_slice(&none.stdout)?;
    ensure!(shown["data"]["groups"] == json!([]), "{shown}");
    Ok(())
}
