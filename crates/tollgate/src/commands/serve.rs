//! `tollgate serve`, and the first workspace and key of a new database.

use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::pin::pin;
use std::thread;

use domain::secret::ApiKeySecret;
use tokio::sync::oneshot;

use crate::cli::ServeArgs;
use crate::commands::prelude::*;
use crate::output::Output;
use crate::telemetry::LOG;
use crate::wiring::{
    Instance, Reloader, ServerLock, ServerSockets, Signals, configuration_checks, prepare_descriptors, require_bucket,
};

/// The maximum time to flush the log before the first response.
const START_FLUSH: Duration = Duration::from_secs(1);

/// Serves until `SIGTERM`, `SIGINT` or `SIGQUIT`. `SIGHUP` reloads the configuration.
pub async fn run(context: &Context, args: ServeArgs) -> anyhow::Result<ExitCode> {
    let hangup = Signals::of_reload().context("cannot install the handler of SIGHUP")?;
    let mut ignored = Signals::without_meaning().context("cannot install the handlers of unused signals")?;
    let mut ended = pin!(serve(context, args, hangup));
    loop {
        tokio::select! {
            ended = &mut ended => return ended,
            signal = ignored.next() => {
                tracing::info!(signal, "signal ignored: SIGTERM stops the server, SIGHUP reloads the configuration");
            }
        }
    }
}

