//! `tollgate provider add`: adds a provider and its endpoints to the configuration file.

use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::io::{BufRead, IsTerminal as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};

use adapters_system::{SystemClock, read_hidden_line, request_reload};
use api_actix::ProviderTestReport;
use domain::decision::{TestProvider, test_endpoint};
use domain::routing::ProviderSlug;
use toml_edit::DocumentMut;

use super::context::read_secret;
use super::provider_preset::{KeySource, Preset};
use super::servers::{self, STATUS};
use crate::cli::AddProviderArgs;
use crate::commands::prelude::*;
use crate::config::{DEFAULT_FILE, load_text, read_text};
use crate::output::record;
use crate::wiring::{directory, single_provider};

/// The added tables, and what followed.
#[derive(Serialize)]
struct Addition {
    /// The configuration file.
    file: String,
    provider: String,
    /// The tables, as they stand in the file.
    tables: String,
    /// The test call; null with `--no-test`.
    test: Option<ProviderTestReport>,
    /// False with `--dry-run`.
    written: bool,
    /// The process ids of the servers that reload the configuration.
    reloaded: Vec<u32>,
}

/// Adds a provider: makes one test call, shows the new tables, writes them, and lets the running servers reload.
///
/// # Errors
/// An unknown preset, a missing value, a provider that exists, an invalid configuration, a failed test, a failed write.
/// Nothing is written then.
pub async fn run(context: &Context, args: AddProviderArgs) -> anyhow::Result<ExitCode> {
    let asks = std::io::stdin().is_terminal() && !args.yes && !args.dry_run && !context.output.is_json();
    ensure!(asks || args.yes || args.dry_run, "--yes adds the provider, --dry-run shows what it would add");
    let file = context.config.file.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
    let before = match read_text(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.with_context(|| format!("cannot read {}", file.display()))?,
    };
    let mut preset = Preset::named(&args.name)?;
    preset.set(&args.set)?;
    for name in preset.missing() {
        ensure!(asks, "the preset {} needs --set {name}=…", args.name);
        preset.set(&[format!("{name}={}", answer(&format!("{name}:"), std::io::stdin().lock())?)])?;
    }
    let slug = args.slug.clone().unwrap_or_else(|| args.name.clone());
    let (key, typed) = key_of(&args, &preset, &slug, &file, asks)?;
    let typed = typed.map(|secret| TypedKey::store(&key, &secret, &file)).transpose()?;

    let mut document: DocumentMut = before.parse().context("the configuration file cannot be read as TOML")?;
    let tables = preset.add_to(&mut document, &slug, &key)?;
    let after = document.to_string();
    let config = load_text(Some(&file), &after, &context.environment)?;
    let provider = slug.parse().with_context(|| format!("{slug:?} cannot be used as a slug"))?;
    let test = if args.no_test { None } else { Some(test_here(&config, &provider).await?) };
    if let Some(test) = test.as_ref().filter(|test| !test.ok) {
        let test = Json::parse(&serde_json::to_string(test)?)?;
        context.output.show_json(&test, || record(&test))?;
        note("Nothing was written: the test call failed. --no-test adds the provider without it.");
        return Ok(ExitCode::FAILURE);
    }

    let shown = file.display().to_string();
    let mut addition = Addition { file: shown, provider: slug, tables, test, written: false, reloaded: Vec::new() };
    if asks {
        note(&format!("{}\n", addition.tables));
        let answer = answer(&format!("Add this to {}? [y/N]", addition.file), std::io::stdin().lock())?;
        ensure!(["y", "yes"].contains(&answer.to_ascii_lowercase().as_str()), "nothing was written");
    }
    if !args.dry_run {
        replace(&file, &before, &after)?;
        addition.written = true;
        if let Some(typed) = typed {
            typed.keep();
        }
        addition.reloaded = reload(context).await;
        if context.config.sandbox.enabled && !config.sandbox.enabled {
            note("The sandbox is off beside a provider, unless [sandbox] has enabled = true.");
        }
    }
    context.output.show(&addition, || addition.text())?;
    Ok(ExitCode::SUCCESS)
}

impl Addition {
    fn text(&self) -> String {
        let tables = self.tables.trim();
        let (state, next) = match (self.written, self.reloaded.is_empty()) {
            (false, _) => return format!("{tables}\nNothing was written to {}.", self.file),
            (true, true) => ("No server is running.", "serve"),
            (true, false) => (
                "The running server was told to reload it; its log says if it cannot.",
                "ask MODEL --question \"Is it urgent?\" --state \"The pump is on fire.\"",
            ),
        };
        with_next(&format!("{tables}\nAdded to {}. {state}", self.file), &format!("tollgate {next}"))
    }
}

