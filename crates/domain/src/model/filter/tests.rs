use std::sync::Arc;

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::model::{AliasTarget, CountModels, ListModels, ModelListRequest, Page, Pricing, Visibility};
use crate::routing::{Endpoint, EndpointDirectory, Wire};
use crate::testing::MemoryCatalogue;

/// Returns a row with its prices in USD per token.
fn row(id: &str, created: i64, context: Option<u64>, prices: (&str, &str), inputs: &[&str]) -> Model {
    let pricing = Pricing::per_token(prices.0.parse().unwrap(), prices.1.parse().unwrap());
    let mut row = Model::minimal(id.parse().unwrap(), pricing);
    row.created = created;
    row.context_length = context;
    row.architecture.input_modalities = inputs.iter().map(|&name| name.to_owned()).collect();
    row.architecture.output_modalities = vec!["decisions".to_owned(), "text".to_owned()];
    row
}

fn rows() -> Vec<Model> {
    let mut dated = row("acme/judge", 3, Some(32_000), ("0.000000042", "0.000001"), &["text", "Image"]);
    dated.canonical_slug = "acme/judge-20260901".parse().unwrap();
    dated.name = "The Größe Judge".to_owned();
    let mut unknown = row("acme/unknown", 1, Some(0), ("0", "0"), &["text"]);
    unknown.pricing.is_known = false;
    let mut painter = row("rival/painter", 3, Some(32_000), ("0.000002", "0"), &["image"]);
    painter.architecture.output_modalities = vec!["image".to_owned()];
    let target = AliasTarget { name: "Judge".to_owned(), slug: "acme/judge".parse().unwrap() };
    let alias = row("~acme/judge-latest", 2, Some(32_000), ("0.000000042", "0.000002"), &["text"]);
    vec![
        row("rival/free", 2, Some(200_000), ("0", "0"), &["text", "file"]),
        dated,
        unknown,
        row("rival/varies", 9, None, ("-1", "-1"), &["text", "audio"]),
        painter,
        Model { alias_target: Some(target), ..alias },
    ]
}

fn directory() -> Arc<EndpointDirectory> {
    let endpoint = |model: &str, provider: &str| {
        Endpoint::new(model.parse().unwrap(), provider.parse().unwrap(), Wire::SystemOne, "m")
    };
    let endpoints = [("acme/judge", "one"), ("acme/judge", "two"), ("rival/free", "two"), ("acme/other", "three")];
    Arc::new(EndpointDirectory::new(endpoints.map(|(model, provider)| endpoint(model, provider)).to_vec()))
}

fn use_cases() -> (ListModels, CountModels) {
    let catalogue = Arc::new(MemoryCatalogue::new(rows()));
    (ListModels::new(Arc::clone(&catalogue) as _, directory()), CountModels::new(catalogue, directory()))
}

fn filter(conditions: &[(&str, &str)]) -> Result<ModelFilter, InvalidModelFilter> {
    let mut filter = ModelFilter::default();
    for (name, value) in conditions {
        filter.set(FilterParameter::from_name(name).unwrap(), value)?;
    }
    Ok(filter)
}

/// Returns the ids of the list, after the comparison of its total with the count.
fn ids(filter: ModelFilter, sort: Option<ModelSort>, page: Option<Page>) -> Vec<String> {
    let (list, count) = use_cases();
    let counted = count.execute(&filter);
    let listed = list.execute(&ModelListRequest { filter, visibility: Visibility::All, sort, page });
    assert_eq!(listed.total, counted, "the count is the total of the list");
    listed.rows.iter().map(|&index| listed.snapshot.rows()[index].id.to_string()).collect()
}

const FREE: &str = "rival/free";
const JUDGE: &str = "acme/judge";
const UNKNOWN: &str = "acme/unknown";
const VARIES: &str = "rival/varies";
const PAINTER: &str = "rival/painter";
const ALIAS: &str = "~acme/judge-latest";

