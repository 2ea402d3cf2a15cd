//! Money as an exact JSON number, without a conversion to a float.

use domain::money::Usd;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// An amount in USD.
#[derive(Debug, Clone, Copy)]
pub struct UsdNumber(pub Usd);

impl Serialize for UsdNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
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
}
