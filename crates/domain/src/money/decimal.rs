//! Formats decimals.

use std::fmt;

/// The highest number of bytes of a decimal: the digits of an `i128`, a sign and a point.
const MAX_TEXT: usize = 41;

/// A buffer that is filled from the last digit to the first.
struct ReverseBuffer {
    text: [u8; MAX_TEXT],
    start: usize,
}

impl ReverseBuffer {
    fn put(&mut self, byte: u8) {
        self.start -= 1;
        self.text[self.start] = byte;
    }
}

/// Writes `value` / 10^`scale` in plain notation, without trailing zeros of the fraction if `trim`.
pub(super) fn write_decimal(f: &mut fmt::Formatter<'_>, value: i128, scale: u32, trim: bool) -> fmt::Result {
    let mut written = ReverseBuffer { text: [0; MAX_TEXT], start: MAX_TEXT };
    let mut digits = value.unsigned_abs();
    let mut needless = trim;
    for _ in 0..scale {
        let digit = take_digit(&mut digits);
        needless &= digit == b'0';
        if !needless {
            written.put(digit);
        }
    }
    if written.start < MAX_TEXT {
        written.put(b'.');
    }
    written.put(take_digit(&mut digits));
    while digits > 0 {
        written.put(take_digit(&mut digits));
    }
    if value < 0 {
        written.put(b'-');
    }
    f.write_str(std::str::from_utf8(&written.text[written.start..]).map_err(|_| fmt::Error)?)
}

/// Removes and returns the last digit.
fn take_digit(digits: &mut u128) -> u8 {
    // Few amounts need 128 bits, and 128-bit division is slow.
    let digit = if let Ok(few) = u64::try_from(*digits) {
        *digits = u128::from(few / 10);
        (few % 10) as u8
    } else {
        let digit = (*digits % 10) as u8;
        *digits /= 10;
        digit
    };
    b'0' + digit
}
