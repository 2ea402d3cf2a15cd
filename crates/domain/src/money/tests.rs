use super::*;
use proptest::prelude::*;

fn price(text: &str) -> Price {
    text.parse().unwrap()
}

#[test]
fn charge_equals_published_example() {
    // 429 tokens at 0.042 USD per million.
    let cost = price("0.000000042").times(429).unwrap().round_up().unwrap();
    assert_eq!(cost.to_string(), "0.000018018");
}

#[test]
fn price_with_22_fraction_digits_is_exact_and_rounded_once() {
    let fine = price("0.0000000208333333333333");
    assert_eq!(fine.to_string(), "0.0000000208333333333333");
    let sum = fine.times(1).unwrap().checked_add(fine.times(1).unwrap()).unwrap();
    assert_eq!(sum.round_up().unwrap().to_string(), "0.000000041667");
}

#[test]
fn parse_accepts_exponents_and_display_is_plain() {
    assert_eq!(price("4.5e-7"), price("0.00000045"));
    assert_eq!(price("4.5e-7").to_string(), "0.00000045");
    assert_eq!(price("1E3").to_string(), "1000");
    assert_eq!(price("-1").to_string(), "-1");
    assert!(price("-1").is_variable());
    assert_eq!(price("0.10").to_string(), "0.10");
    assert_eq!("25.50".parse::<Usd>().unwrap().to_string(), "25.5");
}

#[test]
fn parse_price_rejects_invalid_decimals() {
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
}

#[test]
fn price_of_ten_to_the_fourteenth_is_rejected_in_every_notation() {
    for largest in
        ["99999999999999", "99999999999999.999999999999999999999999", "9.9999999999999e13", "-99999999999999"]
    {
        assert!(largest.parse::<Price>().is_ok(), "{largest}");
    }
    for beyond in ["100000000000000", "100000000000000.0", "1e14", "10e13", "0.1e15", "-100000000000000", "1e15"] {
        assert!(beyond.parse::<Price>().is_err(), "{beyond}");
    }
    // A price with the highest number of digits on both sides can still be compared and multiplied.
    let largest = price("99999999999999.999999999999999999999999");
    assert!(largest > price("99999999999999") && largest.times(1).is_some());
}

#[test]
fn parse_usd_rejects_invalid_amounts_with_range() {
    for bad in ["", "a lot", "0.0000000000001", "9223372.036854775808", "-9223372.036854775809", "9999999999", "1e400"]
    {
        let fault = bad.parse::<Usd>().unwrap_err();
        assert_eq!(
            fault.to_string(),
            "not a decimal number from -9223372.036854775808 to 9223372.036854775807 with at most 12 digits after the point",
            "{bad}"
        );
    }
    for (bound, text) in [(Usd::MIN, "-9223372.036854775808"), (Usd::MAX, "9223372.036854775807")] {
        assert_eq!(text.parse::<Usd>(), Ok(bound));
    }
}

#[test]
fn display_writes_extreme_values() {
    assert_eq!(Usd::from_pico(i64::MIN).to_string(), "-9223372.036854775808");
    assert_eq!(Usd::from_pico(i64::MAX).to_string(), "9223372.036854775807");
    let [least, most] = [i128::MIN, i128::MAX].map(|mantissa| Price { mantissa, scale: 24 }.to_string());
    assert_eq!(least, "-170141183460469.231731687303715884105728");
    assert_eq!(most, "170141183460469.231731687303715884105727");
    assert_eq!(Price { mantissa: i128::MIN, scale: 0 }.to_string(), i128::MIN.to_string());
}

#[test]
fn times_returns_none_for_variable_price_or_overflow() {
    assert!(price("-1").times(1).is_none());
    assert!(price("99999999").times(u64::MAX).is_none());
}

