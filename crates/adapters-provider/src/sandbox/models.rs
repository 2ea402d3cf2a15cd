//! The models of the sandbox.

use std::time::Duration;

use domain::money::Price;
use domain::routing::{DataPolicy, Endpoint, SimulatedFailure, TokenPrices, Wire};

/// The provider's slug, and the author of its models.
const SLUG: &str = "sandbox";
/// The provider's display name.
const NAME: &str = "Tollgate Sandbox";
/// Answers are immediate; every endpoint needs a timeout.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
/// USD per input token of the model that is not free.
const DECIDER_PRICE: &str = "0.00000004";

/// The behaviour of a sandbox model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// Answers.
    Decide,
    /// Simulates a failure.
    Fail(SimulatedFailure),
}

/// All models: name at the provider, price per input token, behaviour.
const MODELS: [(&str, &str, Behaviour); 9] = [
    ("decider", DECIDER_PRICE, Behaviour::Decide),
    ("decider:free", "0", Behaviour::Decide),
    ("error-402", "0", Behaviour::Fail(SimulatedFailure::InsufficientCredits)),
    ("error-403", "0", Behaviour::Fail(SimulatedFailure::Forbidden)),
    ("error-429", "0", Behaviour::Fail(SimulatedFailure::RateLimited)),
    ("error-502", "0", Behaviour::Fail(SimulatedFailure::ProviderFailure)),
    ("error-503", "0", Behaviour::Fail(SimulatedFailure::Unavailable)),
    ("error-524", "0", Behaviour::Fail(SimulatedFailure::TimedOut)),
    ("error-529", "0", Behaviour::Fail(SimulatedFailure::ProviderOverloaded)),
];

/// Returns the behaviour of a model by its name at the provider.
pub(super) fn behaviour(upstream_model: &str) -> Option<Behaviour> {
    MODELS.iter().find(|(name, ..)| *name == upstream_model).map(|(.., behaviour)| *behaviour)
}

/// Returns one endpoint per model.
pub(super) fn endpoints() -> Vec<Endpoint> {
    MODELS.iter().filter_map(|(name, price, _)| endpoint(name, price)).collect()
}

/// Builds an endpoint. `None` only if a constant above is invalid, which a test excludes.
fn endpoint(name: &str, price: &str) -> Option<Endpoint> {
    let model = format!("{SLUG}/{name}").parse().ok()?;
    Some(Endpoint {
        provider_name: NAME.to_owned(),
        prices: Some(TokenPrices { prompt: price.parse().ok()?, completion: Price::ZERO }),
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
    fn every_model_has_an_endpoint() {
        let endpoints = endpoints();
        let models: Vec<&str> = endpoints.iter().map(|endpoint| endpoint.model.as_str()).collect();
        assert_eq!(
            models,
            [
                "sandbox/decider",
                "sandbox/decider:free",
                "sandbox/error-402",
                "sandbox/error-403",
                "sandbox/error-429",
                "sandbox/error-502",
                "sandbox/error-503",
                "sandbox/error-524",
                "sandbox/error-529"
            ]
        );
        for endpoint in &endpoints {
            assert_eq!((endpoint.provider.as_str(), endpoint.wire), ("sandbox", Wire::Sandbox));
            assert_eq!(endpoint.provider_name, "Tollgate Sandbox");
            let prices = endpoint.prices.unwrap();
            let expected = if endpoint.upstream_model == "decider" { "0.00000004" } else { "0" };
            assert_eq!(prices, TokenPrices { prompt: expected.parse().unwrap(), completion: Price::ZERO });
            assert!(behaviour(&endpoint.upstream_model).is_some());
        }
    }
}
