//! Input of commands: files and standard input.

use std::io::Read;

use anyhow::Context as _;

use crate::config::read_text;

/// Reads a file or, for `-`, standard input. Returns the text and the name for messages.
///
/// # Errors
/// The file cannot be read, or its content is not UTF-8.
pub fn read_input(file: &str) -> anyhow::Result<(String, &str)> {
    if file != "-" {
        return Ok((read_text(file.as_ref()).with_context(|| format!("cannot read {file}"))?, file));
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
    Ok((text, "standard input"))
}

/// Reads a secret from a file: the whole content without surrounding white space. The message names the option only,
/// because a path may be a misplaced secret.
///
/// # Errors
/// The file cannot be read, or is empty.
pub fn read_secret(option: &str, file: &std::path::Path) -> anyhow::Result<String> {
    let text = read_text(file).with_context(|| format!("the file of {option} cannot be read"))?;
    let secret = text.trim();
    anyhow::ensure!(!secret.is_empty(), "the file of {option} is empty");
    Ok(secret.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn read_secret_trims_and_does_not_repeat_the_path() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), " s3cret\n").unwrap();
        assert_eq!(read_secret("--key-file", file.path()).unwrap(), "s3cret");
        fs::write(file.path(), "\n").unwrap();
        assert_eq!(read_secret("--key-file", file.path()).unwrap_err().to_string(), "the file of --key-file is empty");
        let error = format!("{:#}", read_secret("--key-file", "sk-misplaced".as_ref()).unwrap_err());
        assert!(error.starts_with("the file of --key-file cannot be read") && !error.contains("sk-"), "{error}");
    }
}
