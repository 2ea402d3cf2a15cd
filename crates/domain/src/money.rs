//! Money without floats: amounts in whole picodollars, prices as exact decimals.

use std::fmt;
use std::str::FromStr;

/// An amount of US dollars in units of 10^-12 USD (picodollars). Range: about ±9.2 million USD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Usd(i64);

/// Fraction digits that [`Usd`] keeps.
const USD_SCALE: u32 = 12;

impl Usd {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// From picodollars, as stores keep it.
    pub const fn from_pico(pico: i64) -> Self {
        Self(pico)
    }

    /// In picodollars, as stores keep it.
    pub const fn pico(self) -> i64 {
        self.0
    }

    /// The sum, or `None` where it leaves the range.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }
}

impl fmt::Display for Usd {
    /// Plain decimal notation without trailing zeros, valid as a JSON number: `0.000018018`, `25`, `-1.5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, i128::from(self.0), USD_SCALE, true)
    }
}

impl FromStr for Usd {
    type Err = InvalidDecimal;

    /// Reads any JSON number notation; refuses what is finer than 10^-12 USD or out of range.
    fn from_str(text: &str) -> Result<Self, InvalidDecimal> {
        let price = Price::from_str(text)?;
        let (mantissa, scale) = price.normalised();
        if scale > USD_SCALE {
            return Err(InvalidDecimal);
        }
        mantissa
            .checked_mul(pow10(USD_SCALE - scale))
            .and_then(|pico| i64::try_from(pico).ok())
            .map(Self)
            .ok_or(InvalidDecimal)
    }
}

/// A text that is not a decimal number within the supported range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a decimal number with at most 14 digits before and 24 after the point")]
pub struct InvalidDecimal;

/// A price in USD per unit (a token, an image, a request): an exact decimal with at most 14 digits before and 24
/// after the point. A negative price means that the real one varies with what is routed to.
#[derive(Debug, Clone, Copy)]
pub struct Price {
    mantissa: i128,
    scale: u32,
}

/// Most digits after the point.
const MAX_SCALE: u32 = 24;
/// Most digits before the point.
const MAX_WHOLE: u32 = 14;

impl Price {
    /// No charge.
    pub const ZERO: Self = Self { mantissa: 0, scale: 0 };

    /// True where the price is negative, that is, variable.
    pub fn is_variable(self) -> bool {
        self.mantissa < 0
    }

    /// What `units` cost, in exact arithmetic, not yet rounded. `None` where the price is variable or the
    /// product leaves the range.
    pub fn times(self, units: u64) -> Option<Charge> {
        if self.is_variable() {
            return None;
        }
        let scaled = self.mantissa.checked_mul(pow10(MAX_SCALE - self.scale))?;
        scaled.checked_mul(i128::from(units)).map(Charge)
    }

    /// This price as a share of another, for weighing only; money never goes through here. 0 where the other is zero
    /// or either is variable.
    pub fn ratio_to(self, other: Self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a weight needs no more than 53 bits")]
        let number = |price: Self| price.mantissa as f64 / pow10(price.scale) as f64;
        if self.is_variable() || other.mantissa <= 0 { 0.0 } else { number(self) / number(other) }
    }

    fn normalised(self) -> (i128, u32) {
        let (mut mantissa, mut scale) = (self.mantissa, self.scale);
        while scale > 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        (mantissa, scale)
    }
}

impl PartialEq for Price {
    fn eq(&self, other: &Self) -> bool {
        self.normalised() == other.normalised()
    }
}

impl Eq for Price {}

impl PartialOrd for Price {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Price {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let at = |price: &Self| price.mantissa * pow10(MAX_SCALE - price.scale);
        // Parsing keeps the digits before and after the point together below 10^38.
        at(self).cmp(&at(other))
    }
}

impl fmt::Display for Price {
    /// Plain decimal notation, with the digits it was given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, self.mantissa, self.scale, false)
    }
}

impl FromStr for Price {
    type Err = InvalidDecimal;

    /// Reads plain and exponent notation (`0.00000045`, `4.5e-7`, `-1`).
    fn from_str(text: &str) -> Result<Self, InvalidDecimal> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (number, exponent) = match rest.split_once(['e', 'E']) {
            Some((number, exponent)) if exponent.len() <= 4 => {
                (number, exponent.parse::<i32>().map_err(|_| InvalidDecimal)?)
            }
            Some(_) => return Err(InvalidDecimal),
            None => (rest, 0),
        };
        let (whole, fraction) = match number.split_once('.') {
            Some((_, "")) => return Err(InvalidDecimal),
            Some(parts) => parts,
            None => (number, ""),
        };
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) || number.len() > 64 {
            return Err(InvalidDecimal);
        }
        let mut mantissa: i128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            mantissa =
                mantissa.checked_mul(10).and_then(|m| m.checked_add(i128::from(digit - b'0'))).ok_or(InvalidDecimal)?;
        }
        let mut scale = i32::try_from(fraction.len()).map_err(|_| InvalidDecimal)? - exponent;
        while scale > 0 && mantissa % 10 == 0 && scale.unsigned_abs() > MAX_SCALE {
            mantissa /= 10;
            scale -= 1;
        }
        if scale < 0 {
            if scale < -40 && mantissa != 0 {
                return Err(InvalidDecimal);
            }
            for _ in scale..0 {
                mantissa = mantissa.checked_mul(10).ok_or(InvalidDecimal)?;
            }
            scale = 0;
        }
        let scale = if mantissa == 0 { scale.unsigned_abs().min(MAX_SCALE) } else { scale.unsigned_abs() };
        if scale > MAX_SCALE || mantissa / pow10(scale) >= pow10(MAX_WHOLE) {
            return Err(InvalidDecimal);
        }
        Ok(Self { mantissa: if negative { -mantissa } else { mantissa }, scale })
    }
}

