//! The sockets of servers, as the command line uses them.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tollgate_tests::{Instance, Report, is_root};

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

/// Answers the first request, by which a command finds the server, and sends `answer` to all others, incomplete.
async fn stop_in_the_middle(listener: &UnixListener, answer: &str) -> Result<()> {
    let (mut answers, mut head) = (["HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"].into_iter(), vec![0; 65_536]);
    loop {
        let (mut stream, _) = listener.accept().await?;
        ensure!(stream.read(&mut head).await? > 0, "no request");
        stream.write_all(answers.next().unwrap_or(answer).as_bytes()).await?;
    }
}

#[tokio::test]
async fn server_that_stops_within_its_answer_is_one_sentence() -> Result<()> {
    let instance = Instance::on_file("")?;
    instance.json(&["key", "list"]).await?;
    std::fs::write(instance.path().join("local"), "x")?;
    std::fs::create_dir_all(folder(&instance))?;
    let socket = folder(&instance).join("server.sock");
    let mut report = Report::default();
    for answer in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"data\":",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n7\r\n{\"data\"\r\n",
    ] {
        for command in ["key create --name a", "key list", "container put c f local", "usage list --csv"] {
            let listener = UnixListener::bind(&socket)?;
            let arguments: Vec<&str> = command.split(' ').collect();
            let output = tokio::select! {
                output = instance.run(&arguments) => output?,
                stopped = stop_in_the_middle(&listener, answer) => anyhow::bail!("the listener ended: {stopped:?}"),
            };
            let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
            let names_cause = said.contains("the server did not") || said.contains("the download is incomplete");
            let is_sentence = !output.status.success() && said.lines().count() == 1 && names_cause;
            let sentence = is_sentence.then_some(()).with_context(|| format!("{}: {said}", output.status));
            report.case(&format!("{command}, {answer:?}"), sentence);
            std::fs::remove_file(&socket)?;
        }
    }
    report.finish()?;
    ensure!(instance.json(&["key", "list"]).await?["total_count"] == 0, "nothing is half done");
    Ok(())
}

/// Listens on a socket as another user, which the thread that listens becomes.
fn listen_as_another_user(socket: &Path) -> Result<StdListener> {
    let socket = socket.to_owned();
    let listening = std::thread::Builder::new().spawn(move || {
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65_534))?;
        StdListener::bind(socket)
    })?;
    Ok(listening.join().map_err(|_| anyhow!("the listening thread panicked"))??)
}

/// A socket that another user has put in the place of the server's is not used, and receives nothing. Needs root, to
/// become that user.
#[tokio::test]
async fn replaced_socket_is_rejected_before_anything_is_sent() -> Result<()> {
    if !is_root()? {
        return Ok(());
    }
    let instance = Instance::on_file("")?;
    instance.json(&["key", "list"]).await?;
    std::fs::create_dir_all(folder(&instance))?;
    for path in folder(&instance).ancestors().take_while(|path| *path != Path::new("/tmp")) {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o777))?;
    }
    let socket = folder(&instance).join("server.sock");
    let listener = listen_as_another_user(&socket)?;
    let said = instance.refused(&["key", "create", "--name", "a"]).await?;
    ensure!(said.contains("another user listens on the socket") && said.lines().count() == 1, "{said}");
    listener.set_nonblocking(true)?;
    let mut received = Vec::new();
    while let Ok((mut connection, _)) = listener.accept() {
        connection.read_to_end(&mut received)?;
    }
    ensure!(received.is_empty(), "the listener received {}", String::from_utf8_lossy(&received));
    std::fs::remove_file(&socket)?;
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
    if !is_root()? {
        return Ok(());
    }
    let instance = Instance::on_file("")?;
    let server = instance.serve().await?;
    for path in folder(&instance).ancestors().skip(1).take_while(|path| *path != Path::new("/tmp")) {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755))?;
    }
    let program = tollgate_tests::binary_folder()?.join("tollgate").display().to_string();
    let mut command = tokio::process::Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", &program, "key", "list"]);
    let database = instance.database().display().to_string();
    command.env("TOLLGATE__STORAGE__URL", format!("sqlite://{database}")).current_dir("/");
    let called = command.output().await?;
    let said = String::from_utf8_lossy(&called.stderr).into_owned();
    ensure!(!called.status.success() && said.lines().count() == 1, "{said}");
    ensure!(said.contains("run the command as the user of the server, or use --url"), "{said}");
    server.stop().await
}
