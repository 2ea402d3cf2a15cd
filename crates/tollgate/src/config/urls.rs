//! The URLs of stores and providers.

use super::files::check_certificate_file;
use std::path::{Path, PathBuf};

use domain::text::hex;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use sha2::{Digest as _, Sha256};

/// The characters of a path that have a meaning in a URL.
const RESERVED: &AsciiSet = &CONTROLS.add(b'%').add(b'?');

/// Returns true if a URL names a PostgreSQL database.
pub fn is_postgres(url: &str) -> bool {
    let lower = url.to_ascii_lowercase();
    lower.starts_with("postgres://") || lower.starts_with("postgresql://")
}

/// The parameters of a PostgreSQL URL. The driver logs any other with its value, which may be a secret.
const POSTGRES_PARAMETERS: [&str; 8] =
    ["application_name", "host", "options", "port", "sslcert", "sslkey", "sslmode", "sslrootcert"];

/// Returns the host, port and database of a PostgreSQL URL, for messages: no user, no password, no parameters. Reserved
/// characters of a user and a password are percent-encoded, so that a part of a password is never taken for a name.
pub fn postgres_name(url: &str) -> Result<String, String> {
    let form = || {
        "must have the form postgres://user:password@host:port/database, with reserved characters of the user and the \
         password percent-encoded"
            .to_owned()
    };
    let uri: http::Uri = url.replacen(":///", "://localhost/", 1).parse().map_err(|_| form())?;
    let authority = uri.authority().ok_or_else(form)?.as_str();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let database = uri.path().strip_prefix('/').unwrap_or_default();
    let is_name = |text: &str| !text.is_empty() && !text.contains(['/', '@', ':', '?', '#']);
    let port = if host.ends_with(']') { "0" } else { host.rsplit_once(':').map_or("0", |(_, port)| port) };
    if !is_name(database) || port.parse::<u16>().is_err() || authority.matches('@').count() > 1 || url.contains('#') {
        return Err(form());
    }
    let mut parameters = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let known = |pair: &str| POSTGRES_PARAMETERS.contains(&pair.split('=').next().unwrap_or_default());
    if !parameters.all(known) {
        return Err(format!("has an unknown parameter; the known ones are {}", POSTGRES_PARAMETERS.join(", ")));
    }
    check_encryption(uri.query().unwrap_or_default())?;
    let host = if url.contains(":///") { "" } else { host };
    Ok(format!("postgres://{host}/{database}"))
}

/// Returns a digest of the address of a PostgreSQL database whose [`postgres_name`] is `name`: host, port, database and
/// options, which may select a schema. Users, passwords and the encryption do not count.
pub fn postgres_digest(url: &str, name: &str) -> String {
    let (authority, database) =
        name.strip_prefix("postgres://").and_then(|name| name.split_once('/')).unwrap_or_default();
    let port = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
    let (host, port) = port.unwrap_or((authority, "5432"));
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let value = |name: &str| parameter(query, name).unwrap_or_default();
    let parts = [
        host.to_ascii_lowercase(),
        port.to_owned(),
        database.to_owned(),
        value("host"),
        value("port"),
        value("options"),
    ];
    let mut digest = hex(&Sha256::digest(parts.join("\n")));
    digest.truncate(16);
    digest
}

/// Returns the decoded value of a parameter.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| percent_decode_str(value).decode_utf8_lossy().into_owned())
}

