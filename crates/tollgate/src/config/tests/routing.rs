//! The settings of `[[models]]`, `[money]` and `[routing]`.

use domain::decision::{Hedging, ModelOptions, SingleFlightMode, TokenFactor, UnpricedModels};
use domain::usage::UnknownUsage;

use super::*;

#[test]
fn options_are_off_by_default() {
    let config = read("[[models]]\nmodel = \"A/b\"\n").unwrap();
    let expected = ModelConfig { model: "a/b".parse().unwrap(), options: ModelOptions::default() };
    assert_eq!(config.models, [expected]);
    assert_eq!(config.unknown_usage, UnknownUsage::Bound);
    assert_eq!(
        config.money,
        MoneyConfig { max_tokens_per_byte: TokenFactor::ONE, unpriced_models: UnpricedModels::Reject }
    );
    assert_eq!(config.seed, None);
}

#[test]
fn model_options_are_read() {
    let config = read(
        "[money]\nunreported_usage = \"free\"\n[routing]\nseed = 0\n\
         [[models]]\nmodel = \"a/b\"\nhedge = true\nhedge_after_ms = 250\nsingle_flight = \"charge_each\"\n\
         [[models]]\nmodel = \"a/c\"\nhedge = true\nsingle_flight = \"split_cost\"\n",
    );
    let config = config.unwrap();
    assert_eq!(config.unknown_usage, UnknownUsage::Free);
    assert_eq!(config.seed, Some(0));
    let options: Vec<ModelOptions> = config.models.iter().map(|model| model.options).collect();
    let after = Some(Duration::from_millis(250));
    let expected = [
        ModelOptions { hedging: Some(Hedging { after }), single_flight: SingleFlightMode::ChargeEach },
        ModelOptions { hedging: Some(Hedging { after: None }), single_flight: SingleFlightMode::SplitCost },
    ];
    assert_eq!(options, expected);
    let variables = [("TOLLGATE__MODELS__0__MODEL", "a/b"), ("TOLLGATE__MODELS__0__HEDGE", "true")];
    assert!(with(&variables, "").unwrap().models[0].options.hedging.is_some());
}

#[test]
fn money_bounds_are_read() {
    let config = read("[money]\nmax_tokens_per_byte = \"1.25\"\ndefault_usd_per_token = \"1e-5\"\n");
    let config = config.unwrap();
    let cap = UnpricedModels::DefaultPrice("0.00001".parse().unwrap());
    assert_eq!(config.money, MoneyConfig { max_tokens_per_byte: "1.25".parse().unwrap(), unpriced_models: cap });
    assert_eq!(read("[money]\nunpriced_models = \"free\"\n").unwrap().money.unpriced_models, UnpricedModels::Free);
}

#[test]
fn invalid_options_are_reported_with_origin() {
    for (text, expected) in [
        ("[[models]]\nhedge = true\n", "models[0].model is required"),
        ("[[models]]\nmodel = \"b\"\n", "tollgate.toml, line 2: models[0].model is not usable"),
        ("[[models]]\nmodel = \"a/b\"\nhedge_after_ms = 5\n", "models[0].hedge_after_ms requires hedge = true"),
        ("[[models]]\nmodel = \"a/b\"\nhedge = false\nhedge_after_ms = 5\n", "requires hedge = true"),
        ("[[models]]\nmodel = \"a/b\"\nhedge = true\nhedge_after_ms = 0\n", "must be 1 to 3600000"),
        (
            "[[models]]\nmodel = \"a/b\"\nsingle_flight = \"on\"\n",
            "single_flight must be off, split_cost or charge_each",
        ),
        ("[[models]]\nmodel = \"a/b\"\n[[models]]\nmodel = \"A/B\"\n", "duplicate model in [[models]]: \"a/b\""),
        ("[[models]]\nmodel = \"a/b\"\nhegde = true\n", "the nearest known one is models.hedge"),
        ("[models]\nmodel = \"a/b\"\n", "models must be [[models]] tables"),
        ("[money]\nunreported_usage = \"half\"\n", "money.unreported_usage must be charge_bound or free"),
        (
            "[money]\nmax_tokens_per_byte = \"0.9\"\n",
            "money.max_tokens_per_byte must be a decimal number from 1 to 1000",
        ),
        ("[money]\nunpriced_models = \"no\"\n", "money.unpriced_models must be reject or free"),
        ("[money]\nunpriced_models = \"fre\"\n", "money.unpriced_models must be reject or free; the nearest is free"),
        // A price names its unit.
        ("[money]\nunpriced_models = \"0.042\"\n", "money.unpriced_models must be reject or free"),
        (
            "[money]\nunpriced_models = \"free\"\ndefault_usd_per_token = \"1e-5\"\n",
            "line 3: money.default_usd_per_token has no meaning beside unpriced_models",
        ),
        ("[money]\ndefault_usd_per_token = \"0\"\n", "default_usd_per_token must be a price in USD per token, above 0"),
        (
            "[money]\ndefault_usd_per_token = \"-1\"\n",
            "default_usd_per_token must be a price in USD per token, above 0",
        ),
        ("[routing]\nseed = -1\n", "routing.seed must be a whole number, zero or more"),
        ("[model]\n", "the nearest known one is models"),
    ] {
        let message = fault(text);
        assert!(message.contains(expected), "{text}: {message}");
    }
}
