//! Three replicas, each with its own folder, journal and network to the database, over shared stores.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use test_object_store::{ACCESS_KEY_ID, SECRET_ACCESS_KEY};
use test_servers::FaultyPostgres;
use tokio::time::timeout;
use tollgate_tests::{Behaviour, Instance, Network, Relay, Server, Upstream, record};

use crate::disk::SmallDisk;
use crate::history::{Millis, Settings};
use crate::skew;
use crate::stores::{Stores, blobs_url};

/// The number of replicas.
pub const REPLICAS: usize = 3;
/// The price of the provider: 0.042 USD per million tokens.
const TOKEN_PICO: i64 = 42_000;
/// The input tokens of each answer, all that is billed.
const ANSWER_TOKENS: i64 = 100;
/// The answer of the provider.
pub const ANSWER: &str =
    r#"{"model":"judge-1.0","answers":{"refund":{"type":"noul","noul":0.97}},"usage":{"input_tokens":100}}"#;
/// The input tokens of each answer of the provider that bills above the bound.
const OVERCHARGED_TOKENS: i64 = 2_000;
const OVERCHARGED: &str =
    r#"{"model":"judge-1.0","answers":{"refund":{"type":"noul","noul":0.97}},"usage":{"input_tokens":2000}}"#;
const STAGED: &str = r#"{"model":"judge-1.0","answers":{"refund":{"type":"noul","noul":0.97},"angry":{"type":"noul","noul":0.95}},
"usage":{"input_tokens":100}}"#;
/// The latency of the provider.
const LATENCY: Duration = Duration::from_millis(5);
/// The disk of the journals of a replica, for segments of 16 MiB: folded ones are kept for ten minutes, but at most
/// `max_bytes`, which are 4 full ones; then the current and the next one, and 64 MiB for journals of killed processes.
const DISK_MEBIBYTES: u32 = 160;
/// The longest run of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(1);
/// The time limits of replicas end calls to the database below the deadline of a request.
const HASTY: &str = "[storage]\nbusy_timeout_ms = 4000\n";
/// Commands wait for the database, so that a busy machine alone does not end a run.
const PATIENT: &str = "[storage]\nbusy_timeout_ms = 30000\n";

/// A replica: a machine of its own, as far as Tollgate can see.
pub struct Replica {
    /// Its folder and environment.
    pub instance: Instance,
    /// Its network to the database.
    pub relay: Relay,
    /// Its process, while it runs.
    pub server: Option<Server>,
    /// The disk of its journal, if this user may mount one.
    pub disk: Option<SmallDisk>,
    /// Its address.
    pub address: SocketAddr,
    journal: PathBuf,
}

/// The system under test with its surroundings.
pub struct Cluster {
    /// The replicas.
    pub replicas: Vec<Replica>,
    /// Runs commands.
    pub admin: Instance,
    /// The network of commands to the database, which only a new database changes.
    pub admin_network: Relay,
    /// The stores that the replicas share.
    pub stores: Stores,
    /// The provider.
    pub upstream: Upstream,
    /// A provider that bills above the bound.
    pub overcharging: Upstream,
    /// The provider of both stages of the preset.
    pub staged: Upstream,
}

/// Returns the behaviour of a provider without faults.
pub fn answer_in_time() -> Behaviour {
    Behaviour::Late(LATENCY, ANSWER.to_owned())
}

/// Returns the settings of a run with faults of this length: they outlast `keys.max_stale_ms`.
pub fn settings(fault: Duration) -> Settings {
    let fault = Millis::try_from(fault.as_millis()).unwrap_or(Millis::MAX);
    Settings {
        max_stale: (fault * 4 / 5).max(2_000),
        // Long faults outlast it. In a run of short ones a busy machine alone must not.
        request_timeout: if fault < 6_000 { 10_000 } else { 8_000 },
        // No body of the driver is longer than 512 bytes, and the default overhead is 128 tokens.
        bound_pico: TOKEN_PICO * (512 + 128),
        call_cost_pico: TOKEN_PICO * ANSWER_TOKENS,
        overcharge_pico: TOKEN_PICO * OVERCHARGED_TOKENS,
        // Each replica's share is four, and a phase asks for many more.
        requests_per_minute: 12,
        rate_timeout: 50,
    }
}