/// Returns the key's place, and the secret to store there if it was typed.
fn key_of(
    args: &AddProviderArgs,
    preset: &Preset,
    slug: &str,
    file: &Path,
    asks: bool,
) -> anyhow::Result<(KeySource, Option<String>)> {
    if args.no_key {
        return Ok((KeySource::None, None));
    }
    if let Some(name) = &args.key_env {
        return Ok((KeySource::Variable(name.clone()), None));
    }
    if let Some(path) = &args.key_file {
        read_secret("--key-file", path)?;
        return Ok((KeySource::File(std::path::absolute(path)?), None));
    }
    let beside = std::path::absolute(file)?.with_file_name(format!("{slug}.key"));
    if args.key_stdin {
        let typed = answer("", std::io::stdin().lock())?;
        ensure!(!typed.is_empty(), "standard input holds no key");
        return Ok((KeySource::File(beside), Some(typed)));
    }
    let Some(variable) = preset.key_variable() else { return Ok((KeySource::None, None)) };
    if !asks {
        return Ok((KeySource::Variable(variable.to_owned()), None));
    }
    let question = format!("Variable or file (with a /) of the key, or - to type the key [{variable}]:");
    match answer(&question, std::io::stdin().lock())?.as_str() {
        "" => Ok((KeySource::Variable(variable.to_owned()), None)),
        "-" => {
            note("The key:");
            let typed = read_hidden_line().context("the key cannot be read")?;
            ensure!(!typed.is_empty(), "no key was typed");
            Ok((KeySource::File(beside), Some(typed)))
        }
        path if path.contains('/') => Ok((KeySource::File(std::path::absolute(path)?), None)),
        name => Ok((KeySource::Variable(name.to_owned()), None)),
    }
}

fn answer(question: &str, mut input: impl BufRead) -> anyhow::Result<String> {
    if !question.is_empty() {
        note(question);
    }
    let mut answer = String::new();
    input.read_line(&mut answer).context("cannot read the answer")?;
    Ok(answer.trim().to_owned())
}

/// A file with a typed key. It disappears again unless the provider is added.
struct TypedKey(Option<PathBuf>);

impl TypedKey {
    /// Stores the key for the owner of the configuration file, and for its group if only that may read the file, too.
    fn store(key: &KeySource, secret: &str, configuration: &Path) -> anyhow::Result<Self> {
        let KeySource::File(path) = key else { bail!("a typed key needs a file") };
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let mut file = created.with_context(|| format!("cannot create {} for the key", path.display()))?;
        let stored = Self(Some(path.clone()));
        if let Ok(metadata) = fs::metadata(configuration) {
            give_to_owner(&file, &metadata)?;
            if metadata.mode() & 0o047 == 0o040 {
                file.set_permissions(Permissions::from_mode(0o640))?;
            }
        }
        writeln!(file, "{secret}").and_then(|()| file.sync_all()).context("cannot write the key")?;
        Ok(stored)
    }

    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for TypedKey {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // A file that remains is private, and the next call names it.
            drop(fs::remove_file(path));
        }
    }
}

/// Gives a new file to the owner and the group of the configuration file. Only root gives files away, and must: the
/// server of another user could not read them.
fn give_to_owner(created: &fs::File, configuration: &Metadata) -> anyhow::Result<()> {
    let (own, owner) = (created.metadata()?, (configuration.uid(), configuration.gid()));
    if (own.uid(), own.gid()) != owner {
        fchown(created, Some(owner.0), Some(owner.1)).context("cannot give the file to the configuration's owner")?;
    }
    Ok(())
}

/// Replaces the file at once: a reader sees the old text or the new one. Its owner, group and permissions stay.
fn replace(file: &Path, before: &str, after: &str) -> anyhow::Result<()> {
    let shown = file.display();
    // The file behind a symbolic link is replaced, not the link.
    let target = fs::canonicalize(file).or_else(|_| std::path::absolute(file))?;
    let folder = target.parent().context("the configuration file has no folder")?;
    let mut new = tempfile::NamedTempFile::new_in(folder).with_context(|| format!("cannot write beside {shown}"))?;
    new.write_all(after.as_bytes()).and_then(|()| new.as_file().sync_all()).context("cannot write the new file")?;
    if target.exists() {
        ensure!(read_text(&target)? == before, "{shown} was changed meanwhile; nothing was written");
        let metadata = fs::metadata(&target)?;
        give_to_owner(new.as_file(), &metadata)?;
        fs::set_permissions(new.path(), metadata.permissions())?;
    }
    new.persist(&target).map_err(|error| error.error).with_context(|| format!("cannot replace {shown}"))?;
    Ok(())
}

/// Makes a test call in this process.
///
/// # Errors
/// No such endpoint, or the provider's settings cannot be used. A failed call is in the report.
async fn test_here(config: &Config, slug: &ProviderSlug) -> anyhow::Result<ProviderTestReport> {
    let wire = config.providers.iter().find(|provider| provider.slug == *slug).map(|provider| provider.wire);
    let endpoint = test_endpoint(&directory(config), slug, None, wire)?;
    let provider = single_provider(config, slug)?;
    let provider = provider.with_context(|| format!("provider {slug} not found"))?;
    let test = TestProvider::new(provider, Arc::new(SystemClock::new()));
    Ok(ProviderTestReport::new(&endpoint, &test.execute(&endpoint).await))
}

/// Lets the running servers of the database reload; returns their process ids.
async fn reload(context: &Context) -> Vec<u32> {
    let servers = match servers::running(context, STATUS).await {
        Ok(servers) => servers,
        Err(error) => {
            note(&format!("The running servers are unknown: {error:#}. SIGHUP lets a server reload."));
            return Vec::new();
        }
    };
    let ids = servers.into_iter().filter_map(|server| Some(server.own_status().ok()?.pid));
    ids.filter(|id| match request_reload(*id) {
        Ok(()) => true,
        Err(error) => {
            note(&format!("The server with process id {id} does not reload: {error}"));
            false
        }
    })
    .collect()
}
