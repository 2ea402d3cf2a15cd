//! The folder of the sockets of a database's servers.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use adapters_system::effective_user_id;
use http::Request;
use http_client::body::full;
use tokio::net::{UnixListener, UnixStream};

/// The user id of root.
const ROOT: u32 = 0;
/// The permissions of the folder: its owner only. They protect the sockets.
const OWNER_ONLY: u32 = 0o700;
/// The permissions of a socket.
const SOCKET_MODE: u32 = 0o600;
/// The maximum length of the path of a Unix socket on all systems, in bytes.
const MAX_SOCKET_PATH: usize = 100;
/// The time within which a server answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// The extension of sockets.
const EXTENSION: &str = "sock";
/// The extension of a socket that may not listen yet.
const UNFINISHED: &str = "new";

/// The folder beside a database with a socket for each of its servers.
#[derive(Debug, Clone)]
pub struct SocketFolder(PathBuf);

impl SocketFolder {
    /// Returns the folder of the operator's sockets beside a path.
    pub fn of(path: &Path) -> Self {
        let mut name = path.as_os_str().to_owned();
        name.push(".sockets");
        Self(PathBuf::from(name))
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Binds the socket of a server. Creates the folder if it is missing, and removes sockets of dead servers.
    ///
    /// # Errors
    /// The folder or the socket cannot be created.
    pub async fn bind(&self, id: &str) -> io::Result<(UnixListener, PathBuf)> {
        match DirBuilder::new().mode(OWNER_ONLY).create(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => fs::set_permissions(&self.0, fs::Permissions::from_mode(OWNER_ONLY))?,
        }
        self.remove_dead().await;
        // A socket that is bound but does not listen yet looks dead, so it gets its name afterwards.
        let (unfinished, path) = (format!("{id}.{UNFINISHED}"), self.socket(id));
        let listener = UnixListener::bind(&self.short_path(&unfinished)?.path)?;
        fs::set_permissions(self.0.join(&unfinished), fs::Permissions::from_mode(SOCKET_MODE))?;
        fs::rename(self.0.join(unfinished), &path)?;
        Ok((listener, path))
    }

    /// Returns the ids of all sockets, those of dead servers included; none without a folder.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn ids(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let id = |path: PathBuf| {
            let is_socket = path.extension() == Some(OsStr::new(EXTENSION));
            path.file_stem().filter(|_| is_socket).and_then(OsStr::to_str).map(str::to_owned)
        };
        let mut ids: Vec<String> = entries.filter_map(|entry| id(entry.ok()?.path())).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Connects to a server; `None` if it is dead.
    ///
    /// # Errors
    /// The socket cannot be used.
    pub async fn connect(&self, id: &str) -> io::Result<Option<UnixStream>> {
        let connecting = async {
            let short = self.short_path(&format!("{id}.{EXTENSION}"))?;
            UnixStream::connect(&short.path).await
        };
        match connecting.await {
            Ok(stream) => self.check_peer(&stream).map(|()| Some(stream)),
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the ids of the running servers in the order of their starts, each with a connection.
    ///
    /// # Errors
    /// The folder or a socket cannot be used, for example by another user.
    pub async fn servers(&self) -> anyhow::Result<Vec<(String, UnixStream)>> {
        let unusable = |error: io::Error| {
            let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
            let hint = if is_denied { "; run the command as the user of the server, or use --url" } else { "" };
            anyhow::Error::from(error).context(format!("{} cannot be used{hint}", self.0.display()))
        };
        let mut servers = Vec::new();
        for id in self.ids().map_err(unusable)? {
            let stream = self.connect(&id).await.map_err(unusable)?;
            servers.extend(stream.map(|stream| (id, stream)));
        }
        Ok(servers)
    }

    /// Returns the id of a running server that answers; `None` if there is none.
    ///
    /// # Errors
    /// As of [`Self::servers`]; no running server answers.
    pub async fn find_server(&self) -> anyhow::Result<Option<String>> {
        let mut silent = None;
        for (id, stream) in self.servers().await? {
            if answers(stream).await {
                return Ok(Some(id));
            }
            silent = Some(id);
        }
        silent.map_or(Ok(None), |id| Err(anyhow::anyhow!("the server {id} runs and does not answer")))
    }

    /// Checks that the owner of the folder listens, or root. A socket of another user could read secrets.
    fn check_peer(&self, stream: &UnixStream) -> io::Result<()> {
        let (peer, owner) = (stream.peer_cred()?.uid(), fs::metadata(&self.0)?.uid());
        if peer == owner || peer == ROOT {
            return Ok(());
        }
        Err(io::Error::other("another user listens on the socket"))
    }

    async fn remove_dead(&self) {
        for id in self.ids().unwrap_or_default() {
            if self.is_own_socket(&id) && matches!(self.connect(&id).await, Ok(None)) {
                // Another server may have removed it.
                let _ = fs::remove_file(self.socket(&id));
            }
        }
    }

    /// Returns true for a socket of this user. Other files are never removed.
    fn is_own_socket(&self, id: &str) -> bool {
        fs::symlink_metadata(self.socket(id))
            .is_ok_and(|found| found.file_type().is_socket() && found.uid() == effective_user_id())
    }

    fn socket(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.{EXTENSION}"))
    }

    /// Returns a path of a socket that fits into a socket address: the kernel's name of the open folder replaces a long
    /// path.
    fn short_path(&self, name: &str) -> io::Result<ShortPath> {
        let path = self.0.join(name);
        if path.as_os_str().as_bytes().len() <= MAX_SOCKET_PATH {
            return Ok(ShortPath { path, _folder: None });
        }
        let folder = File::open(&self.0)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()));
        Ok(ShortPath { path, _folder: Some(folder) })
    }
}