async fn serve(context: &Context, args: ServeArgs, hangup: Signals) -> anyhow::Result<ExitCode> {
    let mut shutdown = Signals::of_shutdown()?;
    prepare_descriptors(&context.config);
    // Commands need the key only for the secrets of destinations; a server would accept traces that it cannot send.
    if let Some(source) = &context.config.storage.encryption_key {
        source.read()?;
    }
    let sockets = ServerSockets::bind(&context.config).await?;
    require_bucket(&context.config.blobs).await?;
    let schema = if args.no_migrate {
        context.require_database()?;
        Schema::Required
    } else {
        Schema::UpToDate
    };
    let (stores, lock) = tokio::select! {
        opened = open(&context.config, schema) => opened?,
        signal = shutdown.next() => {
            tracing::info!(signal, "stopped");
            return Ok(ExitCode::SUCCESS);
        }
    };
    if !args.allow_no_endpoints {
        configuration_checks::require_endpoints_at_start(&context.config, &stores).await?;
    }
    let (instance, reloader) =
        Instance::start(&context.config, &context.environment, sockets, stores.clone(), lock).await?;
    // Later would lose the key, earlier would create one for a failed start.
    create_first_key(context, &stores).await?;
    configuration_checks::record_endpoints(&context.config, &stores).await;
    drop(stores);
    let (address, base_path) = (instance.address(), &context.config.server.base_path);
    tracing::info!(
        server.address = %address,
        server.base_url = %format!("http://{address}{base_path}"),
        server.docs = %format!("http://{address}/docs"),
        server.socket = instance.socket().map(|socket| tracing::field::display(socket.display())),
        providers = context.config.providers.len(),
        sandbox.enabled = context.config.sandbox.enabled,
        sandbox.errors = context.config.sandbox.errors,
        "serving"
    );
    // The log lines of the start appear before the first response.
    LOG.flush(START_FLUSH);
    LOG.start_batching();
    let serving = instance.serve_until(async || {
        let signal = shutdown.next().await;
        tracing::info!(signal, "stopping");
    });
    tokio::select! {
        served = serving => served?,
        never = reload_on(hangup, reloader, args.allow_no_endpoints) => match never {},
    }
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Takes the lock of the database, and opens its stores.
async fn open(config: &Config, schema: Schema) -> anyhow::Result<(Stores, Option<ServerLock>)> {
    let take =
        async || if config.storage.read_only { Ok(None) } else { ServerLock::share(&config.storage.servers()).await };
    // Before the schema, a charge or a change is written: a copy of the database must not miss it.
    let lock = take().await?;
    let stores = Stores::open_for_server(config, schema).await?;
    // The first start creates the folder of the lock.
    let lock = if lock.is_some() { lock } else { take().await? };
    Ok((stores, lock))
}

/// Reloads the configuration at each `SIGHUP`.
async fn reload_on(mut hangup: Signals, mut reloader: Reloader, allow_no_endpoints: bool) -> Infallible {
    loop {
        let signal = hangup.next().await;
        match reloader.reload(allow_no_endpoints).await {
            Ok(()) => {
                let config = reloader.config();
                let (providers, endpoints) = (config.providers.len(), config.endpoints.len());
                tracing::info!(signal, providers, endpoints, "configuration reloaded");
            }
            Err(error) => tracing::error!(
                signal,
                error = format!("{error:#}"),
                "configuration not reloaded; the previous one stays in force"
            ),
        }
    }
}

/// The variables that select the stores of a command. Others are not shown: headers may contain secrets.
const STORE_VARIABLES: [&str; 3] = ["TOLLGATE__STORAGE__URL", "TOLLGATE__BLOBS__URL", "TOLLGATE__JOURNAL__PATH"];
/// The time that the start waits for a terminal.
const PRINT_TIMEOUT: Duration = Duration::from_secs(2);

/// Creates the default workspace and a management key unless a management key ever existed. Hands over the key and
/// prints the command for the first inference key.
async fn create_first_key(context: &Context, stores: &Stores) -> anyhow::Result<()> {
    if !stores.keys.list(None).await?.is_empty() {
        return Ok(());
    }
    if context.config.storage.read_only {
        tracing::warn!("no management key exists, and the read-only database cannot store one");
        return Ok(());
    }
    if context.output.is_terminal() {
        if let Some(secret) = stores.bootstrap().execute().await? {
            let text = format!(
                "The management key, shown only once:\n\n    {}\n\nCreate a first inference key with:\n\n    {}\n",
                secret.expose(),
                key_command(context)
            );
            print(PRINT_TIMEOUT, move || Output::new(false).text(&text)).await?;
        }
        return Ok(());
    }
    // The file comes first: a key that cannot be handed over would be lost.
    let mut file = KeyFile::reserve(&folder(&context.config.storage.file))?;
    match stores.bootstrap().execute().await {
        Ok(Some(secret)) => {
            file.write(&secret)?;
            tracing::info!(path = %file.path.display(), "management key created and written to a file readable only by its owner");
            tracing::info!(command = key_command(context), "create the first inference key with this command");
            Ok(())
        }
        Ok(None) => file.remove(),
        Err(error) => {
            file.remove()?;
            Err(error.into())
        }
    }
}

/// Prints on a separate thread: a paused terminal delays the key, not the server.
async fn print(timeout: Duration, print: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> anyhow::Result<()> {
    let (sender, printed) = oneshot::channel();
    let terminal = thread::Builder::new().name("terminal".to_owned());
    terminal.spawn(move || drop(sender.send(print()))).context("cannot start the print thread")?;
    if let Ok(ended) = tokio::time::timeout(timeout, printed).await {
        return ended.context("the print thread ended")?;
    }
    tracing::warn!("terminal does not accept output; the management key is printed as soon as it does");
    Ok(())
}

fn folder(database: &Path) -> PathBuf {
    match database.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Returns the command that creates a first inference key from any folder: with the program, the folder, the
/// configuration file and the stores of this process.
fn key_command(context: &Context) -> String {
    let program = std::env::current_exe().map_or_else(|_| "tollgate".to_owned(), |path| shell_word(&path));
    let config = context.config_flag.as_ref().map(|path| format!(" --config {}", shell_word(path))).unwrap_or_default();
    let variable = |name| {
        // URLs with credentials are not shown.
        let value = context.environment.get(name).filter(|value| !value.contains('@'))?;
        Some(format!("{name}={} ", shell_word(Path::new(value))))
    };
    let variables: String = STORE_VARIABLES.into_iter().filter_map(variable).collect();
    let command = format!("{variables}{program}{config} key create --name first");
    match std::env::current_dir() {
        Ok(folder) => format!("(cd {} && {command})", shell_word(&folder)),
        Err(_) => command,
    }
}

/// Quotes a path for a shell.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// A new file with access for its owner only.
struct KeyFile {
    path: PathBuf,
    file: File,
}

impl KeyFile {
    /// Creates `management-key` in the folder; if it exists, `management-key-2` and so on.
    fn reserve(folder: &Path) -> anyhow::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut number = 1;
        loop {
            let name = if number == 1 { "management-key".to_owned() } else { format!("management-key-{number}") };
            let path = folder.join(name);
            match options.open(&path) {
                Ok(file) => return Ok(Self { path, file }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < 100 => number += 1,
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("cannot create {} for the management key", path.display()));
                }
            }
        }
    }

    fn write(&mut self, secret: &ApiKeySecret) -> anyhow::Result<()> {
        writeln!(self.file, "{}", secret.expose())
            .and_then(|()| self.file.sync_all())
            .with_context(|| format!("the management key cannot be written to {}", self.path.display()))
    }

    fn remove(self) -> anyhow::Result<()> {
        std::fs::remove_file(&self.path).with_context(|| format!("{} cannot be removed", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn key_file_is_new_and_private_to_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let secret = ApiKeySecret::from_random([7; 32]);
        let mut first = KeyFile::reserve(folder.path()).unwrap();
        first.write(&secret).unwrap();
        assert_eq!(first.path, folder.path().join("management-key"));
        assert_eq!(std::fs::metadata(&first.path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_to_string(&first.path).unwrap().trim(), secret.expose());
        let second = KeyFile::reserve(folder.path()).unwrap();
        let path = second.path.clone();
        assert_eq!(path, folder.path().join("management-key-2"));
        second.remove().unwrap();
        assert!(!path.exists());
        assert!(KeyFile::reserve(&folder.path().join("absent")).is_err());
    }

    #[tokio::test]
    async fn print_returns_when_terminal_takes_no_output() {
        let (release, blocked) = std::sync::mpsc::channel::<()>();
        print(Duration::from_millis(20), move || {
            blocked.recv().ok();
            Ok(())
        })
        .await
        .unwrap();
        drop(release);
        let failed = print(Duration::from_mins(1), || anyhow::bail!("gone")).await;
        assert!(failed.is_err(), "a terminal that failed is an error");
    }

    #[test]
    fn shell_word_quotes_special_characters() {
        assert_eq!(shell_word(Path::new("/usr/bin/tollgate")), "/usr/bin/tollgate");
        assert_eq!(shell_word(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }

    #[test]
    fn folder_of_bare_file_name_is_current_folder() {
        assert_eq!(folder(Path::new("t.db")), Path::new("."));
        assert_eq!(folder(Path::new("a/t.db")), Path::new("a"));
    }
}
