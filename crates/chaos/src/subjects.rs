//! The keys of a phase, and their accounts with limits.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::cluster::{Cluster, REPLICAS};
use crate::driver::{CLIENTS, PRESET_SLUG};
use crate::history::{Account, KeyLimit, Settings};
use crate::money::format_usd;
use crate::recorder::{KeySet, Recorder};

/// The questions of the preset.
pub const PRESET_QUESTIONS: [&str; 2] = ["angry", "refund"];
/// The first stage accepts one of the two answers of [`crate::cluster`], and the second one is asked both again.
const PRESET: &str = r#"{"stages":[{"model":"acme/small","accept":{"*":0.9,"refund":0.99}},{"model":"acme/large","accept":{"*":0.9}}],
"questions":{"refund":{"type":"noul","instructions":"A refund?"},"angry":{"type":"noul","instructions":"Angry?"}}}"#;
/// A limit that no run reaches.
const ROOMY_PICO: i64 = 1_000 * 1_000_000_000_000;

/// The keys that exist in all phases.
#[derive(Debug, Clone, Copy)]
pub struct LastingKeys {
    unlimited: usize,
    roomy: usize,
}

/// A key as the command line prints it.
struct CreatedKey {
    index: usize,
    id: String,
    workspace: String,
    hash: String,
}

/// Creates the keys of all phases: one without a limit, and one whose limit has room for all of them.
pub async fn create_lasting_keys(cluster: &Cluster, recorder: &Recorder) -> Result<LastingKeys> {
    let unlimited = create_key(cluster, recorder, "unlimited", &[], KeyLimit::None).await?;
    let limit = format_usd(ROOMY_PICO);
    let roomy = create_key(cluster, recorder, "roomy", &["--limit-usd", &limit], KeyLimit::Roomy).await?;
    let keys = LastingKeys { unlimited: unlimited.index, roomy: roomy.index };
    std::fs::write(cluster.admin.path().join("preset.json"), PRESET)?;
    cluster.json(&["preset", "create", PRESET_SLUG, "--from", "preset.json"]).await?;
    add_account(cluster, recorder, "key", roomy.id, (ROOMY_PICO, 0), roomy.index)?;
    let lasting = vec![keys.unlimited, keys.roomy];
    // The preset is in force on every replica later, with the keys of the first phase.
    recorder.activate(KeySet { unlimited: keys.unlimited, all: lasting.clone(), lasting, staged: Vec::new() });
    Ok(keys)
}

/// Creates keys whose limits are used up within a phase: of the key, of a guardrail, the credit of a workspace, a rate,
/// and of a key whose calls are charged above their holds.
pub async fn create_phase_keys(
    cluster: &Cluster,
    recorder: &Recorder,
    lasting: LastingKeys,
    phase: usize,
    limit_pico: i64,
    settings: &Settings,
) -> Result<()> {
    let (own, guarded, credited, rated, overcharged) = tokio::try_join!(
        create_limited(cluster, recorder, phase, limit_pico),
        create_guarded(cluster, recorder, phase, limit_pico),
        create_credited(cluster, recorder, phase, limit_pico),
        create_rated(cluster, recorder, phase, settings),
        create_overcharged(cluster, recorder, phase, limit_pico, settings),
    )?;
    let LastingKeys { unlimited, roomy } = lasting;
    let all = vec![unlimited, unlimited, roomy, own, guarded, credited, rated, overcharged];
    let staged = vec![unlimited, roomy, own, guarded, rated];
    recorder.activate(KeySet { unlimited, lasting: vec![unlimited, roomy], all, staged });
    Ok(())
}

async fn create_limited(cluster: &Cluster, recorder: &Recorder, phase: usize, limit_pico: i64) -> Result<usize> {
    let options = ["--limit-usd", &format_usd(limit_pico)];
    let key = create_key(cluster, recorder, &format!("limited-{phase}"), &options, KeyLimit::Tight).await?;
    add_account(cluster, recorder, "key", key.id, (limit_pico, 0), key.index)?;
    Ok(key.index)
}

