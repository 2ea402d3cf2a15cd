//! Names of files that are none, and files that are not the caller's.

use anyhow::{Result, ensure};
use tollgate_tests::{Report, raw};

use crate::promote::file_id;
use crate::world::World;

#[tokio::test]
async fn a_file_id_that_names_no_path_is_a_400() -> Result<()> {
    let world = World::start("").await?;
    world.instance.put("sess_a", "a", b"x").await?;
    let raw_paths: [&[u8]; 18] = [
        b"",
        b"a\0b",
        b"\0",
        b"a\nb",
        b"a\x7f",
        b"..",
        b"../a",
        b"../../etc/passwd",
        b"a/../../b",
        b"a/..",
        b"./a",
        b"/etc/passwd",
        b"//a",
        b"a//b",
        b"a/",
        b"..\\a",
        b"C:\\windows",
        b"\xff\xfe",
    ];
    let mut ids: Vec<String> = raw_paths.iter().map(file_id).collect();
    ids.push(file_id("a".repeat(256)));
    ids.push(file_id("a/".repeat(600) + "b"));
    ids.extend(
        [
            "cfile_YQ==", // padded
            "cfile_YQ%3D%3D",
            "cfile_YR",   // bits that mean nothing
            "cfile_Y",    // no whole byte
            "cfile_+/+/", // the other alphabet, and two segments
            "cfile_%2B%2F%2B%2F",
            "cfile_YQ%00",
            "cfile_YQ%zz",
            "cfile_YQ%",
            "%",
            "cfile_%2e%2e",
            "cfile_%20YQ",
            "cfile_Y%0AQ",
            "cfile_",
            "cfile",
            "CFILE_YQ",
            "file_YQ",
            "YQ",
            "%2e%2e",
            "..%2f..%2fetc%2fpasswd",
            "%00",
            "%ff",
            "%2Fetc%2Fpasswd",
            "..%5C..%5Ca",
            "%F0%9F%94%91",
        ]
        .map(str::to_owned),
    );
    ids.push(format!("cfile_{}", "A".repeat(6_000)));
    let mut report = Report::default();
    for id in &ids {
        let reply = world.server.promote(&world.inference.secret, "sess_a", id).await?;
        // A slash in the path makes it another route.
        let status = if id.contains('/') { 404 } else { 400 };
        report.case(&format!("{id:.80}"), reply.envelope(status));
    }
    // Well-formed names of nothing are not faults.
    for path in ["%2e%2e/x", "..a", "a..b/...", "späce and*?#1.txt", "~", "b", "a/b"] {
        let reply = world.server.promote(&world.inference.secret, "sess_a", &file_id(path)).await?;
        report.case(path, reply.error(404, ""));
    }
    ensure!(world.instance.document_blobs()?.is_empty(), "a document was made");
    world.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn a_path_that_climbs_in_the_open_meets_no_file() -> Result<()> {
    let world = World::start("").await?;
    let secret = &world.inference.secret;
    let mut report = Report::default();
    for path in [
        "/api/v1/containers/sess_a/files/../../../../etc/passwd/promote",
        "/api/v1/containers/sess_a/files/%2e%2e/%2e%2e/promote",
        "/api/v1/containers/../files/cfile_YQ/promote",
        "/api/v1/containers//files/cfile_YQ/promote",
        "/api/v1/containers/sess_a/files//promote",
        "//etc/passwd",
    ] {
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\ncontent-length: 0\r\n\
             connection: close\r\n\r\n"
        );
        let answer = raw(world.server.address(), request.as_bytes()).await?;
        let fine = answer.starts_with("HTTP/1.1 404") || answer.starts_with("HTTP/1.1 400");
        report.case(path, if fine { Ok(()) } else { Err(anyhow::anyhow!("{answer:.200}")) });
    }
    world.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn a_container_id_that_is_none_is_a_400() -> Result<()> {
    let world = World::start("").await?;
    let mut report = Report::default();
    let long = "a".repeat(129);
    for id in ["%2e%2e", "..%2f..", "a%20b", "a.b", "%00", "%C3%A9", "a%2Fb", "a:b", &long] {
        let reply = world.server.promote(&world.inference.secret, id, &file_id("a")).await?;
        report.case(id, reply.envelope(400));
    }
    let longest = "a".repeat(128);
    for id in ["sess_a", "sess_a-r1", "_", "-", &longest] {
        let reply = world.server.promote(&world.inference.secret, id, &file_id("a")).await?;
        report.case(id, reply.error(404, ""));
    }
    report.finish()
}

#[tokio::test]
async fn another_workspaces_container_is_as_if_it_were_not_there() -> Result<()> {
    let world = World::start("").await?;
    let id = world.instance.put("sess_a", "a", b"x").await?;
    let workspace = world.instance.workspace("other").await?;
    let other = world.instance.key(&["--name", "other", "--workspace", &workspace]).await?;
    let theirs = world.server.promote(&other.secret, "sess_a", &id).await?;
    let nobodys = world.server.promote(&other.secret, "sess_b", &id).await?;
    let message =
        |reply: &tollgate_tests::Reply| Ok::<_, anyhow::Error>(reply.envelope(404)?["error"]["message"].clone());
    ensure!(message(&theirs)? == message(&nobodys)?, "the answers tell that it is there");
    // A restarted session is another container.
    world.server.promote(&world.inference.secret, "sess_a-r1", &id).await?.envelope(404)?;
    world.server.promote(&world.inference.secret, "SESS_A", &id).await?.envelope(404)?;
    world.server.promote(&world.inference.secret, "sess_a", &id).await?.ok()?;
    Ok(())
}

#[cfg(unix)]
#[tokio::test]
async fn links_folders_and_devices_in_a_container_are_no_files() -> Result<()> {
    use std::os::unix::fs::symlink;
    let world = World::start("").await?;
    world.instance.put("sess_a", "real", b"mine").await?;
    let own = world.instance.default_workspace().await?;
    let workspace = world.instance.workspace("other").await?;
    let private = world.instance.container_file(&workspace, "sess_b", "private")?;
    std::fs::write(&private, b"another workspace's")?;
    let at = |path: &str| world.instance.container_file(&own, "sess_a", path);
    symlink("/etc/passwd", at("to-the-host")?)?;
    symlink(&private, at("to-another")?)?;
    symlink("../../../../test.toml", at("relative")?)?;
    symlink("real", at("to-its-own")?)?;
    symlink("nowhere", at("dangling")?)?;
    symlink("loop", at("loop")?)?;
    symlink(private.parent().unwrap_or(&private), at("folder")?)?;
    symlink("/", at("root")?)?;
    std::fs::create_dir(at("plain-folder")?)?;
    let made = std::process::Command::new("mkfifo").arg(at("pipe")?).status();
    let mut paths = vec![
        "to-the-host",
        "to-another",
        "relative",
        "to-its-own",
        "dangling",
        "loop",
        "folder/private",
        "root/etc/passwd",
        "plain-folder",
        "folder",
        "real/below",
    ];
    if made.is_ok_and(|status| status.success()) {
        paths.push("pipe");
    }
    let mut report = Report::default();
    for path in paths {
        let reply = world.server.promote(&world.inference.secret, "sess_a", &file_id(path)).await?;
        report.case(path, reply.error(404, ""));
    }
    let containers = world.instance.blobs().join("containers").join(&own);
    symlink(format!("../{workspace}/sess_b"), containers.join("sess_linked"))?;
    let reply = world.server.promote(&world.inference.secret, "sess_linked", &file_id("private")).await?;
    report.case("a container that is a link", reply.error(404, ""));
    ensure!(world.instance.document_blobs()?.is_empty(), "a document was made");
    world.server.promote(&world.inference.secret, "sess_a", &file_id("real")).await?.ok()?;
    world.server.ensure_healthy().await?;
    report.finish()
}