proptest! {
    #[test]
    fn parse_never_panics(text in ".{0,80}") {
        let _ = text.parse::<Price>();
        let _ = text.parse::<Usd>();
    }

    #[test]
    fn usd_display_and_parse_round_trip(pico in any::<i64>()) {
        let usd = Usd::from_pico(pico);
        prop_assert_eq!(usd.to_string().parse::<Usd>().unwrap(), usd);
    }

    #[test]
    fn display_price_writes_whole_and_fraction(mantissa in any::<i128>(), shift in 0_u32..128, scale in 0_u32..=24) {
        let price = Price { mantissa: mantissa >> shift, scale };
        let (digits, unit) = (price.mantissa.unsigned_abs(), pow10(scale).unsigned_abs());
        let sign = if price.mantissa < 0 { "-" } else { "" };
        let fraction = if scale == 0 { String::new() } else { format!(".{:0width$}", digits % unit, width = scale as usize) };
        prop_assert_eq!(price.to_string(), format!("{sign}{}{fraction}", digits / unit));
    }

    #[test]
    fn display_usd_trims_trailing_zeros(pico in any::<i64>(), shift in 0_u32..64, zeros in 0_u32..12) {
        let pico = (pico >> shift) / 10_i64.pow(zeros) * 10_i64.pow(zeros);
        let (digits, unit) = (pico.unsigned_abs(), 10_u64.pow(USD_SCALE));
        let sign = if pico < 0 { "-" } else { "" };
        let expected = format!("{sign}{}.{:012}", digits / unit, digits % unit);
        let expected = expected.trim_end_matches('0').trim_end_matches('.');
        prop_assert_eq!(Usd::from_pico(pico).to_string(), expected);
    }

    #[test]
    fn price_per_million_round_trips(mantissa in 0_u64.., scale in 0_u32..=18) {
        let text = Price { mantissa: i128::from(mantissa % 10_u64.pow(8)), scale }.to_string();
        let price = Price::from_usd_per_million(&text).unwrap();
        prop_assert_eq!(price.times(1_000_000), text.parse::<Price>().unwrap().times(1));
        prop_assert_eq!(price.to_usd_per_million().parse::<Price>(), text.parse());
    }

    #[test]
    fn round_up_rounds_towards_positive_infinity(charge in any::<i128>(), shift in 0_u32..128) {
        let charge = charge >> shift;
        let unit = pow10(12);
        let up = charge.div_euclid(unit) + i128::from(charge.rem_euclid(unit) != 0);
        prop_assert_eq!(Charge(charge).round_up(), i64::try_from(up).ok().map(Usd));
    }

    #[test]
    fn round_up_adds_less_than_one_unit(mantissa in 0_u32.., units in 0_u32..) {
        let price: Price = format!("0.{mantissa:024}").parse().unwrap();
        let exact = i128::from(mantissa) * i128::from(units);
        let pico = i128::from(price.times(u64::from(units)).unwrap().round_up().unwrap().pico());
        prop_assert!(pico * pow10(12) >= exact && pico * pow10(12) - exact < pow10(12));
    }
}

#[test]
fn from_usd_per_million_is_exact_or_fails() {
    let price = |text: &str| Price::from_usd_per_million(text).map(|price| price.to_string());
    assert_eq!(price("0.042"), Ok("0.000000042".to_owned()));
    assert_eq!(price("0"), Ok("0".to_owned()));
    assert_eq!(price("2500000"), Ok("2.5".to_owned()));
    assert_eq!(price("0.000000000000000001"), Ok("0.000000000000000000000001".to_owned()));
    assert_eq!(price("0.0000000000000000001"), Err(InvalidDecimal));
    assert_eq!(price("cheap"), Err(InvalidDecimal));
}

#[test]
fn differs_by_more_than_ignores_zero_and_variable_prices() {
    let price = |text: &str| text.parse::<Price>().unwrap();
    assert!(price("0.042").differs_by_more_than(100, price("0.000000042")));
    assert!(price("0.000000042").differs_by_more_than(100, price("0.042")));
    assert!(!price("100").differs_by_more_than(100, price("1")));
    assert!(price("100.01").differs_by_more_than(100, price("1")));
    assert!(!price("0").differs_by_more_than(100, price("1")));
    assert!(!price("-1").differs_by_more_than(100, price("1000")));
    assert!(!price("99999999999999").differs_by_more_than(u32::MAX, price("99999999999998")));
}