/// Checks the parameters of a PostgreSQL URL that encrypt the connection.
fn check_encryption(query: &str) -> Result<(), String> {
    let value = |name: &str| parameter(query, name);
    let mode = value("sslmode");
    match mode.as_deref() {
        None | Some("disable" | "require" | "verify-full") => {}
        Some("prefer" | "allow") => {
            return Err(
                "has an sslmode that an attacker on the network can turn off: use verify-full, require (encrypted, \
                        but not verified) or disable"
                    .to_owned(),
            );
        }
        Some("verify-ca") => {
            return Err(
                "has sslmode=verify-ca, which accepts the certificate of any other host: use verify-full, with a \
                        host name that the server's certificate contains"
                    .to_owned(),
            );
        }
        Some(_) => return Err("has an unknown sslmode; the known ones are disable, require and verify-full".to_owned()),
    }
    if mode.as_deref().is_some_and(|mode| mode != "verify-full") && value("sslrootcert").is_some() {
        return Err("has sslrootcert, which has an effect with sslmode=verify-full only".to_owned());
    }
    if value("sslcert").is_some() != value("sslkey").is_some() {
        return Err("needs sslcert and sslkey together".to_owned());
    }
    for name in ["sslrootcert", "sslcert", "sslkey"] {
        if value(name).is_some_and(|path| !Path::new(&*path).is_absolute()) {
            return Err(format!("needs an absolute path for {name}"));
        }
        if let Some(path) = value(name) {
            check_certificate_file(Path::new(&*path)).map_err(|fault| format!("has {name}, which {fault}"))?;
        }
    }
    Ok(())
}

/// Returns the file of a `sqlite://path[?parameters]` URL.
pub fn sqlite_file(url: &str) -> Result<PathBuf, String> {
    let path = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"));
    let path = path.map(|path| path.split_once('?').map_or(path, |(path, _)| path));
    let path = path.and_then(|path| percent_decode_str(path).decode_utf8().ok());
    match path {
        Some(path) if !path.is_empty() && !path.starts_with(':') => Ok(PathBuf::from(&*path)),
        _ => Err("must have the form sqlite://path or postgres://user:password@host:port/database".to_owned()),
    }
}

/// Returns a `sqlite://path` URL of a file, with the parameters of `url`.
pub fn sqlite_url(url: &str, file: &Path) -> Result<String, String> {
    let path = file.to_str().ok_or("is relative to a folder whose name is not UTF-8: use an absolute path")?;
    let parameters = url.split_once('?').map(|(_, parameters)| format!("?{parameters}")).unwrap_or_default();
    Ok(format!("sqlite://{}{parameters}", utf8_percent_encode(path, RESERVED)))
}

/// Returns the folder of a `file:path` URL.
pub fn blobs_folder(url: &str) -> Result<PathBuf, String> {
    let path = url.strip_prefix("file://").or_else(|| url.strip_prefix("file:"));
    match path {
        Some(path) if !path.is_empty() => Ok(PathBuf::from(path)),
        _ => Err("must have the form file:path or s3://bucket/prefix".to_owned()),
    }
}

/// The beginning of the URL of a bucket.
const BUCKET: &str = "s3://";

/// Returns true if a URL names a bucket.
pub fn is_bucket(url: &str) -> bool {
    url.get(..BUCKET.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(BUCKET))
}

/// Returns the bucket and the prefix of an `s3://bucket/prefix` URL. The prefix has no slash at its ends; it may be
/// empty.
pub fn bucket(url: &str) -> Result<(String, String), String> {
    let form = "must have the form s3://bucket/prefix: a bucket of 3 to 63 characters of a-z 0-9 . - and a prefix without \
                query, user, empty segments, . and ..";
    let rest = url.get(BUCKET.len()..).unwrap_or_default();
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let is_edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let fits = (3..=63).contains(&bucket.len())
        && bucket.bytes().all(is_name)
        && is_edge(bucket.bytes().next())
        && is_edge(bucket.bytes().last());
    let is_segment = |segment: &str| {
        !matches!(segment, "" | "." | "..") && segment.bytes().all(|b| b.is_ascii_graphic() && !b"?#\\@".contains(&b))
    };
    // Keys below the prefix have up to 1024 bytes together with it.
    let has_good_prefix = prefix.is_empty() || (prefix.len() <= 128 && prefix.split('/').all(is_segment));
    if fits && has_good_prefix { Ok((bucket.to_owned(), prefix.to_owned())) } else { Err(form.to_owned()) }
}

