//! A declared state, as a declarative tool applies it: the second application finds no difference and changes nothing.

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tollgate_tests::{Behaviour, Call, Upstream};

use crate::gateway::TestGateway;

/// Returns true if the value has all declared members, and equals other values.
fn has(found: &Value, declared: &Value) -> bool {
    match declared {
        Value::Object(members) => members.iter().all(|(name, value)| has(&found[name.as_str()], value)),
        _ => found == declared,
    }
}

/// Applies records over HTTP: reads what exists, creates what is missing, and changes what differs.
struct Applier<'a> {
    gateway: &'a TestGateway,
    changes: Vec<String>,
}

impl Applier<'_> {
    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
        let call = Call::new(method, format!("/api/v1{path}")).key(&self.gateway.management.secret);
        let call = body.map_or(call.clone(), |body| call.json(body.to_string()));
        let reply = self.gateway.server.send(&call).await?;
        ensure!([200, 201].contains(&reply.status), "{path}: {} {}", reply.status, reply.text());
        reply.json()
    }

    /// Makes the record of this name in a list as declared. Returns its id.
    async fn apply(&mut self, list: &str, declared: &Value) -> Result<String> {
        let separator = if list.contains('?') { '&' } else { '?' };
        let found = self.send(Method::GET, &format!("{list}{separator}limit=100"), None).await?;
        let records = found["data"].as_array().context("no list")?;
        let path = list.split('?').next().unwrap_or(list);
        let Some(found) = records.iter().find(|record| record["name"] == declared["name"]) else {
            self.changes.push(format!("{path}: new"));
            let made = self.send(Method::POST, path, Some(declared)).await?;
            return Ok(made["data"]["id"].as_str().context("no id")?.to_owned());
        };
        let id = found["id"].as_str().context("no id")?.to_owned();
        self.change(Method::PATCH, &format!("{path}/{id}"), declared, found).await?;
        Ok(id)
    }

    /// Sends the declared members unless the record has all of them.
    async fn change(&mut self, method: Method, path: &str, declared: &Value, found: &Value) -> Result<()> {
        let members = declared.as_object().context("no object")?;
        let differs = |(name, value): &(&String, &Value)| !has(&found[name.as_str()], value);
        let differ: Vec<&str> = members.iter().filter(differs).map(|(name, _)| name.as_str()).collect();
        if !differ.is_empty() {
            self.changes.push(format!("{path}: {differ:?}"));
            self.send(method, path, Some(declared)).await?;
        }
        Ok(())
    }

    async fn apply_workspace(&mut self, name: &str, hook: &str) -> Result<()> {
        let declared = json!({"name": name, "slug": name, "description": "declared", "requests_per_minute": 90});
        let workspace = self.apply("/workspaces", &declared).await?;
        for (interval, usd) in [("lifetime", 100.5), ("monthly", 10.000_000_000_001), ("daily", 1.5)] {
            let path = format!("/workspaces/{workspace}/budgets/{interval}");
            let set = self.send(Method::GET, &format!("/workspaces/{workspace}/budgets"), None).await?;
            let wanted = json!({"limit_usd": usd});
            let budgets = set["data"].as_array().context("no budgets")?;
            let interval = if interval == "lifetime" { Value::Null } else { interval.into() };
            let found = budgets.iter().find(|budget| budget["reset_interval"] == interval);
            self.change(Method::PUT, &path, &wanted, found.unwrap_or(&Value::Null)).await?;
        }
        let credit = self.send(Method::GET, &format!("/credits?workspace_id={workspace}"), None).await?;
        if credit["data"]["total_credits"].as_f64() != Some(25.25) {
            self.changes.push(format!("credit of {name}"));
            self.send(Method::POST, &format!("/workspaces/{workspace}/credits"), Some(&json!({"add_usd": 25.25})))
                .await?;
        }
        let of_workspace = |list: &str| format!("{list}?workspace_id={workspace}");
        let rules = json!({"name": "rules", "workspace_id": workspace, "allowed_models": ["sandbox/decider"],
            "limit_usd": 3.25, "reset_interval": "weekly",
            "content_filters": [{"pattern": "smokes", "action": "redact", "label": "SMOKE"}]});
        let assigned = self.apply(&of_workspace("/guardrails"), &rules).await?;
        let key = json!({"name": "app", "workspace_id": workspace, "limit": 2.5, "limit_reset": "monthly",
            "guardrail_id": assigned, "expires_at": "2097-01-31T00:00:00Z"});
        self.apply(&of_workspace("/keys"), &key).await?;
        let unguarded =
            self.apply(&of_workspace("/keys"), &json!({"name": "batch", "workspace_id": workspace})).await?;
        self.assign(&assigned, &unguarded).await?;
        let management = json!({"access": "keys", "workspaces": [workspace]});
        let narrowed = json!({"name": format!("ops of {name}"), "management": management});
        self.apply("/keys?kind=management", &narrowed).await?;
        let floor = json!({"name": "floor", "workspace_id": workspace, "allowed_providers": ["sandbox"]});
        let floor = self.apply(&of_workspace("/guardrails"), &floor).await?;
        let path = format!("/workspaces/{workspace}");
        let found = self.send(Method::GET, &path, None).await?;
        self.change(Method::PATCH, &path, &json!({"default_guardrail_id": floor}), &found["data"]).await?;
        let traces = json!({"name": "hook", "workspace_id": workspace, "type": "webhook", "privacy_mode": true,
            "config": {"url": hook}, "sampling_rate": 0.5});
        self.apply(&of_workspace("/observability/destinations"), &traces).await?;
        Ok(())
    }

    /// Assigns a key to a guardrail, unless it is assigned.
    async fn assign(&mut self, guardrail: &str, key: &str) -> Result<()> {
        let hash = self.send(Method::GET, &format!("/keys/{key}"), None).await?["data"]["hash"].clone();
        let path = format!("/guardrails/{guardrail}/assignments/keys");
        let found = self.send(Method::GET, &format!("{path}?limit=100"), None).await?;
        let assignments = found["data"].as_array().context("no assignments")?;
        if !assignments.iter().any(|assignment| assignment["key_hash"] == hash) {
            self.changes.push(format!("{path}: new"));
            self.send(Method::POST, &path, Some(&json!({"key_hashes": [hash]}))).await?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn state_that_is_applied_again_differs_nowhere_and_changes_nothing() -> Result<()> {
    let upstream = Upstream::start(Behaviour::status(200)).await?;
    let gateway = TestGateway::start("[egress]\nallow_private_addresses = true\n").await?;
    let hook = format!("http://{}/hook", upstream.address());
    let mut runs = Vec::new();
    for _ in 0..2 {
        let mut applier = Applier { gateway: &gateway, changes: Vec::new() };
        for name in ["team-a", "team-b"] {
            applier.apply_workspace(name, &hook).await?;
        }
        let changes = applier.changes;
        let log = gateway.instance.json(&["audit", "list", "--limit", "10000"]).await?;
        runs.push((changes, log["data"].as_array().context("no entries")?.clone()));
    }
    let [(first, before), (second, after)] = &runs[..] else { anyhow::bail!("two runs") };
    ensure!(first.len() == 26, "{first:?} create two workspaces");
    let number = |log: &[Value]| log.first().and_then(|entry| entry["number"].as_u64()).context("no number");
    ensure!(number(before)? >= 26, "fewer entries than changes");
    ensure!(number(before)? == number(after)?, "new entries: {:?}", after.first());
    ensure!(second.is_empty() && before == after, "the second run made {second:?}: {after:?}");
    Ok(())
}
