//! Detection of options of a model that have no effect.

use domain::model::{CatalogueSnapshot, ModelId};
use domain::routing::EndpointDirectory;

use super::{ModelConfig, nearest};

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

#[cfg(test)]
mod tests {
    use domain::model::{Model, Pricing};
    use domain::money::Price;
    use domain::routing::{Endpoint, Wire};

    use super::*;
    use crate::config::{Config, Environment, load_text};

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
