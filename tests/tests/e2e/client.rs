//! The sockets of servers, as the command line uses them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use tokio::net::UnixListener;
use tollgate_tests::Instance;

fn folder(instance: &Instance) -> PathBuf {
    instance.path().join("data/tollgate.db.sockets")
}

#[tokio::test]
async fn socket_of_a_dead_server_or_another_file_is_ignored() -> Result<()> {
    let instance = Instance::on_file("")?;
    let server = instance.serve().await?;
    server.kill().await?;
    ensure!(folder(&instance).read_dir()?.count() == 1, "a killed server leaves its socket behind");
    instance.json(&["key", "create", "--name", "a"]).await?;
    std::fs::write(folder(&instance).join("0.sock"), "no socket")?;
    instance.json(&["key", "create", "--name", "b"]).await?;
    ensure!(instance.json(&["key", "list"]).await?["total_count"] == 2);
    Ok(())
}

#[tokio::test]
async fn server_that_stops_in_the_middle_is_one_sentence() -> Result<()> {
    let instance = Instance::on_file("")?;
    instance.json(&["key", "list"]).await?;
    std::fs::create_dir_all(folder(&instance))?;
    let listener = UnixListener::bind(folder(&instance).join("server.sock"))?;
    let refusing = instance.refused(&["key", "create", "--name", "a"]);
    let closing = async {
        while let Ok(accepted) = listener.accept().await {
            drop(accepted);
        }
    };
    let said = tokio::select! {
        said = refusing => said?,
        () = closing => anyhow::bail!("the listener failed"),
    };
    ensure!(said.contains("runs and does not answer"), "{said}");
    std::fs::remove_file(folder(&instance).join("server.sock"))?;
    ensure!(instance.json(&["key", "list"]).await?["total_count"] == 0, "nothing is half done");
    Ok(())
}

/// A command takes the lock of the servers shared, as the test does here.
#[tokio::test]
async fn commands_without_a_server_run_at_the_same_time() -> Result<()> {
    let instance = Instance::on_file("")?;
    instance.json(&["key", "list"]).await?;
    let mut lock = instance.database().into_os_string();
    lock.push(".serving");
    let lock = std::fs::File::open(lock)?;
    lock.lock_shared()?;
    let create = async |name: &'static str| instance.json(&["key", "create", "--name", name]).await;
    let (one, other) = tokio::join!(create("a"), create("b"));
    ensure!(one?["id"] != other?["id"]);
    lock.unlock()?;
    lock.lock()?;
    let said = instance.refused(&["key", "list"]).await?;
    ensure!(said.contains("another process uses the database alone"), "{said}");
    Ok(())
}

/// Another user can neither enter the folder nor put a socket of its own there. Needs root, to become that user.
#[tokio::test]
async fn foreign_user_gets_a_sentence() -> Result<()> {
    let instance = Instance::on_file("")?;
    let server = instance.serve().await?;
    for path in folder(&instance).ancestors().skip(1).take_while(|path| *path != Path::new("/tmp")) {
        let Ok(()) = std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)) else { return Ok(()) };
    }
    let program = tollgate_tests::binary_folder()?.join("tollgate").display().to_string();
    let mut command = tokio::process::Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", &program, "key", "list"]);
    let database = instance.database().display().to_string();
    command.env("TOLLGATE__STORAGE__URL", format!("sqlite://{database}")).current_dir("/");
    let Ok(called) = command.output().await else { return Ok(()) };
    let said = String::from_utf8_lossy(&called.stderr).into_owned();
    if said.contains("setpriv") {
        return Ok(());
    }
    ensure!(!called.status.success() && said.lines().count() == 1, "{said}");
    ensure!(said.contains("run the command as the user of the server, or use --url"), "{said}");
    server.stop().await
}