impl Cluster {
    /// Starts everything.
    pub async fn start(settings: &Settings, fault: Duration, has_standby: bool) -> Result<Self> {
        let stores = Stores::start(fault, has_standby).await?;
        let upstream = Upstream::start(answer_in_time()).await?;
        let overcharging = Upstream::start(Behaviour::Late(LATENCY, OVERCHARGED.to_owned())).await?;
        let staged = Upstream::start(Behaviour::Late(LATENCY, STAGED.to_owned())).await?;
        let toml = configuration(settings, [&upstream, &overcharging, &staged].map(Upstream::base_url));
        let admin_network = Relay::start(stores.database.address().parse()?).await?;
        let admin = install(&(toml.clone() + PATIENT), &admin_network, &stores)?;
        let mut cluster = Self { replicas: Vec::new(), admin, admin_network, stores, upstream, overcharging, staged };
        cluster.command(&["migrate", "up"]).await?;
        for _ in 0..REPLICAS {
            let replica = cluster.add_replica(&(toml.clone() + HASTY)).await?;
            cluster.replicas.push(replica);
        }
        Ok(cluster)
    }

    async fn add_replica(&self, toml: &str) -> Result<Replica> {
        let relay = Relay::start(self.stores.database.address().parse()?).await?;
        let instance = install(toml, &relay, &self.stores)?;
        let journal = instance.path().join("journal");
        let disk = SmallDisk::mount(&journal, DISK_MEBIBYTES)?;
        let server = instance.serve().await?;
        let address = server.address();
        Ok(Replica { instance, relay, server: Some(server), disk, address, journal })
    }

    /// Returns the providers that bill within the bound.
    pub fn counted(&self) -> impl Iterator<Item = &Upstream> {
        [&self.upstream, &self.staged].into_iter()
    }

    /// Creates another folder for commands, for a task that runs beside the faults.
    pub fn second_admin(&self, settings: &Settings) -> Result<Instance> {
        let providers = [&self.upstream, &self.overcharging, &self.staged].map(Upstream::base_url);
        let toml = configuration(settings, providers) + PATIENT;
        install(&toml, &self.admin_network, &self.stores)
    }

    /// Ends every connection to the database, and permits no new one.
    pub fn disconnect(&self) {
        self.networks().for_each(|network| network.set(Network::Cut));
    }

    /// Connects everything to another database, which has this disk.
    pub fn connect(&mut self, database: FaultyPostgres, disk: Option<SmallDisk>) -> Result<()> {
        let address = database.address().parse()?;
        self.stores.database = database;
        self.stores.disk = disk;
        self.networks().for_each(|network| {
            network.redirect(address);
            network.set(Network::Up);
        });
        Ok(())
    }

    fn networks(&self) -> impl Iterator<Item = &Relay> {
        self.replicas.iter().map(|replica| &replica.relay).chain([&self.admin_network])
    }

    /// Runs a command that must succeed; returns its standard output.
    pub async fn command(&self, arguments: &[&str]) -> Result<String> {
        run(&self.admin, arguments).await
    }

    /// Runs a command with `--json`.
    pub async fn json(&self, arguments: &[&str]) -> Result<Value> {
        json(&self.admin, arguments).await
    }
}

impl Replica {
    /// Removes the journal of the ended process.
    pub fn remove_journal(&self) -> Result<()> {
        for entry in std::fs::read_dir(&self.journal)? {
            let path = entry?.path();
            if path.is_dir() { std::fs::remove_dir_all(&path)? } else { std::fs::remove_file(&path)? }
        }
        Ok(())
    }

    /// Starts the process.
    pub async fn start(&mut self) -> Result<()> {
        ensure!(self.server.is_none(), "the replica runs");
        self.server = Some(self.instance.serve().await?);
        Ok(())
    }