/// Creates a key whose calls are charged above their holds. Each client of a replica has one call in flight, and a
/// replica that restarts learns the bound again.
async fn create_overcharged(
    cluster: &Cluster,
    recorder: &Recorder,
    phase: usize,
    limit_pico: i64,
    settings: &Settings,
) -> Result<usize> {
    let Settings { call_cost_pico, overcharge_pico, .. } = settings;
    let limit_pico = limit_pico / call_cost_pico * overcharge_pico;
    let in_flight = i64::try_from(2 * REPLICAS * CLIENTS)?;
    let options = ["--limit-usd", &format_usd(limit_pico)];
    let key = create_key(cluster, recorder, &format!("overcharged-{phase}"), &options, KeyLimit::Overcharged).await?;
    let excess_pico = in_flight * overcharge_pico;
    add_account(cluster, recorder, "key", key.id, (limit_pico, excess_pico), key.index)?;
    Ok(key.index)
}

async fn create_guarded(cluster: &Cluster, recorder: &Recorder, phase: usize, limit_pico: i64) -> Result<usize> {
    let key = create_key(cluster, recorder, &format!("guarded-{phase}"), &[], KeyLimit::Tight).await?;
    let guardrail = create_guardrail(cluster, phase, &format_usd(limit_pico)).await?;
    cluster.json(&["guardrail", "assign", &guardrail, &key.hash]).await?;
    add_account(cluster, recorder, "guardrail", format!("{guardrail}:{}", key.id), (limit_pico, 0), key.index)?;
    Ok(key.index)
}

async fn create_credited(cluster: &Cluster, recorder: &Recorder, phase: usize, limit_pico: i64) -> Result<usize> {
    let made =
        cluster.json(&["workspace", "create", "--allow-duplicate", "--name", &format!("credited-{phase}")]).await?;
    let workspace = text(&made, "id")?;
    cluster.json(&["workspace", "credit", &workspace, "--add-usd", &format_usd(limit_pico)]).await?;
    let options = ["--workspace", &workspace];
    let key = create_key(cluster, recorder, &format!("credited-{phase}"), &options, KeyLimit::Tight).await?;
    add_account(cluster, recorder, "workspace", key.workspace, (limit_pico, 0), key.index)?;
    Ok(key.index)
}

async fn create_rated(cluster: &Cluster, recorder: &Recorder, phase: usize, settings: &Settings) -> Result<usize> {
    let options = ["--rpm", &settings.requests_per_minute.to_string()];
    let key = create_key(cluster, recorder, &format!("rated-{phase}"), &options, KeyLimit::Rate).await?;
    Ok(key.index)
}

async fn create_guardrail(cluster: &Cluster, phase: usize, limit: &str) -> Result<String> {
    let file = format!("guardrail-{phase}.json");
    let content = format!(r#"{{"name":"budget-{phase}","limit_usd":{limit},"reset_interval":null}}"#);
    std::fs::write(cluster.admin.path().join(&file), content)?;
    text(&cluster.json(&["guardrail", "create", "--from", &file]).await?, "id")
}

async fn create_key(
    cluster: &Cluster,
    recorder: &Recorder,
    name: &str,
    options: &[&str],
    limit: KeyLimit,
) -> Result<CreatedKey> {
    let made = cluster.json(&[&["key", "create", "--allow-duplicate", "--name", name], options].concat()).await?;
    let index = recorder.add_key(name.to_owned(), text(&made, "key")?, limit);
    Ok(CreatedKey {
        index,
        id: text(&made, "id")?,
        workspace: text(&made, "workspace_id")?,
        hash: text(&made, "hash")?,
    })
}

/// Adds an account to the history and to the trigger that compares its counter with the limit.
fn add_account(
    cluster: &Cluster,
    recorder: &Recorder,
    scope: &str,
    subject: String,
    (limit_pico, excess_pico): (i64, i64),
    key: usize,
) -> Result<()> {
    let sql = format!("INSERT INTO chaos.limits VALUES ('{scope}', '{subject}', {limit_pico})");
    tokio::task::block_in_place(|| cluster.stores.database.query(&sql))?;
    recorder.add_account(Account { scope: scope.to_owned(), subject, limit_pico, excess_pico, keys: vec![key] });
    Ok(())
}

/// Returns a member of a JSON document that is a string.
pub fn text(document: &Value, member: &str) -> Result<String> {
    let found = document[member].as_str().map(str::to_owned);
    // The document may hold a secret.
    found.with_context(|| format!("no {member} in the output of a command"))
}
