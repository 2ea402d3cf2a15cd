//! Input of commands: files and standard input.

use std::io::Read;

use anyhow::Context as _;

use crate::config::read_text;

/// The mark that editors and shells of Windows write at the beginning of a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads a file or, for `-`, standard input. Returns the text, without a byte order mark, and the name for messages.
///
/// # Errors
/// The file cannot be read, or its content is not UTF-8.
pub fn read_input(file: &str) -> anyhow::Result<(String, &str)> {
    let mut text = String::new();
    let name = if file == "-" {
        std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
        "standard input"
    } else {
        text = read_text(file.as_ref()).with_context(|| format!("cannot read {file}"))?;
        file
    };
    if text.starts_with(BYTE_ORDER_MARK) {
        text.remove(0);
    }
    Ok((text, name))
}

/// Reads a secret from a file: the whole content without surrounding white space and a byte order mark. The message
/// names the option only, because a path may be a misplaced secret.
///
/// # Errors
/// The file cannot be read, or is empty.
pub fn read_secret(option: &str, file: &std::path::Path) -> anyhow::Result<String> {
    let text = read_text(file).with_context(|| format!("the file of {option} cannot be read"))?;
    let secret = text.trim_start_matches(BYTE_ORDER_MARK).trim();
    anyhow::ensure!(!secret.is_empty(), "the file of {option} is empty");
    Ok(secret.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn read_input_removes_byte_order_mark() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        for text in ["{}", "\u{feff}{}"] {
            fs::write(path, text).unwrap();
            assert_eq!(read_input(path).unwrap(), ("{}".to_owned(), path));
        }
    }

    #[test]
    fn read_secret_trims_and_does_not_repeat_the_path() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), " s3cret\n").unwrap();
        assert_eq!(read_secret("--key-file", file.path()).unwrap(), "s3cret");
        fs::write(file.path(), "\u{feff}s3cret\r\n").unwrap();
        assert_eq!(read_secret("--key-file", file.path()).unwrap(), "s3cret");
        fs::write(file.path(), "\n").unwrap();
        assert_eq!(read_secret("--key-file", file.path()).unwrap_err().to_string(), "the file of --key-file is empty");
        let error = format!("{:#}", read_secret("--key-file", "sk-misplaced".as_ref()).unwrap_err());
        assert!(error.starts_with("the file of --key-file cannot be read") && !error.contains("sk-"), "{error}");
    }
}