    /// Returns the lines of all its processes.
    pub fn output(&self) -> String {
        let log = self.instance.path().join(format!("output-{}.log", self.address.port()));
        std::fs::read_to_string(log).unwrap_or_default()
    }

    /// Shifts the clock of the next process.
    pub fn skew(&mut self, seconds: i64) -> Result<()> {
        let library = skew::compile(self.instance.path())?;
        self.instance.set_env("LD_PRELOAD", library.display().to_string());
        self.instance.set_env(skew::OFFSET, seconds.to_string());
        Ok(())
    }

    /// Gives the next process the clock of the machine.
    pub fn unskew(&mut self) {
        self.instance.set_env("LD_PRELOAD", "");
    }
}

/// Runs a command of an instance that must succeed; returns its standard output.
pub async fn run(instance: &Instance, arguments: &[&str]) -> Result<String> {
    let output = timeout(COMMAND_TIMEOUT, instance.run(arguments)).await.context("the command hangs")??;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stdout = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{arguments:?} failed: {stderr}{stdout}");
    Ok(stdout)
}

/// Runs a command of an instance with `--json`.
pub async fn json(instance: &Instance, arguments: &[&str]) -> Result<Value> {
    let text = run(instance, &[arguments, &["--json"]].concat()).await?;
    serde_json::from_str(&text).map(record).with_context(|| format!("{arguments:?} printed {text:?}"))
}

fn install(toml: &str, network: &Relay, stores: &Stores) -> Result<Instance> {
    let mut instance = Instance::on_file(toml)?;
    let journal = instance.path().join("journal");
    let variables: BTreeMap<&str, String> = BTreeMap::from([
        ("ALPHA_API_KEY", "alpha-secret-0001".to_owned()),
        ("TOLLGATE__STORAGE__URL", stores.database.url_at(&network.address().to_string())),
        ("TOLLGATE__BLOBS__URL", blobs_url()),
        ("TOLLGATE__BLOBS__ENDPOINT", stores.objects.endpoint()),
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY.to_owned()),
        ("TOLLGATE__RATE_LIMITS__URL", stores.rates.url()),
        ("TOLLGATE__JOURNAL__PATH", journal.display().to_string()),
    ]);
    for (name, value) in variables {
        instance.set_env(name, value);
    }
    Ok(instance)
}

fn configuration(settings: &Settings, [provider, overcharging, staged]: [String; 3]) -> String {
    let Settings { max_stale, request_timeout, rate_timeout, .. } = settings;
    format!(
        r#"
[keys]
max_stale_ms = {max_stale}
[limits]
request_timeout_ms = {request_timeout}
[rate_limits]
timeout_ms = {rate_timeout}
[journal]
max_bytes = 67108864
[[providers]]
slug = "alpha"
name = "Alpha AI"
wire = "system-one"
base_url = "{provider}"
api_key = "env:ALPHA_API_KEY"
attempt_timeout_ms = 4500
[[endpoints]]
model = "acme/alone"
provider = "alpha"
upstream_model = "judge-1"
input_usd_per_million_tokens = "0.042"
output_usd_per_million_tokens = "0"
[[providers]]
slug = "beta"
name = "Beta AI"
wire = "system-one"
base_url = "{overcharging}"
api_key = "env:ALPHA_API_KEY"
attempt_timeout_ms = 4500
[[endpoints]]
model = "acme/overcharged"
provider = "beta"
upstream_model = "judge-1"
input_usd_per_million_tokens = "0.042"
output_usd_per_million_tokens = "0"
[[providers]]
slug = "gamma"
name = "Gamma AI"
wire = "system-one"
base_url = "{staged}"
api_key = "env:ALPHA_API_KEY"
attempt_timeout_ms = 4500
[[endpoints]]
model = "acme/small"
provider = "gamma"
upstream_model = "judge-1"
input_usd_per_million_tokens = "0.042"
output_usd_per_million_tokens = "0"
[[endpoints]]
model = "acme/large"
provider = "gamma"
upstream_model = "judge-2"
input_usd_per_million_tokens = "0.042"
output_usd_per_million_tokens = "0"
"#
    )
}