/// Returns true if the server behind the stream answers in time; a paused process does not.
async fn answers(stream: UnixStream) -> bool {
    let Ok(request) = Request::get("/health/live").body(full(String::new())) else { return false };
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, http_client::send_over(stream, request)).await;
    matches!(answer, Ok(Ok(_)))
}

/// A path that is valid while the folder is open.
struct ShortPath {
    path: PathBuf,
    _folder: Option<File>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bind_removes_dead_sockets_and_admits_owner_only() {
        let root = tempfile::tempdir().unwrap();
        let folder = SocketFolder::of(&root.path().join("t.db"));
        assert!(folder.ids().unwrap().is_empty(), "without a folder");
        let (dead, _) = folder.bind("dead").await.unwrap();
        assert!(folder.connect("dead").await.unwrap().is_some());
        drop(dead);
        assert!(folder.connect("dead").await.unwrap().is_none());
        assert!(folder.connect("missing").await.unwrap().is_none());
        let (_first, _) = folder.bind("first").await.unwrap();
        let (_second, path) = folder.bind("second").await.unwrap();
        assert_eq!(folder.ids().unwrap(), ["first", "second"]);
        assert!(path.ends_with("t.db.sockets/second.sock"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(folder.path()), mode(&path)), (0o700, 0o600));
    }

    #[tokio::test]
    async fn bind_removes_sockets_only() {
        let root = tempfile::tempdir().unwrap();
        let folder = SocketFolder::of(&root.path().join("t.db"));
        drop(folder.bind("dead").await.unwrap());
        let outside = root.path().join("outside.sock");
        fs::rename(folder.socket("dead"), &outside).unwrap();
        fs::write(folder.socket("file"), "kept").unwrap();
        std::os::unix::fs::symlink(&outside, folder.socket("link")).unwrap();
        let (_listener, _) = folder.bind("server").await.unwrap();
        assert_eq!(folder.ids().unwrap(), ["file", "link", "server"]);
        assert!(outside.exists());
    }

    #[tokio::test]
    async fn socket_gets_its_name_when_it_listens() {
        let root = tempfile::tempdir().unwrap();
        let folder = SocketFolder::of(&root.path().join("t.db"));
        let (listener, path) = folder.bind("server").await.unwrap();
        let bound = listener.local_addr().unwrap();
        let bound = bound.as_pathname().unwrap();
        assert_eq!(bound.extension(), Some(OsStr::new(UNFINISHED)), "the name while it does not listen");
        assert!(path.exists() && !bound.exists());
        assert!(folder.connect("server").await.unwrap().is_some());
    }

    #[tokio::test]
    async fn bind_accepts_long_path() {
        let root = tempfile::tempdir().unwrap();
        let long = root.path().join("a".repeat(120));
        fs::create_dir(&long).unwrap();
        let folder = SocketFolder::of(&long.join("t.db"));
        let (_listener, path) = folder.bind("server").await.unwrap();
        assert!(path.exists());
        assert!(folder.connect("server").await.unwrap().is_some());
    }
}
