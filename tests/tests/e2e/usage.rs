//! Usage records on the command line and over HTTP.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tollgate_tests::{Behaviour, Call, Instance, SecondHand, Upstream};

use crate::costs::rows;
use crate::gateway::{ANSWER, TestGateway, body, body_with};

async fn csv(instance: &Instance, arguments: &[&str]) -> Result<Vec<Vec<String>>> {
    let output = instance.run(&[&["usage", "list", "--csv"], arguments].concat()).await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    ensure!(text.ends_with("\r\n") && !text.replace("\r\n", "").contains('\n'), "lines end as RFC 4180 says: {text:?}");
    Ok(text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect())
}

async fn listed(instance: &Instance, arguments: &[&str]) -> Result<Vec<Value>> {
    let list = instance.json(&[&["usage", "list"], arguments].concat()).await?;
    Ok(rows(&list)?.clone())
}

#[tokio::test]
async fn records_are_found_by_key_workspace_and_time() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let instance = &gateway.instance;
    let other_workspace = instance.workspace("other").await?;
    let second = instance.inference_key().await?;
    let other = instance.key(&["--name", "other", "--workspace", &other_workspace]).await?;
    gateway.decide(body_with(r#""session_id":"=1+1","user":"@x""#)).await?;
    for key in [&second, &second, &other] {
        gateway.server.decide(&key.secret, body("sandbox/decider")).await?.ok()?;
    }
    ensure!(listed(instance, &[]).await?.len() == 4, "all workspaces");
    let default_workspace = instance.default_workspace().await?;
    ensure!(listed(instance, &["--workspace", &default_workspace]).await?.len() == 3);
    ensure!(listed(instance, &["--workspace", "other"]).await?.len() == 1, "by name");
    ensure!(listed(instance, &["--key", &second.hash]).await?.len() == 2);
    ensure!(listed(instance, &["--key", &second.id]).await?.len() == 2);
    ensure!(listed(instance, &["--key", &other.hash]).await?.len() == 1, "a key is of its own workspace");
    ensure!(listed(instance, &["--key", &second.hash, "--workspace", &other_workspace]).await?.is_empty());
    ensure!(listed(instance, &["--workspace", &other_workspace]).await?.len() == 1);
    ensure!(listed(instance, &["--limit", "1"]).await?.len() == 1);
    ensure!(listed(instance, &["--since", "2020-01-01", "--until", "2999-01-01T00:00:00+01:00"]).await?.len() == 4);
    ensure!(listed(instance, &["--since", "2999-01-01"]).await?.is_empty());
    ensure!(listed(instance, &["--until", "2020-01-01"]).await?.is_empty());
    let record = listed(instance, &["--key", &gateway.inference.hash]).await?.remove(0);
    ensure!(record["guardrail_ids"] == serde_json::json!([]) && record["charged_at"].is_string(), "{record}");

    let table = csv(instance, &["--key", &gateway.inference.hash]).await?;
    let column = |name: &str| table[0].iter().position(|own| own == name).with_context(|| format!("no column {name}"));
    ensure!(table.len() == 2, "{table:?}");
    ensure!(table[1][column("session_id")?] == "'=1+1" && table[1][column("user")?] == "'@x", "{table:?}");
    ensure!(table[1][column("id")?] == record["id"].as_str().unwrap_or_default());
    let cost: f64 = table[1][column("cost_usd")?].parse()?;
    ensure!(Some(cost) == record["total_cost"].as_f64() && !table[1][column("cost_usd")?].contains('e'), "{table:?}");
    ensure!(table[1][column("api_key")?] == gateway.inference.id);

    // Records of deleted keys remain, in any workspace.
    ensure!(instance.run(&["key", "delete", &other.hash]).await?.status.success());
    ensure!(listed(instance, &["--key", &other.hash]).await?.len() == 1, "of a key that is gone");
    ensure!(csv(instance, &["--key", &other.hash]).await?.len() == 2);

    // The server resolves names, and hides those of other workspaces.
    let twins = [instance.key(&["--name", "twin"]).await?, instance.key(&["--name", "twin"]).await?];
    let said = instance.refused(&["usage", "sum", "--by", "model", "--key", "twin"]).await?;
    ensure!(twins.iter().all(|twin| said.contains(&twin.id)), "{said}");
    let narrowed = instance.key(&["--management", "--workspace", "other"]).await?;
    for path in ["/usage", "/usage/rejections", "/generations"] {
        for (filter, status) in [
            ("key=twin".to_owned(), 404),
            (format!("key={}", second.id), 404),
            (format!("key={}", other.id), 200),
            (format!("workspace_id={default_workspace}"), 404),
            ("workspace_id=default".to_owned(), 404),
            ("workspace_id=other".to_owned(), 200),
        ] {
            let call = Call::get(format!("/api/v1{path}?{filter}")).key(&narrowed.secret);
            let reply = gateway.server.send(&call).await?;
            ensure!(reply.status == status, "{path}?{filter}: {} {}", reply.status, reply.text());
        }
        let call = Call::get(format!("/api/v1{path}?key=twin")).key(&gateway.management.secret);
        let ambiguous = gateway.server.send(&call).await?.envelope(409)?;
        ensure!(ambiguous["error"]["metadata"]["ids"].as_array().map(Vec::len) == Some(2), "{ambiguous}");
    }

    let unknown = "0".repeat(64);
    for (arguments, word) in [
        (vec!["--since", "yesterday"], "--since"),
        (vec!["--until", "2027-02-30"], "--until"),
        (vec!["--since", "2027-01-02", "--until", "2027-01-01"], "later than"),
        (vec!["--key", "sk-tg-v1-00"], "not found"),
        (vec!["--key", &unknown], "not found"),
        (vec!["--key", &gateway.management.hash], "key"),
        (vec!["--workspace", "nowhere"], "workspace"),
    ] {
        let said = instance.refused(&[vec!["usage", "list"], arguments].concat()).await?;
        ensure!(said.contains(word), "{said}");
    }
    Ok(())
}

#[tokio::test]
async fn records_are_filtered_and_summed_exactly() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let beta = Upstream::start(Behaviour::status(500)).await?;
    let gateway = TestGateway::with_providers_and_sandbox(&alpha, &beta, 5_000).await?;
    let instance = &gateway.instance;
    let other_workspace = instance.workspace("other").await?;
    let other = instance.key(&["--name", "other bot", "--workspace", "other", "--limit-usd", "2.50"]).await?;
    for _ in 0..3 {
        gateway.decide(body("acme/alone")).await?;
    }
    gateway.server.decide(&other.secret, body("acme/alone")).await?.ok()?;
    gateway.decide(body("sandbox/decider")).await?;
    alpha.behave(Behaviour::status(500));
    ensure!(gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?.status >= 500);

    let failed = listed(instance, &["--status", "failed"]).await?;
    ensure!(failed.len() == 1 && failed[0]["outcome"] == "failed", "{failed:?}");
    ensure!(failed[0]["reason"] == "http_error (500)", "{failed:?}");
    ensure!(listed(instance, &["--status", "completed"]).await?.iter().all(|record| record["reason"].is_null()));
    ensure!(listed(instance, &["--status", "completed", "--key", "other bot"]).await?.len() == 1);
    ensure!(listed(instance, &["--provider", "alpha"]).await?.len() == 5);
    ensure!(listed(instance, &["--provider", "alpha", "--status", "completed"]).await?.len() == 4);
    ensure!(listed(instance, &["--provider", "nowhere"]).await?.is_empty());
    let table = String::from_utf8(instance.run(&["usage", "list", "--status", "failed"]).await?.stdout)?;
    for word in ["KEY", "PROVIDER", "STATUS", "REASON", "alpha", "failed", "http_error (500)", &gateway.inference.id] {
        ensure!(table.contains(word), "{word} is missing: {table}");
    }
    let said = instance.refused(&["usage", "list", "--status", "broken"]).await?;
    ensure!(said.contains("completed") && said.contains("abandoned"), "{said}");

    // 429 input tokens at 0.042 USD per million: 0.000018018 USD for each answer.
    let document = async |arguments: &[&str]| {
        let output = instance.run(&[arguments, &["--json"]].concat()).await?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    };
    let models = document(&["usage", "sum", "--by", "model"]).await?;
    let alone = r#""model":"acme/alone","requests":5,"#;
    ensure!(models.contains(alone), "{models}");
    ensure!(models.contains(r#""total":{"requests":6,"#), "{models}");
    let keys = document(&["usage", "sum", "--by", "key", "--key", "other bot"]).await?;
    let total = r#""requests":1,"input_tokens":429,"output_tokens":31,"cost":0.000018018}"#;
    let of_other = format!(r#"{{"key":"{}","name":"other bot",{total}"#, other.id);
    ensure!(keys.contains(&of_other) && keys.contains(&format!(r#""total":{{{total}"#)), "{keys}");
    let days = document(&["usage", "sum", "--by", "day", "--workspace", &other_workspace]).await?;
    ensure!(days.matches(total).count() == 2, "{days}");
    let printed = String::from_utf8(instance.run(&["usage", "sum", "--by", "model"]).await?.stdout)?;
    ensure!(printed.contains("COST USD") && printed.contains("acme/alone") && printed.contains("total"), "{printed}");

    let list = document(&["key", "list", "--workspace", "other"]).await?;
    ensure!(list.contains(r#""limit":2.5,"#) && list.contains(r#""usage":0.000018018,"#), "{list}");
    ensure!(list.contains(r#""last_used_at":"2"#), "{list}");
    let printed = String::from_utf8(instance.run(&["key", "list", "--workspace", "other"]).await?.stdout)?;
    ensure!(printed.contains("SPENT USD") && printed.contains("0.000018018"), "{printed}");
    Ok(())
}

/// Characters that control a terminal or forge a line.
const CONTROLS: &str = "a\u{1b}[2J\u{9b}31m\r\nforged\t\u{7f}\u{202e}z";

fn ensure_inert(output: &[u8]) -> Result<String> {
    let text = String::from_utf8(output.to_vec())?;
    let acts = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    ensure!(!text.replace("\r\n", "\n").contains(acts), "{text:?}");
    ensure!(!text.lines().any(|line| line.starts_with("forged")), "{text:?}");
    Ok(text)
}

#[tokio::test]
async fn commands_escape_control_characters_and_json_keeps_the_value() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let instance = &gateway.instance;
    let member = serde_json::to_string(CONTROLS)?;
    let answer = gateway.decide(body_with(&format!("\"session_id\":{member},\"trace\":{{\"t\":{member}}}"))).await?;
    let id = answer["id"].as_str().context("no id")?;
    let csv = ensure_inert(&instance.run(&["usage", "list", "--csv"]).await?.stdout)?;
    ensure!(csv.contains(r"a\u001b[2J\u009b31m\u000d\u000aforged\u0009\u007f\u202ez"), "{csv}");
    ensure!(csv.lines().count() == 2, "{csv}");
    let shown = ensure_inert(&instance.run(&["usage", "show", id]).await?.stdout)?;
    let json = ensure_inert(&instance.run(&["usage", "show", id, "--json"]).await?.stdout)?;
    let record = tollgate_tests::record(serde_json::from_str(&json)?);
    ensure!(record["session_id"] == CONTROLS && record["trace"]["t"] == CONTROLS, "{json}");
    ensure!(shown.contains("session_id: a\\u001b[2J"), "{shown}");

    let mut row = crate::catalogue::row("acme/one", "acme/one", "text");
    row["description"] = CONTROLS.into();
    row["architecture"]["output_modalities"] = serde_json::json!(["text", CONTROLS]);
    let import = |row: &Value| std::fs::write(instance.path().join("rows.json"), serde_json::json!([row]).to_string());
    import(&row)?;
    instance.json(&["catalogue", "import", "rows.json"]).await?;
    // A running server applies an import within a second.
    let mut shown = String::new();
    for _ in 0..100 {
        shown = ensure_inert(&instance.run(&["catalogue", "show", "acme/one"]).await?.stdout)?;
        if !shown.is_empty() {
            break;
        }
    }
    ensure!(serde_json::from_str::<Value>(&shown)?["description"] == CONTROLS, "{shown}");
    ensure_inert(&instance.run(&["catalogue", "list"]).await?.stdout)?;
    for member in ["id", "canonical_slug"] {
        let mut bad = row.clone();
        bad[member] = format!("acme/{CONTROLS}").into();
        import(&bad)?;
        let refused = instance.run(&["catalogue", "import", "rows.json"]).await?;
        let said = ensure_inert(&refused.stderr)?;
        ensure!(!refused.status.success() && said.contains("must be author/slug"), "{said}");
    }
    Ok(())
}

#[tokio::test]
async fn table_with_several_pages_is_complete() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    gateway.decide(body("sandbox/decider")).await?;
    // The command waits until the server has folded the charge.
    ensure!(csv(&gateway.instance, &[]).await?.len() == 2);
    let database = SecondHand::of(&gateway.instance).await?;
    let mut script = String::from("BEGIN; CREATE TEMP TABLE one AS SELECT * FROM usage_records LIMIT 1;");
    for number in 0..2_500 {
        // Several records share a timestamp, so that pages end among them.
        let at = number / 7;
        write!(
            script,
            "UPDATE one SET id = CAST('gen-dec-more-no-{number}' AS BLOB), created_at = created_at + {at} % 2;\
             INSERT INTO usage_records SELECT * FROM one;"
        )?;
    }
    database.execute(&(script + "COMMIT")).await?;
    let table = csv(&gateway.instance, &[]).await?;
    let ids: std::collections::HashSet<&str> = table.iter().skip(1).map(|row| row[0].as_str()).collect();
    ensure!((table.len(), ids.len()) == (2_502, 2_501), "{} lines, {} ids", table.len(), ids.len());
    database.close().await
}

#[tokio::test]
async fn sum_selects_and_groups_by_the_time_of_the_charge() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    gateway.decide(body("sandbox/decider")).await?;
    ensure!(listed(&gateway.instance, &[]).await?.len() == 1);
    let database = SecondHand::of(&gateway.instance).await?;
    // The request began a second before midnight, and its charge belongs to the next day.
    let midnight: u64 = 1_806_537_600_000;
    let at = format!(
        "UPDATE usage_records SET created_at = {midnight} - 1000, charged_at = {midnight}; UPDATE usage_sums SET day = {midnight}"
    );
    database.execute(&at).await?;
    for (since, until, requests) in [("2027-04-01", "2027-04-02", 1), ("2027-03-31", "2027-04-01", 0)] {
        for by in ["day", "key", "model"] {
            let arguments = ["usage", "sum", "--by", by, "--since", since, "--until", until];
            let sums = gateway.instance.json(&arguments).await?;
            ensure!(sums["total"]["requests"] == requests, "{sums}");
            ensure!(by != "day" || requests == 0 || sums["data"][0]["day"] == since, "{sums}");
        }
        let list = listed(&gateway.instance, &["--since", since, "--until", until]).await?;
        ensure!(list.len() == requests, "lists and sums select by the charge");
    }
    database.close().await
}

#[tokio::test]
async fn record_has_client_address_unless_switched_off() -> Result<()> {
    for (switch, expected) in [("", Value::from("203.0.113.9")), ("record_client_address = false", Value::Null)] {
        let gateway = TestGateway::start(&format!("[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n{switch}\n")).await?;
        let call = tollgate_tests::decisions(&gateway.inference.secret, body("sandbox/decider"));
        let reply = gateway.server.send(&call.header("x-forwarded-for", "198.51.100.7, 203.0.113.9")).await?.ok()?;
        let id = reply["id"].as_str().context("no id")?;
        let read = Call::get(format!("/api/v1/generation?id={id}")).key(&gateway.inference.secret);
        let served = gateway.server.send(&read).await?.ok()?;
        ensure!(served["data"]["client_address"] == expected, "{served}");
        let shown = gateway.instance.json(&["usage", "show", id]).await?;
        ensure!(shown["client_address"] == expected, "{shown}");
        let record = listed(&gateway.instance, &[]).await?.remove(0);
        ensure!(record["client_address"] == expected, "{record}");
        let table = csv(&gateway.instance, &[]).await?;
        let column = table[0].iter().position(|name| name == "client_address").context("no column")?;
        ensure!(table[1][column] == expected.as_str().unwrap_or_default(), "{table:?}");
    }
    Ok(())
}

#[tokio::test]
async fn record_is_readable_by_its_own_key_and_management_keys_only() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let other_workspace = gateway.instance.workspace("other").await?;
    let stranger = gateway.instance.key(&["--name", "stranger", "--workspace", &other_workspace]).await?;
    let colleague = gateway.instance.inference_key().await?;
    let id = gateway.decide(body("sandbox/decider")).await?["id"].as_str().context("no id")?.to_owned();
    let read = Call::get(format!("/api/v1/generation?id={id}"));
    for secret in [&gateway.inference.secret, &gateway.management.secret] {
        ensure!(gateway.server.send(&read.clone().key(secret)).await?.ok()?["data"]["id"] == id.as_str());
    }
    let refused = gateway.server.send(&read.clone().key(&stranger.secret)).await?;
    let unknown = gateway.server.send(&Call::get("/api/v1/generation?id=gen-dec-0").key(&stranger.secret)).await?;
    refused.envelope(404)?;
    ensure!(refused.body.len() == unknown.body.len(), "it is distinguishable from a missing one");
    gateway.server.send(&read.clone().key(&colleague.secret)).await?.envelope(404)?;
    Ok(())
}

#[tokio::test]
async fn usage_is_summed_over_http() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let beta = Upstream::start(Behaviour::status(500)).await?;
    let gateway = TestGateway::with_providers(&alpha, &beta, 5_000).await?;
    let instance = &gateway.instance;
    let other = instance.key(&["--name", "other bot"]).await?;
    for key in [&gateway.inference, &gateway.inference, &other] {
        gateway.server.decide(&key.secret, body("acme/alone")).await?.ok()?;
    }
    let get = async |secret: &str, path: &str| {
        let reply = gateway.server.send(&Call::get(format!("/api/v1{path}")).key(secret)).await?;
        let text = reply.text();
        ensure!(reply.status == 200, "{path}: {text}");
        Ok((serde_json::from_str::<Value>(&text)?, text))
    };
    // 429 input tokens at 0.042 USD per million: 0.000018018 USD for each answer.
    let (sums, text) = get(&gateway.management.secret, "/usage?group_by=key,day").await?;
    let data = rows(&sums)?;
    ensure!(data.len() == 2 && text.contains("\"cost\":0.000036036"), "{text}");
    ensure!(
        text.ends_with("\"total\":{\"requests\":3,\"input_tokens\":1287,\"output_tokens\":93,\"cost\":0.000054054}}"),
        "{text}"
    );
    let row = data.iter().find(|row| row["key"] == other.id.as_str()).context("no row of the key")?;
    ensure!(row["name"] == "other bot" && row["requests"] == 1 && row["day"].is_string(), "{row}");
    let (own, text) = get(&other.secret, "/usage").await?;
    ensure!(own["total"]["requests"] == 1 && rows(&own)?.len() == 1, "{text}");
    let (activity, text) = get(&other.secret, "/activity").await?;
    ensure!(rows(&activity)?.len() == 1 && activity["data"][0]["date"] == row["day"], "today counts: {text}");
    ensure!(activity["data"][0]["model"] == "acme/alone" && activity["data"][0]["provider_name"] == "alpha", "{text}");
    let (list, text) = get(&other.secret, "/generations").await?;
    ensure!(rows(&list)?.len() == 1 && list["next_cursor"].is_null(), "{text}");
    ensure!(get(&other.secret, "/usage/rejections").await?.0["total"]["requests"] == 0);

    // Sums outlive their key.
    ensure!(instance.run(&["key", "delete", &other.hash]).await?.status.success());
    let (sums, text) = get(&gateway.management.secret, &format!("/usage?group_by=key&key={}", other.id)).await?;
    ensure!(sums["total"]["requests"] == 1, "{text}");
    let audit = instance.json(&["doctor", "--audit"]).await?;
    ensure!(audit.to_string().contains("\"sums\":2"), "{audit}");
    Ok(())
}
