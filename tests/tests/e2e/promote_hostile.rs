//! Invalid file names, and files of other clients.

use anyhow::{Result, ensure};
use tollgate_tests::{Report, raw};

use crate::gateway::TestGateway;
use crate::promote::file_id;

#[tokio::test]
async fn invalid_file_id_returns_400() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    gateway.instance.put("sess_a", "a", b"x").await?;
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
            "cfile_YR",   // unused bits are set
            "cfile_Y",    // not a whole byte
            "cfile_+/+/", // standard alphabet, and two path segments
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
        let reply = gateway.server.promote(&gateway.inference.secret, "sess_a", id).await?;
        // A slash in the path selects another route.
        let status = if id.contains('/') { 404 } else { 400 };
        report.case(&format!("{id:.80}"), reply.envelope(status));
    }
    // Valid names of missing files return 404.
    for path in ["%2e%2e/x", "..a", "a..b/...", "späce and*?#1.txt", "~", "b", "a/b"] {
        let reply = gateway.server.promote(&gateway.inference.secret, "sess_a", &file_id(path)).await?;
        report.case(path, reply.error(404, ""));
    }
    ensure!(gateway.instance.document_blobs()?.is_empty(), "a document was made");
    gateway.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn path_traversal_in_url_finds_no_file() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let secret = &gateway.inference.secret;
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
        let answer = raw(gateway.server.address(), request.as_bytes()).await?;
        let fine = answer.starts_with("HTTP/1.1 404") || answer.starts_with("HTTP/1.1 400");
        report.case(path, if fine { Ok(()) } else { Err(anyhow::anyhow!("{answer:.200}")) });
    }
    gateway.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn invalid_container_id_returns_400() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let mut report = Report::default();
    let long = "a".repeat(129);
    for id in ["%2e%2e", "..%2f..", "a%20b", "a.b", "%00", "%C3%A9", "a%2Fb", "a:b", &long] {
        let reply = gateway.server.promote(&gateway.inference.secret, id, &file_id("a")).await?;
        report.case(id, reply.envelope(400));
    }
    let longest = "a".repeat(128);
    for id in ["sess_a", "sess_a-r1", "_", "-", &longest] {
        let reply = gateway.server.promote(&gateway.inference.secret, id, &file_id("a")).await?;
        report.case(id, reply.error(404, ""));
    }
    report.finish()
}

#[tokio::test]
async fn container_of_other_workspace_returns_404() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let id = gateway.instance.put("sess_a", "a", b"x").await?;
    let workspace = gateway.instance.workspace("other").await?;
    let other = gateway.instance.key(&["--name", "other", "--workspace", &workspace]).await?;
    let theirs = gateway.server.promote(&other.secret, "sess_a", &id).await?;
    let nobodys = gateway.server.promote(&other.secret, "sess_b", &id).await?;
    let message =
        |reply: &tollgate_tests::Reply| Ok::<_, anyhow::Error>(reply.envelope(404)?["error"]["message"].clone());
    ensure!(message(&theirs)? == message(&nobodys)?, "the responses reveal that it exists");
    // A restarted session is another container.
    gateway.server.promote(&gateway.inference.secret, "sess_a-r1", &id).await?.envelope(404)?;
    gateway.server.promote(&gateway.inference.secret, "SESS_A", &id).await?.envelope(404)?;
    gateway.server.promote(&gateway.inference.secret, "sess_a", &id).await?.ok()?;
    Ok(())
}

#[cfg(unix)]
#[tokio::test]
async fn links_folders_and_devices_are_not_promoted() -> Result<()> {
    use std::os::unix::fs::symlink;
    let gateway = TestGateway::start("").await?;
    gateway.instance.put("sess_a", "real", b"mine").await?;
    let own = gateway.instance.default_workspace().await?;
    let workspace = gateway.instance.workspace("other").await?;
    let private = gateway.instance.container_file(&workspace, "sess_b", "private")?;
    std::fs::write(&private, b"another workspace's")?;
    let at = |path: &str| gateway.instance.container_file(&own, "sess_a", path);
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
        let reply = gateway.server.promote(&gateway.inference.secret, "sess_a", &file_id(path)).await?;
        report.case(path, reply.error(404, ""));
    }
    let containers = gateway.instance.blobs().join("containers").join(&own);
    symlink(format!("../{workspace}/sess_b"), containers.join("sess_linked"))?;
    let reply = gateway.server.promote(&gateway.inference.secret, "sess_linked", &file_id("private")).await?;
    report.case("a container that is a link", reply.error(404, ""));
    ensure!(gateway.instance.document_blobs()?.is_empty(), "a document was made");
    gateway.server.promote(&gateway.inference.secret, "sess_a", &file_id("real")).await?.ok()?;
    gateway.server.ensure_healthy().await?;
    report.finish()
}
