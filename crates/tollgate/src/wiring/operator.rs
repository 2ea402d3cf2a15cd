//! The operator's socket of this server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use adapters_system::{OsUser, effective_user_id};
use api_actix::{OperatorActor, OperatorSocket};
use domain::audit::Actor;

use super::SocketFolder;

/// The user id of root.
const ROOT: u32 = 0;

/// The path of a socket, which is removed on drop.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl SocketFile {
    /// Binds the socket of a process.
    ///
    /// # Errors
    /// The folder or the socket cannot be created.
    pub async fn bind(folder: &SocketFolder, id: &str) -> io::Result<(Self, OperatorSocket)> {
        let (listener, path) = folder.bind(id).await?;
        let file = Self(path);
        Ok((file, OperatorSocket { listener: listener.into_std()?, actor: operator_actor() }))
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The folder may be gone.
        let _ = fs::remove_file(&self.0);
    }
}

/// Recognises the user of this process and root, who can read the files of this server anyway.
fn operator_actor() -> OperatorActor {
    let own = effective_user_id();
    Arc::new(move |user| {
        (user == own || user == ROOT).then(|| {
            let user = OsUser::of_id(user);
            Actor { name: format!("user:{}", user.name), source: Some(user.host) }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operator_is_own_user_or_root() {
        let actor = operator_actor();
        let own = effective_user_id();
        assert_eq!(actor(ROOT).unwrap().name, "user:root");
        assert_eq!(actor(own).unwrap().name, format!("user:{}", OsUser::of_id(own).name));
        assert!(actor(own.max(1) + 1).is_none());
    }

    #[tokio::test]
    async fn socket_is_removed_with_its_owner() {
        let root = tempfile::tempdir().unwrap();
        let folder = SocketFolder::of(&root.path().join("t.db"));
        let (file, _socket) = SocketFile::bind(&folder, "server").await.unwrap();
        let path = file.path().to_owned();
        assert!(path.exists());
        drop(file);
        assert!(!path.exists());
    }
}
