//! Compares the prices of endpoints with those of the catalogue.

use super::Endpoint;
use crate::model::Model;
use crate::money::Price;

/// Prices that differ by more than this factor are reported.
const FACTOR: u32 = 100;

/// Returns a warning for each price that differs from the model's catalogue price by more than a factor of 100, and for
/// an endpoint without a price whose model is free in the catalogue: reads show a missing price as 0, and an import of
/// what was read makes it a price.
pub fn price_warnings<'a>(endpoint: &Endpoint, rows: impl IntoIterator<Item = &'a Model>) -> Vec<String> {
    let row = rows.into_iter().find(|row| row.id == endpoint.model || row.canonical_slug == endpoint.model);
    let Some(row) = row else { return Vec::new() };
    let Some(own) = endpoint.prices else {
        let is_free =
            row.pricing.is_known && row.pricing.prompt == Price::ZERO && row.pricing.completion == Price::ZERO;
        let free = || format!("it has no price, and that of {} in the catalogue is 0: calls are free", row.id);
        return is_free.then(free).into_iter().collect();
    };
    let compare = |key: &str, own: Price, listed: Price| {
        own.differs_by_more_than(FACTOR, listed).then(|| {
            format!(
                "{key} is {} and the catalogue's price of {} is {} USD per million tokens: more than {FACTOR} times apart",
                own.to_usd_per_million(),
                row.id,
                listed.to_usd_per_million()
            )
        })
    };
    let input = compare("input_usd_per_million_tokens", own.prompt, row.pricing.prompt);
    let output = compare("output_usd_per_million_tokens", own.completion, row.pricing.completion);
    input.into_iter().chain(output).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Pricing;
    use crate::pricing::TokenPrices;
    use crate::routing::Wire;

    #[test]
    fn price_in_the_wrong_unit_is_reported() {
        let price = |text: &str| text.parse::<Price>().unwrap();
        let model: crate::model::ModelId = "acme/judge".parse().unwrap();
        let row = Model::minimal(model.clone(), Pricing::per_token(price("0.000000042"), Price::ZERO));
        let endpoint = |prompt: &str| Endpoint {
            prices: Some(TokenPrices { prompt: price(prompt), completion: price("1") }),
            ..Endpoint::new(model.clone(), "acme".parse().unwrap(), Wire::SystemOne, "j".to_owned())
        };
        assert_eq!(price_warnings(&endpoint("0.000000042"), [&row]), Vec::<String>::new());
        assert_eq!(
            price_warnings(&endpoint("0.042"), [&row]),
            ["input_usd_per_million_tokens is 42000 and the catalogue's price of acme/judge is 0.042 USD per million \
              tokens: more than 100 times apart"]
        );
        assert_eq!(price_warnings(&endpoint("0.042"), []), Vec::<String>::new());
    }

    #[test]
    fn endpoint_without_price_is_reported_where_its_row_is_free() {
        let model: crate::model::ModelId = "acme/judge".parse().unwrap();
        let endpoint = Endpoint::new(model.clone(), "acme".parse().unwrap(), Wire::SystemOne, "j".to_owned());
        let free = Pricing::per_token(Price::ZERO, Price::ZERO);
        let warnings = |pricing| price_warnings(&endpoint, [&Model::minimal(model.clone(), pricing)]);
        assert_eq!(
            warnings(free.clone()),
            ["it has no price, and that of acme/judge in the catalogue is 0: calls are free"]
        );
        assert_eq!(warnings(Pricing::unknown()), Vec::<String>::new());
        assert_eq!(warnings(Pricing { completion: "1".parse().unwrap(), ..free.clone() }), Vec::<String>::new());
        let stated = TokenPrices { prompt: Price::ZERO, completion: Price::ZERO };
        let stated = Endpoint { prices: Some(stated), ..endpoint.clone() };
        assert_eq!(price_warnings(&stated, [&Model::minimal(model.clone(), free)]), Vec::<String>::new());
    }
}
