//! The forms of lists and amounts.

use domain::money::{Price, Usd};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// `{"data":[…]}`
#[derive(Debug, Serialize)]
pub struct List<T> {
    /// The elements.
    pub data: Vec<T>,
}

/// An amount in USD.
#[derive(Debug, Clone, Copy)]
pub struct UsdNumber(pub Usd);

impl Serialize for UsdNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// Returns the price of a token as the cell of a table, in USD per million tokens.
pub fn per_million_tokens(price: Price) -> String {
    if price.is_variable() { "variable".to_owned() } else { price.to_usd_per_million() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usd_number_keeps_every_digit() {
        for text in ["0", "5", "0.000000000001", "9223372.036854775807", "-2.5"] {
            let usd: Usd = text.parse().unwrap();
            assert_eq!(serde_json::to_string(&UsdNumber(usd)).unwrap(), text);
        }
    }

    #[test]
    fn prices_in_tables_are_per_million_tokens() {
        let cell = |text: &str| per_million_tokens(text.parse().unwrap());
        assert_eq!(["0", "0.000000042", "0.00001", "-1"].map(cell), ["0", "0.042", "10", "variable"]);
    }
}
