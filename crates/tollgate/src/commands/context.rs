//! What every command has at hand.

use std::path::PathBuf;

use adapters_system::OsUser;
use anyhow::bail;
use domain::audit::Actor;
use domain::ids::WorkspaceId;

use crate::cli::GlobalArgs;
use crate::config::{self, Config, Environment};
use crate::output::Output;
use crate::wiring::{Schema, Stores, settle_journals};

/// What every command has at hand.
pub struct Context {
    /// The configuration.
    pub config: Config,
    /// The process's environment.
    pub environment: Environment,
    /// Where results go.
    pub output: Output,
    /// What `--config` named.
    pub config_flag: Option<PathBuf>,
}

impl Context {
    /// Reads the configuration.
    ///
    /// # Errors
    /// The configuration is at fault.
    pub fn new(global: GlobalArgs, environment: Environment) -> Result<Self, config::ConfigError> {
        let config = config::load(global.config.as_deref(), &environment)?;
        Ok(Self { config, environment, output: Output::new(global.json), config_flag: global.config })
    }

    /// Who runs the command, for the audit log: the user of the operating system, whatever the environment says. On
    /// whose behalf `sudo` ran it is noted beside the machine's name.
    pub fn actor(&self) -> Actor {
        actor_of(OsUser::of_process(), self.environment.get("SUDO_USER"))
    }

    /// Opens the stores of an existing database, up to date. A command in the wrong folder must not leave an empty
    /// database there and answer from it.
    ///
    /// # Errors
    /// There is no database, or a store cannot be opened.
    pub async fn stores(&self) -> anyhow::Result<Stores> {
        self.require_database()?;
        Stores::open(&self.config, Schema::UpToDate).await
    }

    /// Checks that the database file exists.
    ///
    /// # Errors
    /// It does not; the sentence says where it was expected and how to point elsewhere.
    pub fn require_database(&self) -> anyhow::Result<()> {
        let file = &self.config.storage.file;
        // Other faults are reported where the file is opened.
        if file.try_exists().unwrap_or(true) {
            return Ok(());
        }
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        bail!(
            "no database at {}: `tollgate serve` and `tollgate migrate up` create one; --config, storage.url and \
             TOLLGATE__STORAGE__URL point at another",
            file.display()
        )
    }

    /// Opens the stores, with the charges of all servers of this machine in them.
    ///
    /// # Errors
    /// A store cannot be opened, or the journals cannot be read.
    pub async fn settled_stores(&self) -> anyhow::Result<Stores> {
        let stores = self.stores().await?;
        settle_journals(&self.config, &stores).await?;
        Ok(stores)
    }

    /// The workspace that an option names, or the default one, which is made where it is missing.
    ///
    /// # Errors
    /// The id is malformed or names no workspace, or the store failed.
    pub async fn workspace(&self, stores: &Stores, named: Option<&str>) -> anyhow::Result<WorkspaceId> {
        let Some(named) = named else { return Ok(stores.create_workspace().default(&self.actor()).await?.id) };
        let Ok(id) = named.parse::<WorkspaceId>() else { bail!("{named:?} is not a workspace id") };
        match stores.workspaces.find(id).await? {
            Some(workspace) => Ok(workspace.id),
            None => bail!("there is no workspace {id}"),
        }
    }
}

/// Longest name of a user that is noted from the environment, in characters.
const MAX_USER: usize = 64;

fn actor_of(user: OsUser, sudo_user: Option<&str>) -> Actor {
    let source = match sudo_user {
        // Anybody can set a variable: it is told as what it says, and short.
        Some(of) => {
            let of: String = of.chars().filter(|sign| !sign.is_control()).take(MAX_USER).collect();
            format!("{}, sudo of {of}", user.host)
        }
        None => user.host,
    };
    Actor { name: format!("user:{}", user.name), source: Some(source) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_its_real_user_s() {
        let user = || OsUser { name: "root".to_owned(), host: "node-1".to_owned() };
        let actor = |source: &str| Actor { name: "user:root".to_owned(), source: Some(source.to_owned()) };
        assert_eq!(actor_of(user(), None), actor("node-1"));
        assert_eq!(actor_of(user(), Some("alice\n")), actor("node-1, sudo of alice"));
        let long = actor_of(user(), Some(&"é".repeat(1000)));
        assert_eq!(long, actor(&format!("node-1, sudo of {}", "é".repeat(64))));
    }
}
