//! Secrets in quotation marks: `docker --env-file` and some editors keep the marks of `NAME="value"`, and a server
//! rejects the secret with them.

use super::secret::is_quoted;
use super::{BlobsConfig, Config, Environment, SecretSource};

/// The warning about a secret in quotation marks.
pub const QUOTED_SECRET: &str = "the secret is in quotation marks, which are sent with it: docker --env-file keeps the \
                                 marks of NAME=\"value\"";

/// Returns the owners of readable secrets in quotation marks, such as `provider openai`.
pub fn quoted_secrets(config: &Config, environment: &Environment) -> Vec<String> {
    let quoted = |source: &SecretSource| source.read(environment).is_ok_and(|secret| is_quoted(&secret));
    let providers = config.providers.iter().filter(|provider| provider.api_key.as_ref().is_some_and(quoted));
    let mut owners: Vec<String> = providers.map(|provider| format!("provider {}", provider.slug)).collect();
    let password = config.rate_limits.as_ref().and_then(|limits| limits.password.as_ref());
    owners.extend(password.is_some_and(quoted).then(|| "rate limits".to_owned()));
    let has_quoted = matches!(&config.blobs, BlobsConfig::Bucket(bucket) if bucket.has_quoted_secret());
    owners.extend(has_quoted.then(|| "blobs".to_owned()));
    owners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load_text;

    #[test]
    fn quoted_secrets_are_found_wherever_they_are_read() {
        let text = "[[providers]]\nslug = \"a\"\nbase_url = \"http://h\"\napi_key_env = \"A\"\n\
                    [[providers]]\nslug = \"b\"\nbase_url = \"http://h\"\napi_key_env = \"B\"\n\
                    [[providers]]\nslug = \"c\"\nbase_url = \"http://h\"\n\
                    [rate_limits]\nurl = \"redis://h\"\npassword_env = \"R\"\n\
                    [blobs]\nurl = \"s3://bucket\"\nregion = \"r\"\naccess_key_id_env = \"I\"\nsecret_access_key_env = \"S\"\n";
        let found = |values: [(&str, &str); 5]| {
            let environment: Environment = values.into_iter().collect();
            quoted_secrets(&load_text(None, text, &environment).unwrap(), &environment)
        };
        let plain = [("A", "sk-1"), ("B", "\"sk"), ("R", "'"), ("I", "id"), ("S", "s\"")];
        assert_eq!(found(plain), Vec::<String>::new());
        let quoted = [("A", "\"sk-1\""), ("B", "'sk-2'"), ("R", "'p'"), ("I", "id"), ("S", "\"s\"")];
        assert_eq!(found(quoted), ["provider a", "provider b", "rate limits", "blobs"]);
        assert_eq!(found([("A", ""), ("B", "sk"), ("R", ""), ("I", "\"id\""), ("S", "s")]), ["blobs"]);
    }
}
