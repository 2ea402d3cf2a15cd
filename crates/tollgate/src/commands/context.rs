//! The context of a command: configuration, stores, output; and its inputs: files, secrets, timestamps.

use std::io::{BufRead, IsTerminal as _, Read as _};
use std::path::PathBuf;

use adapters_system::OsUser;
use anyhow::{Context as _, anyhow, bail};
use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, Utc};
use domain::audit::Actor;
use domain::authority::Authority;
use domain::json::Json;

use crate::cli::GlobalArgs;
use crate::config;
use crate::config::{Config, Environment, read_text};
use crate::output::{Output, note};
use crate::wiring::{FOLD_WITHIN, Schema, Stores, fold_journals};

/// The environment of a command.
pub struct Context {
    /// The configuration.
    pub config: Config,
    /// The process's environment.
    pub environment: Environment,
    /// The destination of results.
    pub output: Output,
    /// The value of `--config`.
    pub config_flag: Option<PathBuf>,
}

impl Context {
    /// Reads the configuration.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn new(global: GlobalArgs, environment: Environment) -> Result<Self, config::ConfigError> {
        let config = config::load(global.config.as_deref(), &environment)?;
        let output = Output::new(global.json).with_colours(environment.get("NO_COLOR").is_none());
        Ok(Self { config, environment, output, config_flag: global.config })
    }

    /// Returns the actor for the audit log: the user of the operating system, regardless of the environment. The user
    /// behind `sudo` is recorded beside the machine's name.
    pub fn actor(&self) -> Actor {
        actor_of(OsUser::of_process(), self.environment.get("SUDO_USER"))
    }

    /// Returns the authority of the command: the operator's.
    pub fn authority(&self) -> Authority {
        Authority::operator(self.actor())
    }

    /// Opens the stores of an existing database. A command in the wrong folder must not create an empty database
    /// there.
    ///
    /// # Errors
    /// There is no database, it lacks a migration, or a store cannot be opened.
    pub async fn stores(&self) -> anyhow::Result<Stores> {
        self.require_database()?;
        Stores::open(&self.config, Schema::Required).await
    }

    /// Opens the stores of an existing database, whether or not its schema is up to date.
    ///
    /// # Errors
    /// There is no database, or a store cannot be opened.
    pub async fn stores_as_they_are(&self) -> anyhow::Result<Stores> {
        self.require_database()?;
        Stores::open(&self.config, Schema::AsItIs).await
    }

    /// Checks that the database file exists. A database on a server is found when it is opened.
    ///
    /// # Errors
    /// The file does not exist; the error names the expected path and the setting to change.
    pub fn require_database(&self) -> anyhow::Result<()> {
        if !self.config.storage.is_file() {
            return Ok(());
        }
        let file = &self.config.storage.file;
        // Other errors are reported when the file is opened.
        if file.try_exists().unwrap_or(true) {
            return Ok(());
        }
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        bail!(
            "no database at {}: `tollgate serve` and `tollgate migrate up` create one; --config, storage.url and \
             TOLLGATE__STORAGE__URL select another",
            file.display()
        )
    }

    /// Opens the stores after folding the journals of all servers of this machine.
    ///
    /// # Errors
    /// A store cannot be opened, or the journals cannot be read.
    pub async fn stores_with_folded_journals(&self) -> anyhow::Result<Stores> {
        let stores = self.stores().await?;
        fold_journals(&self.config, &stores, FOLD_WITHIN).await?;
        Ok(stores)
    }
}

/// Longest user name taken from the environment, in characters.
const MAX_USER: usize = 64;

fn actor_of(user: OsUser, sudo_user: Option<&str>) -> Actor {
    let source = match sudo_user {
        // A variable can be set by anyone: the name is recorded as a claim, and truncated.
        Some(of) => {
            let of: String = of.chars().filter(|sign| !sign.is_control()).take(MAX_USER).collect();
            format!("{}, sudo of {of}", user.host)
        }
        None => user.host,
    };
    Actor { name: format!("user:{}", user.name), source: Some(source) }
}

/// The mark that editors and shells of Windows write at the beginning of a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads a file or, for `-`, standard input. Returns the text, without a byte order mark, and the name for messages.
///
/// # Errors
/// The file cannot be read, or its content is not UTF-8.
pub fn read_input(file: &str) -> anyhow::Result<(String, &str)> {
    let mut text = String::new();
    let name = if file == "-" {
        std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
        "standard input"
    } else {
        text = read_text(file.as_ref()).with_context(|| format!("cannot read {file}"))?;
        file
    };
    if text.starts_with(BYTE_ORDER_MARK) {
        text.remove(0);
    }
    Ok((text, name))
}