#[rstest]
#[case::none(&[], &[FREE, JUDGE, UNKNOWN, VARIES, ALIAS])]
#[case::outputs(&[("output_modalities", "image")], &[PAINTER])]
#[case::all_outputs(&[("output_modalities", "all")], &[FREE, JUDGE, UNKNOWN, VARIES, PAINTER, ALIAS])]
#[case::id(&[("q", "JUDGE")], &[JUDGE, ALIAS])]
#[case::canonical_slug(&[("q", "-2026")], &[JUDGE])]
#[case::name(&[("q", " grÖSSE ")], &[])]
#[case::name_in_any_case(&[("q", "GRÖßE j")], &[JUDGE])]
#[case::nul(&[("q", "\0")], &[])]
#[case::inputs(&[("input_modalities", "IMAGE")], &[JUDGE])]
#[case::union_of_inputs(&[("input_modalities", "file, audio")], &[FREE, VARIES])]
#[case::unused_input(&[("input_modalities", "video")], &[])]
#[case::authors(&[("model_authors", "Acme")], &[JUDGE, UNKNOWN, ALIAS])]
#[case::author_of_alias(&[("model_authors", "~acme")], &[JUDGE, UNKNOWN, ALIAS])]
#[case::union_of_authors(&[("model_authors", "acme,rival,none")], &[FREE, JUDGE, UNKNOWN, VARIES, ALIAS])]
#[case::author_is_whole(&[("model_authors", "acm")], &[])]
#[case::providers(&[("providers", "one")], &[JUDGE, ALIAS])]
#[case::union_of_providers(&[("providers", "one, TWO")], &[FREE, JUDGE, ALIAS])]
#[case::provider_of_no_row(&[("providers", "three")], &[])]
#[case::provider_without_meaning(&[("providers", "\0/..")], &[])]
#[case::context(&[("context", "32000")], &[FREE, JUDGE, ALIAS])]
#[case::larger_context(&[("context", "32001")], &[FREE])]
#[case::any_context(&[("context", "0")], &[FREE, JUDGE, UNKNOWN, VARIES, ALIAS])]
#[case::largest_context(&[("context", "18446744073709551615")], &[])]
#[case::free(&[("max_price", "0")], &[FREE])]
#[case::price_at_the_bound(&[("max_price", "0.042")], &[FREE, JUDGE, ALIAS])]
#[case::price_below_the_bound(&[("max_price", "0.041999999999999999")], &[FREE])]
#[case::exponent(&[("max_price", "4.2e-2")], &[FREE, JUDGE, ALIAS])]
#[case::highest_price(&[("max_price", "99999999999999"), ("output_modalities", "all")], &[FREE, JUDGE, PAINTER, ALIAS])]
#[case::output_price(&[("max_output_price", "1.0")], &[FREE, JUDGE])]
#[case::both_prices(&[("max_price", "1"), ("max_output_price", "0"), ("output_modalities", "all")], &[FREE])]
#[case::all_conditions_hold(
    &[("q", "judge"), ("providers", "one"), ("context", "1"), ("max_output_price", "1"), ("model_authors", "acme"),
      ("input_modalities", "text")],
    &[JUDGE]
)]
fn list_and_count_contain_rows_for_which_all_conditions_hold(
    #[case] conditions: &[(&str, &str)],
    #[case] expected: &[&str],
) {
    assert_eq!(ids(filter(conditions).unwrap(), None, None), expected);
}

#[rstest]
#[case::text_empty("q", "", "q must have 1 to 256 characters")]
#[case::text_of_spaces("q", "  ", "q must have")]
#[case::inputs_empty("input_modalities", "", "input_modalities must be")]
#[case::inputs_empty_element("input_modalities", "text,", "input_modalities must be")]
#[case::inputs_unknown("input_modalities", "smell", "Valid values are: text, image, file, audio, video")]
#[case::inputs_all("input_modalities", "all", "Valid values are")]
#[case::outputs_empty("output_modalities", "", "Valid values are: text, image, embeddings")]
#[case::authors_empty("model_authors", "", "model_authors must be a comma-separated list of 1 to 100")]
#[case::authors_empty_element("model_authors", "acme,,rival", "model_authors must be")]
#[case::providers_empty("providers", " ", "providers must be")]
#[case::context_empty("context", "", "context must be a whole number of tokens")]
#[case::context_negative("context", "-1", "context must be")]
#[case::context_plus("context", "+1", "context must be")]
#[case::context_fraction("context", "1.0", "context must be")]
#[case::context_exponent("context", "1e3", "context must be")]
#[case::context_too_large("context", "18446744073709551616", "context must be")]
#[case::price_empty("max_price", "", "max_price must be a decimal number of USD per million tokens")]
#[case::price_negative("max_price", "-0.01", "max_price must be")]
#[case::price_not_a_number("max_price", "NaN", "max_price must be")]
#[case::price_infinite("max_output_price", "inf", "max_output_price must be")]
#[case::price_exponent_too_large("max_output_price", "1e999", "max_output_price must be")]
#[case::price_exponent_too_long("max_output_price", "1e00000001", "max_output_price must be")]
#[case::price_too_large("max_price", "100000000000000", "max_price must be")]
#[case::price_too_fine("max_price", "1e-25", "max_price must be")]
#[case::price_with_nul("max_price", "1\0", "max_price must be")]
#[case::price_with_comma("max_price", "1,5", "max_price must be")]
fn set_rejects_invalid_values_and_names_the_parameter(#[case] name: &str, #[case] value: &str, #[case] message: &str) {
    let error = filter(&[(name, value)]).unwrap_err();
    assert!(error.to_string().contains(message), "{error}");
    assert!(error.to_string().contains(name), "{error}");
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
}

