//! Certificates for servers and clients.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use tempfile::TempDir;

/// A certificate authority in a temporary folder.
pub struct Authority {
    folder: TempDir,
}

/// A certificate and its key, as PEM files.
pub struct Certificate {
    /// The certificate.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

impl Authority {
    /// Creates an authority with a new key.
    ///
    /// # Errors
    /// OpenSSL is not installed.
    pub fn create() -> anyhow::Result<Self> {
        let authority = Self { folder: TempDir::with_prefix("authority-").context("no temporary folder")? };
        let extensions = "basicConstraints = critical, CA:TRUE\nkeyUsage = critical, keyCertSign\n";
        authority.request("ca", "Tollgate tests", extensions, &[])?;
        Ok(authority)
    }

    /// Returns the certificate of the authority.
    pub fn certificate(&self) -> PathBuf {
        self.file("ca.pem")
    }

    /// Issues a certificate for a host or a user of this name.
    ///
    /// # Errors
    /// OpenSSL fails.
    pub fn issue(&self, name: &str) -> anyhow::Result<Certificate> {
        let extensions = format!("basicConstraints = critical, CA:FALSE\nsubjectAltName = DNS:{name}\n");
        let signed_by = [("-CA", self.file("ca.pem")), ("-CAkey", self.file("ca.key"))];
        self.request(name, name, &extensions, &signed_by)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn request(
        &self,
        file: &str,
        name: &str,
        extensions: &str,
        signed_by: &[(&str, PathBuf)],
    ) -> anyhow::Result<Certificate> {
        let configuration = self.file(&format!("{file}.cnf"));
        let text = format!(
            "[req]\ndistinguished_name = name\nprompt = no\nx509_extensions = extensions\n[name]\nCN = {name}\n\
             [extensions]\n{extensions}"
        );
        std::fs::write(&configuration, text)?;
        let made =
            Certificate { certificate: self.file(&format!("{file}.pem")), key: self.file(&format!("{file}.key")) };
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        openssl.args(["-days", "2", "-config"]).arg(&configuration);
        openssl.arg("-keyout").arg(&made.key).arg("-out").arg(&made.certificate);
        for (option, path) in signed_by {
            openssl.arg(option).arg(path);
        }
        let output = openssl.output().context("these tests need OpenSSL: `apt-get install openssl`")?;
        ensure!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
        Ok(made)
    }
}

impl Certificate {
    /// Returns a copy of a file that a server may read.
    pub(crate) fn copy(from: &Path, folder: &Path, user: crate::user::User) -> anyhow::Result<PathBuf> {
        let to = folder.join(from.file_name().context("no file")?);
        std::fs::copy(from, &to).with_context(|| format!("{} cannot be copied", from.display()))?;
        user.own(&to)?;
        Ok(to)
    }
}
