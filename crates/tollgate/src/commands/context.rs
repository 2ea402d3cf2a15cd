//! What every command has at hand.

use std::path::PathBuf;

use anyhow::bail;
use domain::audit::Actor;
use domain::ids::WorkspaceId;

use crate::cli::GlobalArgs;
use crate::config::{self, Config, Environment};
use crate::output::Output;
use crate::wiring::{Schema, Stores};

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

    /// Who runs the command, for the audit log: the user of the operating system.
    pub fn actor(&self) -> Actor {
        Actor { name: format!("user:{}", self.environment.user()), source: None }
    }

    /// Opens the stores, up to date.
    ///
    /// # Errors
    /// A store cannot be opened.
    pub async fn stores(&self) -> anyhow::Result<Stores> {
        Stores::open(&self.config, Schema::UpToDate).await
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
