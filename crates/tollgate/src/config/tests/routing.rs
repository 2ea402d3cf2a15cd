//! Options of models, and of routing as a whole.

use domain::decision::{Coalescing, Hedging, ModelOptions, UnknownUsage};

use super::*;

#[test]
fn options_are_off_until_they_are_set() {
    let config = read("[[models]]\nmodel = \"A/b\"\n").unwrap();
    let expected = ModelConfig { model: "a/b".parse().unwrap(), options: ModelOptions::default() };
    assert_eq!(config.models, [expected]);
    assert_eq!(config.unknown_usage, UnknownUsage::Bound);
    assert_eq!(config.routing, RoutingConfig { seed: None, max_parts_in_flight: 4 });
}

#[test]
fn options_of_models_are_read() {
    let config = read(
        "[money]\nunknown = \"free\"\n[routing]\nseed = 0\nmax_parts_in_flight = 64\n\
         [[models]]\nmodel = \"a/b\"\nhedge = true\nhedge_after_ms = 250\ncoalesce = \"each\"\n\
         [[models]]\nmodel = \"a/c\"\nhedge = true\ncoalesce = \"shared\"\n",
    );
    let config = config.unwrap();
    assert_eq!(config.unknown_usage, UnknownUsage::Free);
    assert_eq!(config.routing, RoutingConfig { seed: Some(0), max_parts_in_flight: 64 });
    let options: Vec<ModelOptions> = config.models.iter().map(|model| model.options).collect();
    let after = Some(Duration::from_millis(250));
    let expected = [
        ModelOptions { hedging: Some(Hedging { after }), coalescing: Coalescing::Each },
        ModelOptions { hedging: Some(Hedging { after: None }), coalescing: Coalescing::Shared },
    ];
    assert_eq!(options, expected);
    let variables = [("TOLLGATE__MODELS__0__MODEL", "a/b"), ("TOLLGATE__MODELS__0__HEDGE", "true")];
    assert!(with(&variables, "").unwrap().models[0].options.hedging.is_some());
}

#[test]
fn faults_of_options_are_told_with_their_place() {
    for (text, expected) in [
        ("[[models]]\nhedge = true\n", "models[0].model is required"),
        ("[[models]]\nmodel = \"b\"\n", "tollgate.toml, line 2: models[0].model is not usable"),
        ("[[models]]\nmodel = \"a/b\"\nhedge_after_ms = 5\n", "models[0].hedge_after_ms needs hedge = true"),
        ("[[models]]\nmodel = \"a/b\"\nhedge = false\nhedge_after_ms = 5\n", "needs hedge = true"),
        ("[[models]]\nmodel = \"a/b\"\nhedge = true\nhedge_after_ms = 0\n", "must be 1 to 3600000"),
        ("[[models]]\nmodel = \"a/b\"\ncoalesce = \"on\"\n", "coalesce must be off, shared or each"),
        ("[[models]]\nmodel = \"a/b\"\n[[models]]\nmodel = \"A/B\"\n", "a/b stands in [[models]] more than once"),
        ("[[models]]\nmodel = \"a/b\"\nhegde = true\n", "the nearest known one is models.hedge"),
        ("[models]\nmodel = \"a/b\"\n", "models must be [[models]] tables"),
        ("[money]\nunknown = \"half\"\n", "money.unknown must be bound or free"),
        ("[routing]\nmax_parts_in_flight = 0\n", "routing.max_parts_in_flight must be 1 to 64"),
        ("[routing]\nmax_parts_in_flight = 65\n", "routing.max_parts_in_flight must be 1 to 64"),
        ("[routing]\nseed = -1\n", "routing.seed must be a whole number, zero or more"),
        ("[model]\n", "the nearest known one is models"),
    ] {
        let message = fault(text);
        assert!(message.contains(expected), "{text}: {message}");
    }
}
