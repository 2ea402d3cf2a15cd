//! Money without floats: amounts in whole picodollars, prices as exact decimals.

mod decimal;

use std::fmt;
use std::str::FromStr;

use self::decimal::write_decimal;

/// An amount of US dollars in units of 10^-12 USD (picodollars), from [`Usd::MIN`] to [`Usd::MAX`]: about ±9.2 million
/// USD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Usd(i64);

/// The number of fraction digits of [`Usd`].
const USD_SCALE: u32 = 12;

impl Usd {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The lowest amount: -9223372.036854775808 USD.
    pub const MIN: Self = Self(i64::MIN);
    /// The highest amount: 9223372.036854775807 USD.
    pub const MAX: Self = Self(i64::MAX);
    /// The highest number of digits after the point.
    pub const DIGITS: u32 = USD_SCALE;

    /// Creates an amount from picodollars, the unit of stores.
    pub const fn from_pico(pico: i64) -> Self {
        Self(pico)
    }

    /// Returns the amount in picodollars, the unit of stores.
    pub const fn pico(self) -> i64 {
        self.0
    }

    /// Returns the sum, or `None` on overflow.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }
}

impl fmt::Display for Usd {
    /// Writes plain decimal notation without trailing zeros, valid as a JSON number: `0.000018018`, `25`, `-1.5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, i128::from(self.0), USD_SCALE, true)
    }
}

impl FromStr for Usd {
    type Err = InvalidUsd;

    /// Parses any JSON number notation; rejects amounts finer than 10^-12 USD or out of range.
    fn from_str(text: &str) -> Result<Self, InvalidUsd> {
        let price = Price::from_str(text).map_err(|_| InvalidUsd)?;
        let (mantissa, scale) = price.normalised();
        if scale > USD_SCALE {
            return Err(InvalidUsd);
        }
        mantissa
            .checked_mul(pow10(USD_SCALE - scale))
            .and_then(|pico| i64::try_from(pico).ok())
            .map(Self)
            .ok_or(InvalidUsd)
    }
}

/// The error of a text that is not an amount in the range of [`Usd`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a decimal number from {} to {} with at most {} digits after the point", Usd::MIN, Usd::MAX, Usd::DIGITS)]
pub struct InvalidUsd;

/// The error of a text that is not a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a decimal number with at most 14 digits before and 24 after the point")]
pub struct InvalidDecimal;

/// A price in USD per unit (a token, an image, a request): an exact decimal with at most 14 digits before and 24 after
/// the point. A negative price means that the real price varies with the routing.
#[derive(Debug, Clone, Copy)]
pub struct Price {
    mantissa: i128,
    scale: u32,
}

/// The highest number of digits after the point.
const MAX_SCALE: u32 = 24;
/// The number of zeros of a million.
const MILLION_DIGITS: u32 = 6;
/// The highest number of digits before the point.
const MAX_WHOLE: u32 = 14;

impl Price {
    /// The price of free units.
    pub const ZERO: Self = Self { mantissa: 0, scale: 0 };

    /// Parses a price in USD per million units, the usual notation for token prices, with at most 18 digits after the
    /// point.
    ///
    /// # Errors
    /// Fails if the text is not a decimal number, or if the price of one unit has too many digits.
    pub fn from_usd_per_million(text: &str) -> Result<Self, InvalidDecimal> {
        let (mantissa, scale) = text.parse::<Self>()?.normalised();
        let (mantissa, scale) = Self { mantissa, scale: scale + MILLION_DIGITS }.normalised();
        Self::from_parts(mantissa, scale).ok_or(InvalidDecimal)
    }

    /// Returns the price in USD per million units, in plain decimal notation.
    pub fn to_usd_per_million(self) -> String {
        let (mantissa, scale) = self.normalised();
        let zeros = MILLION_DIGITS.saturating_sub(scale);
        Self { mantissa: mantissa * pow10(zeros), scale: scale.saturating_sub(MILLION_DIGITS) }.to_string()
    }

    /// Returns true if one price is more than `factor` times the other; false if either is zero (unknown or free) or
    /// variable.
    pub fn differs_by_more_than(self, factor: u32, other: Self) -> bool {
        let (least, most) = if self < other { (self, other) } else { (other, self) };
        let at = |price: Self| price.mantissa * pow10(MAX_SCALE - price.scale);
        least.mantissa > 0 && at(least).checked_mul(i128::from(factor)).is_some_and(|bound| at(most) > bound)
    }

    /// Returns true for a negative price, which means that the real price varies.
    pub fn is_variable(self) -> bool {
        self.mantissa < 0
    }

    /// Returns the exact charge of `units`, not rounded yet. Returns `None` if the price is variable, or on overflow.
    pub fn times(self, units: u64) -> Option<Charge> {
        if self.is_variable() {
            return None;
        }
        let scaled = self.mantissa.checked_mul(pow10(MAX_SCALE - self.scale))?;
        scaled.checked_mul(i128::from(units)).map(Charge)
    }

    /// Returns true if this price of one unit is at most `max`, a price of a million units. Exact; a variable price is
    /// within none.
    pub fn is_within_per_million(self, max: Self) -> bool {
        match (self.times(1_000_000), max.times(1)) {
            (Some(price), Some(max)) => price <= max,
            _ => false,
        }
    }

    /// Returns this price divided by another, for weights only. Amounts of money never use it. Returns 0 if the other
    /// is zero or either is variable.
    pub fn ratio_to(self, other: Self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a weight needs no more than 53 bits")]
        let number = |price: Self| price.mantissa as f64 / pow10(price.scale) as f64;
        if self.is_variable() || other.mantissa <= 0 { 0.0 } else { number(self) / number(other) }
    }

    /// Returns the mantissa and the scale, which is the number of digits after the point.
    pub fn parts(self) -> (i128, u32) {
        (self.mantissa, self.scale)
    }

    /// Creates a price from [`Self::parts`]; returns `None` if it has too many digits.
    pub(crate) fn from_parts(mantissa: i128, scale: u32) -> Option<Self> {
        let is_price =
            scale <= MAX_SCALE && mantissa.unsigned_abs() / pow10(scale).unsigned_abs() < 10_u128.pow(MAX_WHOLE);
        is_price.then_some(Self { mantissa, scale })
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
    /// Writes plain decimal notation with the original digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, self.mantissa, self.scale, false)
    }
}

impl FromStr for Price {
    type Err = InvalidDecimal;

    /// Parses plain and exponent notation (`0.00000045`, `4.5e-7`, `-1`).
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

/// An exact charge in units of 10^-24 USD, so that several charges are summed first and rounded once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Charge(i128);

impl Charge {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Returns the exact sum, or `None` on overflow.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// Rounds up to whole picodollars; returns `None` if the result is out of the range of [`Usd`].
    pub fn round_up(self) -> Option<Usd> {
        let unit = pow10(MAX_SCALE - USD_SCALE);
        // Integer division truncates towards zero, which already rounds negative numbers up.
        let whole = self.0 / unit;
        let whole = whole + i128::from(self.0 > whole * unit);
        i64::try_from(whole).ok().map(Usd)
    }
}

/// The powers of ten for all scales.
const POWERS: [i128; MAX_SCALE as usize + 1] = {
    let mut powers = [1; MAX_SCALE as usize + 1];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// Returns 10^`exponent`, for exponents up to [`MAX_SCALE`].
fn pow10(exponent: u32) -> i128 {
    POWERS[exponent as usize]
}

#[cfg(test)]
mod tests;
