//! The permissions of files and folders that the program creates.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use tollgate_tests::{Instance, Report};

/// Returns everything below a folder, folders and sockets included.
fn entries_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.symlink_metadata()?.is_dir() {
            found.extend(entries_below(&path)?);
        }
        found.push(path);
    }
    Ok(found)
}

#[tokio::test]
async fn created_files_are_private_with_any_mask() -> Result<()> {
    let mut report = Report::default();
    for mask in ["000", "077", "0277"] {
        let mut instance = Instance::on_file("")?;
        let outside = instance.path().join("outside/blobs");
        instance.set_env("TOLLGATE__BLOBS__URL", format!("file:{}", outside.display()));
        let given = entries_below(instance.path())?;
        let server = instance.serve_under(&format!("umask {mask}")).await?;
        let key = instance.inference_key().await?;
        let id = instance.put("sess_a", "a", b"x").await?;
        server.promote(&key.secret, "sess_a", &id).await?.ok()?;
        let archive = instance.path().join("backup.tar.zst").display().to_string();
        let written = instance.path().join("written.toml").display().to_string();
        for command in [["backup", &archive].as_slice(), &["config", "init", &written]] {
            let done = instance.run_under(&format!("umask {mask}"), command).await?;
            ensure!(done.status.success(), "{command:?}: {done:?}");
        }
        let mut seen = 0;
        for path in entries_below(instance.path())? {
            // The files of the test: the upload, and the output of the server.
            let is_of_test = path.ends_with("upload") || path.extension().is_some_and(|extension| extension == "log");
            if given.contains(&path) || is_of_test {
                continue;
            }
            seen += 1;
            let mode = path.symlink_metadata()?.permissions().mode() & 0o777;
            let is_usable = mode & 0o600 == 0o600;
            let shown = path.strip_prefix(instance.path())?.display().to_string();
            let name = format!("umask {mask}: {shown}");
            report.case(
                &name,
                if mode | 0o700 == 0o700 && is_usable { Ok(()) } else { Err(anyhow::anyhow!("{mode:o}")) },
            );
        }
        // Database, its side files, its locks, journal, blobs, socket, key file, archive, configuration.
        ensure!(seen >= 15, "{seen}");
        server.stop().await?;
    }
    report.finish()
}