#[test]
fn set_bounds_long_values() {
    for name in FilterParameter::ALL.map(FilterParameter::as_str) {
        for value in ["x".repeat(10_000), "9".repeat(10_000), "a,".repeat(5_000)] {
            match filter(&[(name, &value)]) {
                Err(error) => assert!(error.to_string().len() < 300, "{name}: {error}"),
                Ok(filter) => assert_eq!(ids(filter, None, None), [""; 0], "{name}"),
            }
        }
    }
    let most = vec!["acme"; MAX_ELEMENTS].join(",");
    assert_eq!(ids(filter(&[("model_authors", &most)]).unwrap(), None, None), [JUDGE, UNKNOWN, ALIAS]);
    assert!(filter(&[("model_authors", &format!("{most},acme"))]).is_err());
    assert!(filter(&[("q", &"ß".repeat(MAX_TEXT))]).is_ok());
    assert!(filter(&[("q", &"ß".repeat(MAX_TEXT + 1))]).is_err());
}

#[rstest]
#[case::newest("newest", &[VARIES, JUDGE, PAINTER, FREE, ALIAS, UNKNOWN])]
#[case::context("context-high-to-low", &[FREE, JUDGE, PAINTER, ALIAS, UNKNOWN, VARIES])]
#[case::cheapest("pricing-low-to-high", &[FREE, JUDGE, ALIAS, PAINTER, UNKNOWN, VARIES])]
#[case::dearest("pricing-high-to-low", &[PAINTER, ALIAS, JUDGE, FREE, UNKNOWN, VARIES])]
fn sort_orders_the_list_before_it_is_paged(#[case] name: &str, #[case] expected: &[&str]) {
    let sort = Some(name.parse().unwrap());
    let all = || filter(&[("output_modalities", "all")]).unwrap();
    assert_eq!(ids(all(), sort, None), expected);
    let second = Page::of(Some(2), Some(3)).unwrap();
    assert_eq!(ids(all(), sort, second), expected[2..5]);
}

#[test]
fn sort_rejects_orders_without_data_and_bounds_the_message() {
    for name in ["most-popular", "throughput-high-to-low", "Newest", "", "newest,newest", &"x".repeat(10_000)] {
        let error = name.parse::<ModelSort>().unwrap_err().to_string();
        assert!(error.starts_with("sort ") && error.contains("is not supported"), "{error}");
        assert!(error.contains("newest, context-high-to-low, pricing-low-to-high, pricing-high-to-low"), "{error}");
        assert!(error.len() < 250, "{error}");
    }
}

proptest! {
    #[test]
    fn list_and_count_agree_for_any_values(values in prop::collection::vec((0..8_usize, ".{0,12}|[0-9.e-]{1,9}"), 0..5)) {
        let mut any = ModelFilter::default();
        for (index, value) in &values {
            let before = any.clone();
            if any.set(FilterParameter::ALL[*index], value).is_err() {
                prop_assert_eq!(&any, &before, "an invalid value changes nothing");
            }
        }
        for sort in ModelSort::ALL.map(Some).into_iter().chain([None]) {
            let mut sorted = ids(any.clone(), sort, None);
            let mut plain = ids(any.clone(), None, None);
            sorted.sort_unstable();
            plain.sort_unstable();
            prop_assert_eq!(sorted, plain);
        }
    }

    #[test]
    fn list_and_count_agree_for_likely_values(
        outputs in prop::option::of("(text|image|all|decisions)"),
        inputs in prop::option::of("(text|image|file|audio)(,video)?"),
        text in prop::option::of("(acme|judge|a|/|20)"),
        authors in prop::option::of("(acme|rival)(,none)?"),
        providers in prop::option::of("(one|two|three)(,one)?"),
        context in prop::option::of("(0|1|32000|200000)"),
        max_price in prop::option::of("(0|0\\.042|2|2\\.0000001)"),
        max_output_price in prop::option::of("(0|1|2)"),
    ) {
        let values = [text, inputs, outputs, authors, providers, context, max_price, max_output_price];
        let mut all = ModelFilter::default();
        let whole: std::collections::BTreeSet<String> =
            ids(filter(&[("output_modalities", "all")]).unwrap(), None, None).into_iter().collect();
        let mut expected = whole;
        for (parameter, value) in FilterParameter::ALL.into_iter().zip(values) {
            let value = match (value, parameter) {
                (Some(value), _) => value,
                (None, FilterParameter::OutputModalities) => "all".to_owned(),
                (None, _) => continue,
            };
            all.set(parameter, &value).unwrap();
            let alone = filter(&[("output_modalities", "all"), (parameter.as_str(), &value)]).unwrap();
            let alone = ids(alone, None, None);
            expected.retain(|id| alone.contains(id));
        }
        let listed: std::collections::BTreeSet<String> = ids(all, None, None).into_iter().collect();
        prop_assert_eq!(listed, expected, "conditions intersect");
    }
}
