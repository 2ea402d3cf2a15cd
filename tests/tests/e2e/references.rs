//! Workspaces and keys by name, prefix and secret on the command line, and dates in options.

use anyhow::{Result, ensure};
use tollgate_tests::{Instance, Report};

async fn text(instance: &Instance, arguments: &[&str]) -> Result<String> {
    let output = instance.run(arguments).await?;
    ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test]
async fn workspace_is_found_by_unique_name() -> Result<()> {
    let instance = Instance::new("")?;
    let acme = instance.workspace("acme labs").await?;
    let twins = [instance.workspace("Twin").await?, instance.workspace("Twin").await?];
    // A slug is no name of another workspace.
    let by_slug = instance.json(&["workspace", "show", "twin"]).await?;
    ensure!(by_slug["id"] == twins[0].as_str(), "{by_slug}");
    let made = instance.json(&["key", "create", "--name", "k", "--workspace", "acme labs"]).await?;
    ensure!(made["workspace_id"] == acme.as_str(), "{made}");
    let mut report = Report::default();
    for command in [
        &["workspace", "show"][..],
        &["workspace", "show", "--workspace"],
        &["workspace", "suspend"],
        &["workspace", "resume"],
        &["workspace", "rates", "--rpm", "5"],
        &["key", "list", "--workspace"],
        &["usage", "list", "--workspace"],
        &["guardrail", "list", "--workspace"],
        &["document", "list", "--workspace"],
        &["destination", "list", "--workspace"],
        &["container", "list", "c", "--workspace"],
    ] {
        report.case(&format!("{command:?}"), instance.json(&[command, &["acme labs"]].concat()).await);
        let said = instance.refused(&[command, &["acme lab"]].concat()).await;
        report.case(
            &format!("{command:?} of an unknown name"),
            said.and_then(|said| {
                ensure!(said.contains("\"acme lab\" not found"), "{said}");
                Ok(())
            }),
        );
        let said = instance.refused(&[command, &["Twin"]].concat()).await;
        report.case(
            &format!("{command:?} of an ambiguous name"),
            said.and_then(|said| {
                ensure!(twins.iter().all(|id| said.contains(id)) && !said.contains(&acme), "{said}");
                Ok(())
            }),
        );
    }
    report.finish()
}

#[tokio::test]
async fn key_is_found_by_secret_prefix_and_unique_name() -> Result<()> {
    let instance = Instance::new("")?;
    let workspace = instance.workspace("acme").await?;
    let key = instance.key(&["--name", "billing bot", "--workspace", &workspace]).await?;
    let twins = [instance.inference_key().await?, instance.management_key().await?];
    for reference in [key.secret.as_str(), &key.hash, &key.hash[..8], &key.hash[..40], &key.id, "billing bot"] {
        let shown = instance.json(&["key", "show", reference]).await?;
        ensure!(shown["id"] == key.id.as_str(), "{shown}");
        let disabled = instance.json(&["key", "disable", reference]).await?;
        ensure!(disabled["id"] == key.id.as_str() && disabled["disabled"] == true, "{disabled}");
        let enabled = instance.json(&["key", "enable", reference]).await?;
        ensure!(enabled["disabled"] == false, "{enabled}");
    }
    let updated = instance.json(&["key", "update", "billing bot", "--rpm", "7"]).await?;
    ensure!(updated["id"] == key.id.as_str() && updated["requests_per_minute"] == 7, "{updated}");
    let said = instance.refused(&["key", "delete", "tests"]).await?;
    ensure!(twins.iter().all(|twin| said.contains(&twin.id)) && !said.contains(&key.id), "{said}");
    let other = if key.secret.ends_with('0') { '1' } else { '0' };
    let unknown = format!("{}{other}", &key.secret[..key.secret.len() - 1]);
    for reference in ["billing", &key.hash[..7], "sk-tg-v1-00", &unknown] {
        for command in ["show", "disable", "enable", "rotate", "delete"] {
            let said = instance.refused(&["key", command, reference]).await?;
            ensure!(said.contains("not found") && !said.contains(reference), "{command}: {said}");
        }
    }
    let rotated = instance.json(&["key", "rotate", &key.secret]).await?;
    ensure!(rotated["id"] == key.id.as_str(), "{rotated}");
    let said = instance.refused(&["key", "show", &key.secret]).await?;
    ensure!(said.contains("not found") && !said.contains(&key.secret), "the old secret: {said}");
    let deleted = instance.json(&["key", "delete", "billing bot"]).await?;
    ensure!(deleted["deleted"] == true, "{deleted}");
    instance.refused(&["key", "show", "billing bot"]).await.map(drop)
}

#[tokio::test]
async fn guardrail_is_assigned_to_keys_by_any_reference() -> Result<()> {
    let instance = Instance::new("")?;
    let guardrail = instance.guardrail(&[]).await?;
    let mut keys = Vec::new();
    for name in ["one", "two", "three", "four"] {
        keys.push(instance.key(&["--name", name]).await?);
    }
    let [one, two, three, four] = keys.as_slice() else { anyhow::bail!("no keys") };
    let references = ["one", &two.hash[..10], &three.secret, &four.id, "one"];
    let assign = |command: &'static str| [&["guardrail", command, guardrail.as_str()][..], &references].concat();
    let assigned = instance.json(&assign("assign")).await?;
    ensure!(assigned["assigned_count"] == 4, "{assigned}");
    let unassigned = instance.json(&assign("unassign")).await?;
    ensure!(unassigned["unassigned_count"] == 4, "{unassigned}");
    for word in ["five", "sk-tg-v1-00", &one.hash[..7]] {
        let said = instance.refused(&["guardrail", "assign", &guardrail, "one", word]).await?;
        ensure!(said.contains("the key number 2") && said.contains("key not found"), "{said}");
        ensure!(!said.contains(word), "{said}");
    }
    let keys = instance.json(&["key", "list", "--guardrail", &guardrail]).await?;
    ensure!(keys["total_count"] == 0, "a failed command changes nothing: {keys}");
    Ok(())
}

#[tokio::test]
async fn expiry_is_date_or_time() -> Result<()> {
    let instance = Instance::new("")?;
    let key = instance.key(&["--expires-at", "2999-12-01"]).await?;
    let expiry = async || Ok::<_, anyhow::Error>(instance.json(&["key", "show", &key.id]).await?["expires_at"].clone());
    ensure!(expiry().await? == "2999-12-01T00:00:00Z", "{}", expiry().await?);
    instance.json(&["key", "update", &key.id, "--expires-at", "2999-12-02T01:00:00+01:00"]).await?;
    ensure!(expiry().await? == "2999-12-02T00:00:00Z", "{}", expiry().await?);
    let said = instance.refused(&["key", "update", &key.id, "--expires-at", "2999-02-30"]).await?;
    ensure!(said.contains("--expires-at") && said.contains("neither a date nor"), "{said}");
    Ok(())
}

#[tokio::test]
async fn missing_limits_are_printed_as_no_limit() -> Result<()> {
    let instance = Instance::new("")?;
    instance.workspace("acme").await?;
    let budgets = text(&instance, &["workspace", "budget", "acme", "--daily", "1.50", "--weekly", "none"]).await?;
    ensure!(budgets.contains("\ndaily  1.5 ") && !budgets.contains("weekly"), "{budgets}");
    let key = instance.inference_key().await?;
    let shown = text(&instance, &["key", "show", &key.id]).await?;
    ensure!(shown.contains("\nlimit: -\n"), "{shown}");
    Ok(())
}
