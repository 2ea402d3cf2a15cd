//! Uploads into containers by the command line.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;
use tollgate_tests::{Instance, binary_folder, files_below, is_root, wait_for};

/// A user and a group without files.
const OTHER: (u32, u32) = (61_001, 61_002);

#[tokio::test]
async fn upload_of_root_belongs_to_the_owner_of_the_blobs() -> Result<()> {
    let instance = Instance::new("")?;
    instance.json(&["container", "list", "sess_a"]).await?;
    // Only root can give files away.
    if !is_root()? {
        return Ok(());
    }
    chown(instance.blobs(), Some(OTHER.0), Some(OTHER.1))?;
    instance.put("sess_a", "deep/er/file", b"x").await?;
    let file = files_below(&instance.blobs())?.pop().context("no file")?;
    ensure!(file.ends_with("sess_a/deep/er/file"), "{}", file.display());
    for path in file.ancestors().take_while(|path| *path != instance.blobs()) {
        let metadata = std::fs::metadata(path)?;
        ensure!((metadata.uid(), metadata.gid()) == OTHER, "{} belongs to {}", path.display(), metadata.uid());
    }
    Ok(())
}

#[tokio::test]
async fn upload_above_max_file_bytes_is_rejected() -> Result<()> {
    let instance = Instance::new("[limits]\nmax_file_bytes = 10\n")?;
    instance.json(&["container", "list", "sess_a"]).await?;
    std::fs::write(instance.path().join("local"), [b'x'; 10])?;
    let put = ["container", "put", "sess_a", "f", "local"];
    let written = instance.json(&put).await?;
    ensure!(written["bytes"] == 10 && written["path"] == "f", "{written}");
    std::fs::write(instance.path().join("local"), [b'x'; 11])?;
    let said = instance.refused(&put).await?;
    ensure!(said.contains("larger than 10 bytes"), "{said}");
    let listed = instance.json(&["container", "list", "sess_a"]).await?;
    ensure!(listed["data"][0]["bytes"] == 10, "{listed}");
    Ok(())
}

#[tokio::test]
async fn stopped_upload_leaves_nothing_behind() -> Result<()> {
    let instance = Instance::new("")?;
    instance.json(&["container", "list", "sess_a"]).await?;
    let pipe = instance.path().join("pipe");
    ensure!(Command::new("mkfifo").arg(&pipe).status().await?.success());
    for signal in ["INT", "TERM", "HUP", "QUIT"] {
        // A pipe that is opened for both directions does not wait for a reader.
        let mut writer = File::options().read(true).write(true).open(&pipe)?;
        writer.write_all(&[b'x'; 10_000])?;
        let mut command = Command::new(binary_folder()?.join("tollgate"));
        command.args(["container", "put", "sess_a", "new/folder/f", "pipe"]).env_clear().current_dir(instance.path());
        command.env("TOLLGATE__STORAGE__URL", format!("sqlite://{}", instance.database().display()));
        command.env("TOLLGATE__BLOBS__URL", format!("file:{}", instance.blobs().display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let child = command.spawn()?;
        let pid = child.id().context("it has ended")?;
        let has_files = || files_below(&instance.blobs()).is_ok_and(|files| !files.is_empty());
        wait_for("a partial file", has_files).await?;
        let script = format!("kill -{signal} {pid}");
        ensure!(Command::new("/bin/sh").args(["-c", &script]).status().await?.success());
        let output = child.wait_with_output().await?;
        let said = String::from_utf8(output.stderr)?;
        ensure!(output.status.code() == Some(1) && said.contains(&format!("stopped by SIG{signal}")), "{said}");
        ensure!(!has_files(), "{:?}", files_below(&instance.blobs())?);
        ensure!(!instance.blobs().join("containers").exists(), "a folder was left behind");
    }
    Ok(())
}

#[tokio::test]
async fn upload_to_a_killed_server_is_one_sentence_and_leaves_no_file() -> Result<()> {
    let instance = Instance::on_file("")?;
    let pipe = instance.path().join("pipe");
    ensure!(Command::new("mkfifo").arg(&pipe).status().await?.success());
    let server = instance.serve().await?;
    let mut writer = File::options().read(true).write(true).open(&pipe)?;
    writer.write_all(&[b'x'; 10_000])?;
    let put = ["container", "put", "sess_a", "new/folder/f", "pipe"];
    let kill = async {
        let has_files = || files_below(&instance.blobs()).is_ok_and(|files| !files.is_empty());
        wait_for("a partial file", has_files).await?;
        server.kill().await
    };
    let (said, killed) = tokio::join!(instance.refused(&put), kill);
    let said = said?;
    killed?;
    ensure!(said.lines().count() == 1 && said.contains("the server did not answer"), "{said}");
    let listed = instance.json(&["container", "list", "sess_a"]).await?;
    ensure!(listed["data"].as_array().is_some_and(Vec::is_empty), "{listed}");
    drop(writer);
    Ok(())
}
