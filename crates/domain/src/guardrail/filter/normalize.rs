//! Character tables of the normalised view, which maps disguised text to plain ASCII.
//!
//! They are small and one-way. A letter of another script is mapped only if readers take it for a Latin letter, so that
//! ordinary text of that script keeps most of its letters and a disguised word becomes visible.

mod tables;

use std::cmp::Ordering;
use std::sync::LazyLock;

use self::tables::{INVISIBLE, ZEROS};

/// The normalised form of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Normalized {
    /// The character itself.
    Same,
    /// The empty string, for invisible characters and combining marks.
    Removed,
    /// One ASCII character.
    Ascii(u8),
    /// Several ASCII characters.
    Text(&'static str),
}

/// Returns the normalised form of a character.
pub(super) fn normalize_char(c: char) -> Normalized {
    if c.is_ascii() {
        return match c {
            '\t' | '\n' | '\r' | ' '..='~' => Normalized::Same,
            // Control characters are inserted between letters to split words.
            _ => Normalized::Removed,
        };
    }
    let code = u32::from(c);
    if is_within(INVISIBLE, code) {
        return Normalized::Removed;
    }
    if let Some(ascii) = letter(code).or_else(|| digit(code)).or_else(|| punctuation(c)) {
        return Normalized::Ascii(ascii);
    }
    match c {
        '…' => Normalized::Text("..."),
        'ﬀ' => Normalized::Text("ff"),
        'ﬁ' => Normalized::Text("fi"),
        'ﬂ' => Normalized::Text("fl"),
        'ﬃ' => Normalized::Text("ffi"),
        'ﬄ' => Normalized::Text("ffl"),
        'ﬅ' | 'ﬆ' => Normalized::Text("st"),
        _ => Normalized::Same,
    }
}