/// Returns a provider's base URL without a trailing slash.
pub fn provider_base(url: &str) -> Result<String, String> {
    let form = "must be an http:// or https:// URL without user, query and fragment";
    let uri: http::Uri = url.parse().map_err(|_| form.to_owned())?;
    let scheme = uri.scheme_str().is_some_and(|scheme| matches!(scheme, "http" | "https"));
    let authority = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    if scheme && authority && uri.query().is_none() && !url.contains(['#', '{', '}']) {
        Ok(url.trim_end_matches('/').to_owned())
    } else {
        Err(form.to_owned())
    }
}

/// The placeholder for the model's name in a provider's path.
pub const MODEL: &str = "{model}";

/// Returns a provider's path without surrounding slashes.
pub fn provider_path(path: &str) -> Result<String, String> {
    let path = path.trim_matches('/');
    let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_graphic() && !b"#{}<>\"\\^`|".contains(&byte));
    if path.is_empty() || !path.split(MODEL).all(plain) {
        return Err(format!("must be a URL path; {MODEL} is replaced by the model's name"));
    }
    Ok(path.to_owned())
}

/// Returns a base path that begins with a slash and does not end with one; empty for the root.
pub fn base_path(text: &str) -> Result<String, String> {
    let path = text.trim_end_matches('/');
    let plain = |segment: &str| {
        !matches!(segment, "" | "." | "..")
            && segment.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~'))
    };
    match path.strip_prefix('/') {
        None if path.is_empty() => Ok(String::new()),
        Some(rest) if rest.split('/').all(plain) => Ok(path.to_owned()),
        _ => Err("must begin with a slash and be made of letters, digits and - _ . ~".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postgres_digest_distinguishes_databases_and_not_users() {
        let digest = |url: &str| postgres_digest(url, &postgres_name(url).unwrap());
        let one = digest("postgres://u:p@db.internal/d");
        assert_eq!(one.len(), 16);
        for same in ["postgresql://v@DB.internal:5432/d?sslmode=require", "postgres://db.internal/d?application_name=a"]
        {
            assert_eq!(digest(same), one, "{same}");
        }
        for other in [
            "postgres://db.internal/e",
            "postgres://db.internal:5433/d",
            "postgres://db.internal/d?port=5433",
            "postgres://standby.internal/d",
            "postgres://db.internal/d?options=-csearch_path%3Dstaging",
            "postgres:///d",
            "postgres://[::1]/d",
        ] {
            assert_ne!(digest(other), one, "{other}");
        }
        assert_eq!(digest("postgres://[::1]/d"), digest("postgres://[::1]:5432/d"));
        assert_eq!(digest("postgres:///d?host=/run/pg"), digest("postgres:///d?host=%2Frun%2Fpg"));
    }

    #[test]
    fn encryption_of_postgres_url_is_checked() {
        let check = |parameters: &str| postgres_name(&format!("postgres://u:s3cret@h/d?{parameters}"));
        for parameters in [
            "sslmode=disable",
            "sslmode=require",
            "sslmode=verify-full",
            "sslrootcert=/etc/ca.pem",
            "sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem&sslcert=/a.pem&sslkey=/a.key",
            "sslmode=require&sslcert=/a.pem&sslkey=/a.key",
        ] {
            assert_eq!(check(parameters).as_deref(), Ok("postgres://h/d"), "{parameters}");
        }
        for (parameters, expected) in [
            ("sslmode=prefer", "use verify-full, require"),
            ("sslmode=allow", "use verify-full, require"),
            ("sslmode=verify-ca", "use verify-full, with a host name"),
            ("sslmode=on", "the known ones are disable, require and verify-full"),
            ("sslmode=require&sslrootcert=/etc/ca.pem", "with sslmode=verify-full only"),
            ("sslcert=/a.pem", "sslcert and sslkey together"),
            ("sslrootcert=ca.pem", "absolute path for sslrootcert"),
        ] {
            let message = check(parameters).unwrap_err();
            assert!(message.contains(expected) && !message.contains("s3cret"), "{message}");
        }
    }
}
