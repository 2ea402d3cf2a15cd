//! Evidence after a crash, and labels from files.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tollgate_tests::Call;

use crate::gateway::{QUESTIONS, TestGateway};

#[tokio::test]
async fn evidence_survives_a_crash_once_and_takes_labels_from_files() -> Result<()> {
    let TestGateway { instance, server, inference, .. } = TestGateway::start("").await?;
    let write = |file: &str, text: &str| std::fs::write(instance.path().join(file), text);
    write("triage.json", &format!(r#"{{"model":"sandbox/decider","questions":{QUESTIONS}}}"#))?;
    instance.json(&["preset", "create", "triage", "--from", "triage.json"]).await?;
    let ask = Call::post("/api/v1/systemone")
        .json(r#"{"model":"@preset/triage","questions":{},"state":"It smokes."}"#)
        .key(&inference.secret);
    let mut ids = Vec::new();
    for _ in 0..5 {
        let answer = server.send(&ask).await?.ok()?;
        ids.push(answer["id"].as_str().context("no id")?.to_owned());
    }
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
    let audited = instance.run(&["doctor", "--audit"]).await?;
    ensure!(audited.status.success(), "{}", String::from_utf8_lossy(&audited.stdout));
    Ok(())
}