/// Reads JSON from a file or, for `-`, from standard input.
///
/// # Errors
/// The file cannot be read, or its content is not JSON.
pub fn read_json(file: &str) -> anyhow::Result<Json> {
    let (text, name) = read_input(file)?;
    Json::parse(&text).with_context(|| format!("{name} cannot be used"))
}

/// Reads a secret from a file: the whole content without surrounding white space and a byte order mark. The message
/// names the option only, because a path may be a misplaced secret.
///
/// # Errors
/// The file cannot be read, or is empty.
pub fn read_secret(option: &str, file: &std::path::Path) -> anyhow::Result<String> {
    let text = read_text(file).with_context(|| format!("the file of {option} cannot be read"))?;
    let secret = text.trim_start_matches(BYTE_ORDER_MARK).trim();
    anyhow::ensure!(!secret.is_empty(), "the file of {option} is empty");
    Ok(secret.to_owned())
}

/// Shows facts and asks a question on a terminal. Returns true if the answer is yes.
///
/// # Errors
/// There is no terminal to ask on; the error has the facts and the hint.
pub fn confirm(output: &Output, facts: &str, question: &str, hint: &str) -> anyhow::Result<bool> {
    let stdin = std::io::stdin();
    if output.is_json() || !stdin.is_terminal() {
        bail!("{facts}; {hint}");
    }
    note(facts);
    note(&format!("{question} [y/N]"));
    is_confirmation(stdin.lock()).context("cannot read the answer")
}

fn is_confirmation(mut input: impl BufRead) -> std::io::Result<bool> {
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}

/// Formats a timestamp as RFC 3339 in UTC, to the millisecond.
pub fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Parses an RFC 3339 time, or a date as its beginning in UTC.
///
/// # Errors
/// The text is neither; the error names the option.
pub fn parse_timestamp(option: &str, text: &str) -> anyhow::Result<DateTime<Utc>> {
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Ok(day.and_time(NaiveTime::MIN).and_utc());
    }
    // The parser's reason would be about times, also for a date with a month that does not exist.
    let at = DateTime::parse_from_rfc3339(text).map_err(|_| {
        anyhow!(
            "{option} {text:?} is neither a date nor an RFC 3339 time, for example 2027-01-31 or 2027-01-31T00:00:00Z"
        )
    })?;
    Ok(at.with_timezone(&Utc))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn actor_is_real_user_of_command() {
        let user = || OsUser { name: "root".to_owned(), host: "node-1".to_owned() };
        let actor = |source: &str| Actor { name: "user:root".to_owned(), source: Some(source.to_owned()) };
        assert_eq!(actor_of(user(), None), actor("node-1"));
        assert_eq!(actor_of(user(), Some("alice\n")), actor("node-1, sudo of alice"));
        let long = actor_of(user(), Some(&"é".repeat(1000)));
        assert_eq!(long, actor(&format!("node-1, sudo of {}", "é".repeat(64))));
    }

    #[test]
    fn read_input_removes_byte_order_mark() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        for text in ["{}", "\u{feff}{}"] {
            fs::write(path, text).unwrap();
            assert_eq!(read_input(path).unwrap(), ("{}".to_owned(), path));
        }
    }

    #[test]
    fn read_secret_trims_and_does_not_repeat_the_path() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), " s3cret\n").unwrap();
        assert_eq!(read_secret("--key-file", file.path()).unwrap(), "s3cret");
        fs::write(file.path(), "\u{feff}s3cret\r\n").unwrap();
        assert_eq!(read_secret("--key-file", file.path()).unwrap(), "s3cret");
        fs::write(file.path(), "\n").unwrap();
        assert_eq!(read_secret("--key-file", file.path()).unwrap_err().to_string(), "the file of --key-file is empty");
        let error = format!("{:#}", read_secret("--key-file", "sk-misplaced".as_ref()).unwrap_err());
        assert!(error.starts_with("the file of --key-file cannot be read") && !error.contains("sk-"), "{error}");
    }

    #[test]
    fn timestamp_is_date_or_time() {
        let read = |text: &str| parse_timestamp("--since", text).unwrap().to_rfc3339();
        assert_eq!(read("2027-01-31"), "2027-01-31T00:00:00+00:00");
        assert_eq!(read("2027-01-31T12:30:00.5+02:00"), "2027-01-31T10:30:00.500+00:00");
        for bad in ["", "yesterday", "2027-02-30", "2027-01-31T00:00:00"] {
            let message = parse_timestamp("--since", bad).unwrap_err().to_string();
            assert!(message.contains("--since") && message.contains("neither"), "{message}");
        }
    }

    #[test]
    fn confirmation_requires_explicit_yes() {
        for (input, expected) in [("y\n", true), ("YES\n", true), ("\n", false), ("", false), ("no\n", false)] {
            assert_eq!(is_confirmation(input.as_bytes()).unwrap(), expected, "{input:?}");
        }
    }
}
