//! The endpoint that a test of a provider calls.

use std::sync::Arc;

use anyhow::Context as _;
use domain::routing::{Endpoint, EndpointDirectory, ProviderSlug, Wire};

/// Returns the endpoint that a test of a provider calls: the first one of the model, by its name in the catalogue or at
/// the provider. A model without an endpoint is called over `wire`, which is that of a configured provider.
///
/// # Errors
/// The provider has no endpoint and no model is given, or it is not configured.
pub fn test_endpoint(
    endpoints: &EndpointDirectory,
    provider: &ProviderSlug,
    model: Option<&str>,
    wire: Option<Wire>,
) -> anyhow::Result<Arc<Endpoint>> {
    let mut of_provider = endpoints.all().iter().filter(|endpoint| endpoint.provider == *provider);
    let Some(model) = model else {
        let first = of_provider.next().cloned();
        return first.with_context(|| format!("no endpoint uses the provider {provider}; name a model with --model"));
    };
    let is_named = |endpoint: &&Arc<Endpoint>| endpoint.model.as_str() == model || endpoint.upstream_model == model;
    if let Some(found) = of_provider.find(is_named) {
        return Ok(Arc::clone(found));
    }
    let wire = wire.with_context(|| {
        format!("the provider {provider} is not configured and has no endpoint of the model {model:?}")
    })?;
    Ok(Arc::new(Endpoint::new("test/model".parse()?, provider.clone(), wire, model)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_endpoint_is_found_by_any_name_of_its_model() {
        let endpoint = |model: &str, provider: &str, upstream: &str| {
            Endpoint::new(model.parse().unwrap(), provider.parse().unwrap(), Wire::SystemOne, upstream)
        };
        let all = [endpoint("a/x", "other", "x"), endpoint("a/b", "p", "one"), endpoint("a/c", "p", "two")];
        let directory = EndpointDirectory::new(all.to_vec());
        let slug: ProviderSlug = "p".parse().unwrap();
        let found = |model: Option<&str>, wire| {
            let found = test_endpoint(&directory, &slug, model, wire).map_err(|error| error.to_string())?;
            Ok::<_, String>(found.upstream_model.clone())
        };
        assert_eq!(found(None, None).unwrap(), "one");
        assert_eq!(found(Some("a/c"), None).unwrap(), "two");
        assert_eq!(found(Some("two"), None).unwrap(), "two");
        assert_eq!(found(Some("new"), Some(Wire::ChatCompletions)).unwrap(), "new");
        assert!(found(Some("x"), None).unwrap_err().contains("not configured and has no endpoint of the model \"x\""));
        let unused = test_endpoint(&directory, &"q".parse().unwrap(), None, Some(Wire::SystemOne));
        assert!(unused.unwrap_err().to_string().contains("--model"));
    }
}
