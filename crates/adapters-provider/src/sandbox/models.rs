//! The models of the sandbox.

use std::time::Duration;

use domain::error::ErrorKind;
use domain::money::Price;
use domain::pricing::TokenPrices;
use domain::routing::{DataPolicy, Endpoint, Wire};

/// The provider's slug, and the author of its models.
const SLUG: &str = "sandbox";
/// The provider's display name.
const NAME: &str = "Tollgate Sandbox";
/// Answers are immediate; every endpoint needs a timeout.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// The behaviour of a sandbox model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// Answers.
    Decide,
    /// Simulates a failure.
    Fail(ErrorKind),
}

/// All models: name at the provider, behaviour.
const MODELS: [(&str, Behaviour); 9] = [
    ("decider", Behaviour::Decide),
    ("decider:free", Behaviour::Decide),
    ("error-402", Behaviour::Fail(ErrorKind::InsufficientCredits)),
    ("error-403", Behaviour::Fail(ErrorKind::Forbidden)),
    ("error-429", Behaviour::Fail(ErrorKind::RateLimited)),
    ("error-502", Behaviour::Fail(ErrorKind::ProviderFailure)),
    ("error-503", Behaviour::Fail(ErrorKind::Unavailable)),
    ("error-524", Behaviour::Fail(ErrorKind::TimedOut)),
    ("error-529", Behaviour::Fail(ErrorKind::ProviderOverloaded)),
];

/// Returns the behaviour of a model by its name at the provider.
pub(super) fn behaviour(upstream_model: &str) -> Option<Behaviour> {
    MODELS.iter().find(|(name, _)| *name == upstream_model).map(|(_, behaviour)| *behaviour)
}

/// Returns one endpoint per model that answers.
pub(super) fn endpoints() -> Vec<Endpoint> {
    MODELS
        .iter()
        .filter(|(_, behaviour)| *behaviour == Behaviour::Decide)
        .filter_map(|(name, _)| endpoint(name))
        .collect()
}

/// Returns one endpoint per model that simulates a failure.
pub(super) fn error_endpoints() -> Vec<Endpoint> {
    MODELS
        .iter()
        .filter(|(_, behaviour)| *behaviour != Behaviour::Decide)
        .filter_map(|(name, _)| endpoint(name))
        .collect()
}

/// Builds an endpoint. `None` only if a constant above is invalid, which a test excludes.
fn endpoint(name: &str) -> Option<Endpoint> {
    let model = format!("{SLUG}/{name}").parse().ok()?;
    Some(Endpoint {
        provider_name: NAME.to_owned(),
        prices: Some(TokenPrices { prompt: Price::ZERO, completion: Price::ZERO }),
        attempt_timeout: ATTEMPT_TIMEOUT,
        prompt_overhead_tokens: 0,
        // No data leaves the process or is stored.
        data_policy: DataPolicy { zdr: true, collects: false },
        ..Endpoint::new(model, SLUG.parse().ok()?, Wire::Sandbox, name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_has_a_free_endpoint() {
        let models = |endpoints: &[Endpoint]| -> Vec<String> {
            endpoints.iter().map(|endpoint| endpoint.model.to_string()).collect()
        };
        assert_eq!(models(&endpoints()), ["sandbox/decider", "sandbox/decider:free"]);
        assert_eq!(
            models(&error_endpoints()),
            [
                "sandbox/error-402",
                "sandbox/error-403",
                "sandbox/error-429",
                "sandbox/error-502",
                "sandbox/error-503",
                "sandbox/error-524",
                "sandbox/error-529"
            ]
        );
        for endpoint in endpoints().iter().chain(&error_endpoints()) {
            assert_eq!((endpoint.provider.as_str(), endpoint.wire), ("sandbox", Wire::Sandbox));
            assert_eq!(endpoint.provider_name, "Tollgate Sandbox");
            assert_eq!(endpoint.prices, Some(TokenPrices { prompt: Price::ZERO, completion: Price::ZERO }));
            assert!(behaviour(&endpoint.upstream_model).is_some());
        }
    }
}
