//! The configuration file in another folder than the working directory, and misspelt environment variables.

use std::path::Path;
use std::process::Output;

use anyhow::{Result, ensure};
use tempfile::TempDir;
use tokio::process::Command;
use tollgate_tests::{Instance, binary_folder};

async fn run(folder: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(binary_folder()?.join("tollgate"));
    command.args(arguments).env_clear().envs(variables.iter().copied()).current_dir(folder);
    Ok(command.output().await?)
}

#[tokio::test]
async fn relative_paths_of_file_are_relative_to_its_folder() -> Result<()> {
    let (folder, elsewhere) = (TempDir::new()?, TempDir::new()?);
    let configuration = folder.path().join("conf 1");
    std::fs::create_dir(&configuration)?;
    let file = configuration.join("tollgate.toml");
    std::fs::write(
        &file,
        "[storage]\nurl = \"sqlite://data/t.db\"\n[blobs]\nurl = \"file:data/files\"\n\
         [[providers]]\nslug = \"p\"\nbase_url = \"http://127.0.0.1:9\"\napi_key = \"file:p.key\"\n",
    )?;
    std::fs::write(configuration.join("p.key"), "sk-1\n")?;
    let named = file.display().to_string();
    for folder in [elsewhere.path(), &configuration, Path::new("/")] {
        for command in [["migrate", "up"], ["config", "check"], ["key", "list"]] {
            let output = run(folder, &[], &[&command[..], &["--config", &named]].concat()).await?;
            ensure!(output.status.success(), "{command:?} in {}: {output:?}", folder.display());
        }
    }
    ensure!(configuration.join("data/t.db").is_file() && configuration.join("data/files").is_dir());
    ensure!(std::fs::read_dir(elsewhere.path())?.next().is_none(), "the working directory was used");

    // A variable belongs to the shell that sets it.
    let variables = [("TOLLGATE__STORAGE__URL", "sqlite://own.db"), ("TOLLGATE__BLOBS__URL", "file:own-files")];
    let output = run(elsewhere.path(), &variables, &["migrate", "up", "--config", &named]).await?;
    ensure!(output.status.success(), "{output:?}");
    ensure!(elsewhere.path().join("own.db").is_file());
    Ok(())
}

#[tokio::test]
async fn variable_with_single_underscores_stops_the_start() -> Result<()> {
    let mut instance = Instance::new("")?;
    // The shell of the quick start has such variables.
    instance.set_env("TOLLGATE_KEY", "sk-tg-v1-1");
    instance.set_env("TOLLGATE_KEY_ID", "key-1");
    instance.json(&["migrate", "status"]).await?;
    instance.set_env("TOLLGATE_SERVER_LISTEN", "0.0.0.0:1");
    for command in [&["serve"][..], &["key", "list"], &["config", "check"]] {
        let said = instance.refused(command).await?;
        ensure!(said.contains("TOLLGATE_SERVER_LISTEN") && said.contains("TOLLGATE__SERVER__LISTEN"), "{said}");
    }
    Ok(())
}