/// An exact charge before rounding, in units of 10^-24 USD, so that several parts are summed first and rounded once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Charge(i128);

impl Charge {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// The exact sum, or `None` where it leaves the range.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// Rounded up to whole picodollars, or `None` where that leaves [`Usd`]'s range.
    pub fn round_up(self) -> Option<Usd> {
        let unit = pow10(MAX_SCALE - USD_SCALE);
        let whole = self.0.div_euclid(unit) + i128::from(self.0.rem_euclid(unit) != 0);
        i64::try_from(whole).ok().map(Usd)
    }
}

fn pow10(exponent: u32) -> i128 {
    10_i128.pow(exponent)
}

fn write_decimal(f: &mut fmt::Formatter<'_>, value: i128, scale: u32, trim: bool) -> fmt::Result {
    let sign = if value < 0 { "-" } else { "" };
    let digits = value.unsigned_abs();
    let unit = pow10(scale).unsigned_abs();
    let (whole, rest) = (digits / unit, digits % unit);
    if scale == 0 || (trim && rest == 0) {
        return write!(f, "{sign}{whole}");
    }
    let mut fraction = format!("{rest:0width$}", width = scale as usize);
    if trim {
        fraction.truncate(fraction.trim_end_matches('0').len());
    }
    write!(f, "{sign}{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn price(text: &str) -> Price {
        text.parse().unwrap()
    }

    #[test]
    fn a_published_charge_is_met_to_the_digit() {
        // 429 tokens at 0.042 USD per million.
        let cost = price("0.000000042").times(429).unwrap().round_up().unwrap();
        assert_eq!(cost.to_string(), "0.000018018");
    }

    #[test]
    fn a_price_with_22_fraction_digits_stays_exact_and_is_rounded_up_once() {
        let fine = price("0.0000000208333333333333");
        assert_eq!(fine.to_string(), "0.0000000208333333333333");
        let sum = fine.times(1).unwrap().checked_add(fine.times(1).unwrap()).unwrap();
        assert_eq!(sum.round_up().unwrap().to_string(), "0.000000041667");
    }

    #[test]
    fn every_number_notation_is_read_and_plain_notation_is_written() {
        assert_eq!(price("4.5e-7"), price("0.00000045"));
        assert_eq!(price("4.5e-7").to_string(), "0.00000045");
        assert_eq!(price("1E3").to_string(), "1000");
        assert_eq!(price("-1").to_string(), "-1");
        assert!(price("-1").is_variable());
        assert_eq!(price("0.10").to_string(), "0.10");
        assert_eq!("25.50".parse::<Usd>().unwrap().to_string(), "25.5");
    }

    #[test]
    fn what_is_no_decimal_is_refused() {
        for bad in [
            "",
            "-",
            ".",
            "1.",
            ".5",
            "1e",
            "1e99999",
            "NaN",
            "0x10",
            "1,5",
            " 1",
            "1e40",
            "+1",
            "9999999999999999",
            "0.0000000000000000000000001",
        ] {
            assert!(bad.parse::<Price>().is_err(), "{bad}");
        }
        assert!("0.0000000000001".parse::<Usd>().is_err());
        assert!("99999999".parse::<Usd>().is_err());
    }

    #[test]
    fn a_variable_price_or_an_overflow_has_no_charge() {
        assert!(price("-1").times(1).is_none());
        assert!(price("99999999").times(u64::MAX).is_none());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,80}") {
            let _ = text.parse::<Price>();
            let _ = text.parse::<Usd>();
        }

        #[test]
        fn display_and_parse_are_inverse(pico in any::<i64>()) {
            let usd = Usd::from_pico(pico);
            prop_assert_eq!(usd.to_string().parse::<Usd>().unwrap(), usd);
        }

        #[test]
        fn rounding_never_loses_and_never_adds_a_whole_unit(mantissa in 0_u32.., units in 0_u32..) {
            let price: Price = format!("0.{mantissa:024}").parse().unwrap();
            let exact = i128::from(mantissa) * i128::from(units);
            let pico = i128::from(price.times(u64::from(units)).unwrap().round_up().unwrap().pico());
            prop_assert!(pico * pow10(12) >= exact && pico * pow10(12) - exact < pow10(12));
        }
    }
}