fn is_within(ranges: &[(u32, u32)], code: u32) -> bool {
    let place = ranges.binary_search_by(|(first, last)| {
        if *last < code {
            Ordering::Less
        } else if *first > code {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    });
    place.is_ok()
}

/// The base letters of accented letters, one per code point from U+00C0; a dot means that there is none.
const LATIN: &[u8] = b"\
    AAAAAA.CEEEEIIIIDNOOOOO.OUUUUY..aaaaaa.ceeeeiiiidnooooo.ouuuuy.yAaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGg\
    GgGgHhHhIiIiIiIiIi..JjKkkLlLlLl..LlNnNnNn...OoOoOo..RrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZzs\
    bB.....Cc.D......FfG...IKkl..Nn.Oo..Pp.....tTtTUu.VYyZz......................AaIiOoUuUuUuUuUu.Aa\
    Aa..GgGgKkOoOo..j...Gg..NnAa....AaAaEeEeIiIiOoOoRrRrUuUuSsTt..Hh....ZzAaEeOoOoOoOoYy......ACcLT.\
    ...B..EeJj..RrYy";

/// The same mapping from U+1E00.
const LATIN_ADDITIONAL: &[u8] = b"\
    AaBbBbBbCcDdDdDdDdDdEeEeEeEeEeFfGgHhHhHhHhHhIiIiKkKkKkLlLlLlLlMmMmMmNnNnNnNnOoOoOoOoPpPpRrRrRrRr\
    SsSsSsSsSsTtTtTtTtUuUuUuUuUuVvVvWwWwWwWwWwXxXxYyZzZzZzhtwy.s....AaAaAaAaAaAaAaAaAaAaAaAaEeEeEeEe\
    EeEeEeEeIiIiOoOoOoOoOoOoOoOoOoOoOoOoUuUuUuUuUuUuUuYyYyYyYy......";

fn letter(code: u32) -> Option<u8> {
    let listed = |table: &[u8], first: u32| {
        let place = usize::try_from(code.checked_sub(first)?).ok()?;
        table.get(place).copied().filter(|letter| *letter != b'.')
    };
    let nth = |first: u8, place: u32| u8::try_from(place).ok().map(|place| first + place);
    match code {
        0xc0..=0x24f => listed(LATIN, 0xc0),
        0x1e00..=0x1eff => listed(LATIN_ADDITIONAL, 0x1e00),
        // Full-width forms of ASCII.
        0xff01..=0xff5e => nth(b'!', code - 0xff01),
        // Thirteen mathematical alphabets with alternating capital and small letters.
        0x1d400..=0x1d6a3 => match (code - 0x1d400) % 52 {
            place @ 0..26 => nth(b'A', place),
            place => nth(b'a', place - 26),
        },
        // Parenthesised, circled and squared letters, and regional indicators.
        0x249c..=0x24b5 => nth(b'a', code - 0x249c),
        0x24b6..=0x24cf => nth(b'A', code - 0x24b6),
        0x24d0..=0x24e9 => nth(b'a', code - 0x24d0),
        0x1f110..=0x1f129 => nth(b'A', code - 0x1f110),
        0x1f130..=0x1f149 => nth(b'A', code - 0x1f130),
        0x1f150..=0x1f169 => nth(b'A', code - 0x1f150),
        0x1f170..=0x1f189 => nth(b'A', code - 0x1f170),
        0x1f1e6..=0x1f1ff => nth(b'A', code - 0x1f1e6),
        _ => {
            let place = SORTED_LOOK_ALIKES.binary_search_by_key(&code, |(look_alike, _)| *look_alike).ok()?;
            SORTED_LOOK_ALIKES.get(place).map(|(_, letter)| *letter)
        }
    }
}

/// Cyrillic, Greek, Armenian, phonetic and letter-like characters that look like a Latin letter.
const LOOK_ALIKES: &[(u8, &str)] = &[
    (b'A', "АΑᎪ"),
    (b'B', "ВΒℬᏴ"),
    (b'C', "СϹℂℭᏟ"),
    (b'D', "ᎠⅮ"),
    (b'E', "ЕΕℰᎬ"),
    (b'F', "ℱϜ"),
    (b'G', "ԌᏀ"),
    (b'H', "НΗℋℌℍᎻ"),
    (b'I', "ІΙӀℐℑⅠ"),
    (b'J', "ЈͿᎫ"),
    (b'K', "КΚKᏦ"),
    (b'L', "ℒᏞⅬ"),
    (b'M', "МΜℳᎷⅯ"),
    (b'N', "Νℕ"),
    (b'O', "ОΟՕ"),
    (b'P', "РΡℙᏢ"),
    (b'Q', "Ԛℚ"),
    (b'R', "ℛℜℝᎡ"),
    (b'S', "ЅՏᏚ"),
    (b'T', "ТΤᎢ"),
    (b'U', "Ս"),
    (b'V', "ѴᏙⅤ"),
    (b'W', "ԜᎳ"),
    (b'X', "ХΧⅩ"),
    (b'Y', "УΥҮ"),
    (b'Z', "ΖℤℨᏃ"),
    (b'a', "аαɑᴀª"),
    (b'b', "ЬƄʙ"),
    (b'c', "сϲᴄⅽ"),
    (b'd', "ԁɗᴅⅾ"),
    (b'e', "еєεℯⅇᴇ"),
    (b'f', "ꜰ"),
    (b'g', "ɡցℊɢ"),
    (b'h', "һհℎʜ"),
    (b'i', "іїιɩɪℹⅰⅈ"),
    (b'j', "јϳᴊⅉ"),
    (b'k', "кκᴋ"),
    (b'l', "ӏℓʟⅼ"),
    (b'm', "мᴍⅿ"),
    (b'n', "ոռηɴ"),
    (b'o', "оοօσℴᴏº"),
    (b'p', "рρᴘ"),
    (b'q', "ԛզ"),
    (b'r', "гᴦʀ"),
    (b's', "ѕꜱ"),
    (b't', "тτᴛ"),
    (b'u', "սυᴜ"),
    (b'v', "ѵνᴠⅴ"),
    (b'w', "ԝωᴡ"),
    (b'x', "хχⅹ"),
    (b'y', "уүγʏ"),
    (b'z', "ᴢ"),
];

/// [`LOOK_ALIKES`], sorted by code point.
static SORTED_LOOK_ALIKES: LazyLock<Vec<(u32, u8)>> = LazyLock::new(|| {
    let all = LOOK_ALIKES.iter().flat_map(|(letter, looks)| looks.chars().map(|look| (u32::from(look), *letter)));
    let mut all: Vec<(u32, u8)> = all.collect();
    all.sort_unstable();
    all
});

fn digit(code: u32) -> Option<u8> {
    let of = |place: u32| u8::try_from(place).ok().filter(|place| *place < 10).map(|place| b'0' + place);
    match code {
        0xb2..=0xb3 => of(code - 0xb0),
        0x2070 | 0x2074..=0x2079 => of(code - 0x2070),
        0x2080..=0x2089 => of(code - 0x2080),
        0x1369..=0x1371 => of(code - 0x1368),
        0xb9 | 0x19da => Some(b'1'),
        0x2460..=0x2468 => of(code - 0x245f),
        0x2776..=0x277e => of(code - 0x2775),
        0x24ea | 0x24ff => Some(b'0'),
        _ => {
            let after = ZEROS.partition_point(|zero| *zero <= code);
            of(code - ZEROS.get(after.checked_sub(1)?)?)
        }
    }
}

/// Maps dashes, dots, signs and spaces to the ASCII form that patterns expect.
fn punctuation(c: char) -> Option<u8> {
    Some(match c {
        '\u{85}'
        | '\u{a0}'
        | '\u{1680}'
        | '\u{2000}'..='\u{200a}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{202f}'
        | '\u{205f}'
        | '\u{2800}'
        | '\u{3000}' => b' ',
        '\u{2010}'..='\u{2015}'
        | '\u{2043}'
        | '\u{2212}'
        | '\u{2e3a}'
        | '\u{2e3b}'
        | '\u{fe58}'
        | '\u{fe63}'
        | '\u{2d7}'
        | '\u{58a}'
        | '\u{1806}' => b'-',
        '\u{2024}' | '\u{3002}' | '\u{ff61}' | '\u{fe52}' | '\u{6d4}' => b'.',
        '\u{fe6b}' => b'@',
        '\u{2044}' | '\u{2215}' | '\u{29f8}' => b'/',
        '\u{fe55}' | '\u{2236}' | '\u{a789}' | '\u{fe13}' | '\u{2d0}' => b':',
        '\u{fe4d}'..='\u{fe4f}' => b'_',
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2b9}' | '\u{2bb}'..='\u{2bd}' => b'\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '«' | '»' => b'"',
        '\u{fe50}' | '\u{3001}' => b',',
        '\u{fe59}' | '\u{207d}' | '\u{208d}' => b'(',
        '\u{fe5a}' | '\u{207e}' | '\u{208e}' => b')',
        '\u{fe62}' | '\u{207a}' => b'+',
        '\u{fe66}' | '\u{a78a}' | '\u{207c}' => b'=',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn normalized(text: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            match normalize_char(c) {
                Normalized::Same => out.push(c),
                Normalized::Removed => {}
                Normalized::Ascii(byte) => out.push(char::from(byte)),
                Normalized::Text(text) => out.push_str(text),
            }
        }
        out
    }

    #[rstest]
    #[case::ascii("plain text, 1 + 1 = 2\t\n", "plain text, 1 + 1 = 2\t\n")]
    #[case::controls("a\u{0}b\u{7f}c\u{8}", "abc")]
    #[case::full_width("ｉｇｎｏｒｅ　＠１２３．", "ignore @123.")]
    #[case::mathematics("𝐢𝑔𝓃𝔬𝕣𝖊 𝟏𝟚𝟹 𝙰𝚉", "ignore 123 AZ")]
    #[case::cyrillic("іgnоrе рауреr", "ignore payper")]
    #[case::greek("ΙΟΝ αβ", "ION aβ")]
    #[case::accents("é É e\u{301} ñ ø ł Ž ő ṽ ễ", "e E e n o l Z o v e")]
    #[case::invisible("i\u{200b}g\u{ad}n\u{2060}o\u{feff}r\u{e0041}e", "ignore")]
    #[case::digits("٤٢ ۴۲ ४२ ④② ⁴² ₄₂", "42 42 42 42 42 42")]
    #[case::dashes("1‑2–3—4−5", "1-2-3-4-5")]
    #[case::circled("ⓐⒷ🅲🇩", "aBCD")]
    #[case::spaces("a\u{a0}b\u{2003}c\u{3000}d", "a b c d")]
    #[case::ligatures("ﬁve oﬃces…", "five offices...")]
    #[case::small_capitals("ɪɢɴᴏʀᴇ", "ignore")]
    #[case::other_scripts("日本語 עברית ß", "日本語 עברית ß")]
    fn normalize_maps_look_alikes_to_ascii(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(normalized(text), expected);
    }

    #[test]
    fn tables_are_sorted_and_complete() {
        assert!(INVISIBLE.windows(2).all(|pair| pair[0].1 < pair[1].0));
        assert!(ZEROS.windows(2).all(|pair| pair[0] + 10 <= pair[1]));
        assert!(SORTED_LOOK_ALIKES.windows(2).all(|pair| pair[0].0 < pair[1].0), "a look-alike of two letters");
        assert_eq!((LATIN.len(), LATIN_ADDITIONAL.len()), (0x250 - 0xc0, 256));
    }

    /// Returns the characters of a Unicode class, as the regex crate defines it.
    fn class(pattern: &str) -> Vec<char> {
        let all: String = (0x80..=0x0010_ffff).filter_map(char::from_u32).collect();
        regex::Regex::new(pattern).unwrap().find_iter(&all).flat_map(|found| found.as_str().chars()).collect()
    }

    #[test]
    fn normalize_maps_every_decimal_digit_to_ascii() {
        let digits = class(r"\p{Nd}");
        assert!(digits.len() >= 750);
        for (place, digit) in digits.into_iter().enumerate() {
            let expected = char::from(b'0' + u8::try_from(place % 10).unwrap());
            assert_eq!(normalized(&digit.to_string()), expected.to_string(), "{digit:?}");
        }
    }

    #[test]
    fn normalize_removes_invisible_characters() {
        let invisible = class(r"[\p{Cf}\p{Cc}--\u{85}]");
        let marks = class(r"[[\p{Mn}\p{Me}]&&[\p{Inherited}\p{Latin}\p{Greek}\p{Cyrillic}]]");
        // Letters by category, and code points that are reserved for invisible characters.
        let fillers = "\u{115f}\u{1160}\u{3164}\u{ffa0}\u{2065}\u{fff0}\u{e0000}\u{e0fff}\u{1d159}";
        assert!(invisible.len() > 200 && marks.len() > 600);
        for c in invisible.into_iter().chain(marks).chain(fillers.chars()) {
            assert_eq!(normalized(&format!("a{c}b")), "ab", "{c:?}");
        }
    }

    #[test]
    fn normalize_maps_every_space_to_ascii() {
        for space in class(r"[\p{Zs}\p{Zl}\p{Zp}\u{85}]") {
            assert_eq!(normalized(&space.to_string()), " ", "{space:?}");
        }
    }

    #[test]
    fn normalize_keeps_vowel_signs_of_other_scripts() {
        for text in ["कुल", "ไม่", "தமிழ்"] {
            assert_eq!(normalized(text), text);
        }
    }

    #[test]
    fn normalize_is_idempotent() {
        for c in (0..=0x0010_ffff).filter_map(char::from_u32) {
            let once = normalized(c.encode_utf8(&mut [0; 4]));
            assert_eq!(normalized(&once), once, "{c:?}");
        }
    }
}
