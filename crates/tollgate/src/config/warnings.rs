//! Settings that are valid and probably not meant.

use domain::model::{CatalogueSnapshot, ModelId};
use domain::routing::EndpointDirectory;

use super::values::nearest;
use super::{BlobsConfig, Config, ModelConfig, NamedSecret};

/// The warning about a secret in quotation marks: `docker --env-file` and some editors keep the marks of
/// `NAME="value"`, and a server rejects the secret with them.
pub const QUOTED_SECRET: &str = "the secret is in quotation marks, which are sent with it: docker --env-file keeps the \
                                 marks of NAME=\"value\"";

/// Returns the reason why options of a model have no effect.
pub fn idle_options(
    model: &ModelConfig,
    catalogue: &CatalogueSnapshot,
    endpoints: &EndpointDirectory,
) -> Option<String> {
    let name = &model.model;
    let serving = match catalogue.resolve(name.as_str()) {
        Some(resolved) if resolved.model.id == *name => endpoints.for_model(&resolved.model).len(),
        Some(resolved) => {
            return Some(format!(
                "all: {name} is another name of {}, and options are set by the id",
                resolved.model.id
            ));
        }
        // A sandbox model needs no catalogue row.
        None => usize::from(endpoints.sandbox(name.as_str()).is_some()),
    };
    match serving {
        0 => Some(match nearest_served(name, endpoints) {
            Some(nearest) => format!("all: no endpoint serves {name}; the nearest model that is served is {nearest}"),
            None => format!("all: no endpoint serves {name}"),
        }),
        1 if model.options.hedging.is_some() => Some(format!("hedge: {name} has one endpoint; hedging requires two")),
        _ => None,
    }
}

fn nearest_served<'a>(name: &ModelId, endpoints: &'a EndpointDirectory) -> Option<&'a str> {
    nearest(name.as_str(), endpoints.all().iter().map(|endpoint| endpoint.model.as_str()))
}

/// Returns the owners of readable secrets in quotation marks, such as `provider openai`.
pub fn quoted_secrets(config: &Config) -> Vec<String> {
    let providers =
        config.providers.iter().filter(|provider| provider.api_key.as_ref().is_some_and(NamedSecret::is_quoted));
    let mut owners: Vec<String> = providers.map(|provider| format!("provider {}", provider.slug)).collect();
    let password = config.rate_limits.as_ref().and_then(|limits| limits.password.as_ref());
    owners.extend(password.is_some_and(NamedSecret::is_quoted).then(|| "rate limits".to_owned()));
    if let BlobsConfig::Bucket(bucket) = &config.blobs {
        owners.extend(bucket.secrets().any(NamedSecret::is_quoted).then(|| "blobs".to_owned()));
    }
    owners
}

#[cfg(test)]
mod tests {
    use domain::model::{Model, Pricing};
    use domain::money::Price;
    use domain::routing::{Endpoint, Wire};

    use super::*;
    use crate::config::{Environment, load_text};

    #[test]
    fn quoted_secrets_are_found_wherever_they_are_read() {
        let text = "[[providers]]\nslug = \"a\"\nbase_url = \"http://h\"\napi_key = \"env:A\"\n\
                    [[providers]]\nslug = \"b\"\nbase_url = \"http://h\"\napi_key = \"env:B\"\n\
                    [[providers]]\nslug = \"c\"\nbase_url = \"http://h\"\n\
                    [rate_limits]\nurl = \"redis://h\"\npassword = \"env:R\"\n\
                    [blobs]\nurl = \"s3://bucket\"\nregion = \"r\"\naccess_key_id = \"env:I\"\nsecret_access_key = \"env:S\"\n";
        let found =
            |values: [(&str, &str); 5]| quoted_secrets(&load_text(None, text, &values.into_iter().collect()).unwrap());
        let plain = [("A", "sk-1"), ("B", "\"sk"), ("R", "'"), ("I", "id"), ("S", "s\"")];
        assert_eq!(found(plain), Vec::<String>::new());
        let quoted = [("A", "\"sk-1\""), ("B", "'sk-2'"), ("R", "'p'"), ("I", "id"), ("S", "\"s\"")];
        assert_eq!(found(quoted), ["provider a", "provider b", "rate limits", "blobs"]);
        assert_eq!(found([("A", ""), ("B", "sk"), ("R", ""), ("I", "\"id\""), ("S", "s")]), ["blobs"]);
    }

    fn read(text: &str) -> Config {
        load_text(None, text, &Environment::default()).unwrap()
    }

    fn row(id: &str, canonical_slug: &str) -> Model {
        let pricing = Pricing::per_token(Price::ZERO, Price::ZERO);
        Model { canonical_slug: canonical_slug.parse().unwrap(), ..Model::minimal(id.parse().unwrap(), pricing) }
    }

    #[test]
    fn idle_options_are_reported() {
        let rows = vec![row("a/one", "a/one-20260101"), row("a/two", "a/two"), row("a/none", "a/none")];
        let catalogue = CatalogueSnapshot::build(rows);
        let endpoint = |model: &str| Endpoint::new(model.parse().unwrap(), "p".parse().unwrap(), Wire::SystemOne, "m");
        let sandbox = Endpoint::new("sandbox/x".parse().unwrap(), "sandbox".parse().unwrap(), Wire::Sandbox, "x");
        let endpoints = vec![endpoint("a/one-20260101"), endpoint("a/two"), endpoint("a/two"), sandbox];
        let endpoints = EndpointDirectory::new(endpoints);
        let idle_reason = |lines: &str| {
            let config = read(&format!("[[models]]\n{lines}\n"));
            idle_options(&config.models[0], &catalogue, &endpoints)
        };
        assert_eq!(
            idle_reason("model = \"a/one\"\nsingle_flight = \"charge_each\""),
            None,
            "its endpoint has the canonical slug"
        );
        assert_eq!(idle_reason("model = \"a/two\"\nhedge = true"), None);
        assert_eq!(idle_reason("model = \"sandbox/x\"\nsingle_flight = \"charge_each\""), None);
        for (lines, expected) in [
            ("model = \"a/one\"\nhedge = true", "hedge: a/one has one endpoint"),
            ("model = \"sandbox/x\"\nhedge = true", "sandbox/x has one endpoint"),
            ("model = \"a/one-20260101\"", "a/one-20260101 is another name of a/one"),
            ("model = \"a/two:floor\"", "a/two:floor is another name of a/two"),
            ("model = \"a/none\"", "no endpoint serves a/none; the nearest"),
            ("model = \"a/tow\"", "the nearest model that is served is a/two"),
        ] {
            let message = idle_reason(lines).unwrap();
            assert!(message.contains(expected), "{message}");
        }
    }
}
