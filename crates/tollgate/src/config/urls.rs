//! The URLs of stores and providers.

use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// The characters of a path that have a meaning in a URL.
const RESERVED: &AsciiSet = &CONTROLS.add(b'%').add(b'?');

/// Returns the file of a `sqlite://path[?parameters]` URL.
pub fn sqlite_file(url: &str) -> Result<PathBuf, String> {
    let lower = url.to_ascii_lowercase();
    if lower.starts_with("postgres://") || lower.starts_with("postgresql://") {
        return Err("names PostgreSQL, but this version supports SQLite only: use sqlite://path".to_owned());
    }
    let path = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"));
    let path = path.map(|path| path.split_once('?').map_or(path, |(path, _)| path));
    let path = path.and_then(|path| percent_decode_str(path).decode_utf8().ok());
    match path {
        Some(path) if !path.is_empty() && !path.starts_with(':') => Ok(PathBuf::from(&*path)),
        _ => Err("must have the form sqlite://path".to_owned()),
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
    if url.to_ascii_lowercase().starts_with("s3://") {
        return Err("names an S3 bucket, but this version supports local files only: use file:path".to_owned());
    }
    let path = url.strip_prefix("file://").or_else(|| url.strip_prefix("file:"));
    match path {
        Some(path) if !path.is_empty() => Ok(PathBuf::from(path)),
        _ => Err("must have the form file:path".to_owned()),
    }
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
