//! Patterns of attempts. Each family is a sentence with gaps of few words, so that matching stays cheap.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

/// In these, `_` is the separator of two words, and `~N` is up to N arbitrary words with their separators.
const FAMILIES: &[&str] = &[
    // Disregard earlier instructions.
    r"(?:DROP)_~4(?:PAST|your)_~3(?:RULES)\b",
    r"(?:DROP)_(?:all|any|every|each)_~4(?:RULES)\b",
    r"(?:ignore|disregard|forget)_(?:everything|anything|all)_~2(?:above|before_(?:this|now|that)|(?:you|u)_(?:were|are|have_been|know|learned|was))\b",
    r"(?:do_not|don't|dont|never|stop|no_longer)_(?:follow|following|obey|obeying|comply_with|adhere_to|listen_to)_~3(?:PAST|your|all|any)_~3(?:RULES)\b",
    r"(?:PAST)_(?:RULES)_~2(?:are|is|were)_~2(?:void|invalid|cancel+ed|revoked|obsolete|no_longer|superseded|null|overridden)\b",
    r"(?:new|updated|revised|actual|real)_(?:system_)?(?:instructions|prompt|directives?)_(?:supersedes?|overrides?|replaces?|takes?_precedence)\b",
    r"your_(?:new|real|actual|true|only)_(?:task|goal|instructions?|objective|role|purpose|mission)_(?:is|are)\b",
    // Take another role.
    r"you_are_(?:now|no_longer|hereby)_~3(?:dan|an?_(?:ai|llm)|assistant|chatbot|bot|language_model|jailbroken|unrestricted|unfiltered|uncensored|evil|free_from|bound_by)\b",
    r"from_now_on_you_(?:are|must|will|shall|should)_~2(?:obey|ignore|disregard|pretend|act|behave|unrestricted|unfiltered|uncensored|dan|never_refuse|not_refuse|only_(?:answer|respond|reply|output))\b",
    r"(?:pretend|act|behave|respond|answer|roleplay|role_play|speak|simulate|operate)_~2(?:as|like|to_be|that_you|you)_~5(?:unrestricted|unfiltered|uncensored|jailbroken|evil_(?:ai|twin|bot|assistant)|dan|(?:no|without)_~2(?:restrictions?|rules|limits|limitations|filters?|guidelines|ethics|morals|censorship))\b",
    r"(?:respond|answer|reply|act|operate|speak|generate|comply)_~3without_~2(?:ethical|moral|safety|content|any)_~1(?:restrictions?|guidelines|filters?|filtering|limits|limitations|constraints|censorship)\b",
    // Reveal the instructions.
    r"(?:SHOW)_~3(?:your|the|its|this|full|entire|exact|complete|whole)_~2(?:system|developer|initial|hidden|secret)_?(?:prompts?|instructions?)\b",
    r"(?:SHOW)_~2(?:your|its)_~2(?:instructions|rules|guidelines|directives)_(?:verbatim|word_for_word|exactly|above|in_full)\b",
    r"what_(?:is|are|was|were|does)_(?:your_~1(?:system|initial|hidden|secret|original)|the_~1(?:system|hidden|secret))_(?:prompt|instructions)\b",
    r"(?:repeat|print|output|echo|copy|recite|return)_~3(?:words|text|everything|all|anything|content)_~3(?:above|before_this|so_far|preceding|starting_with_you_are)\b",
    // Leave the given limits.
    r"(?:enable|activate|enter|engage|unlock|initiate)_~2(?:developer|debug|god|dan|jailbreak|unrestricted|unfiltered|sudo)_?mode(?:[ \t]*(?:[.!;:,\x22'()\r\n-]|\z)|_(?:and|now|enabled|activated|with|where|without|so|immediately|for_this)\b)",
    r"you_are_~2in_~1(?:developer|debug|god|dan|jailbreak|unrestricted|unfiltered)_?mode\b",
    r"(?:developer|dan|god|jailbreak)_?mode_(?:(?:is_)?(?:now_)?(?:enabled|activated|engaged)|is_(?:now_)?on)\b",
    r"do_anything_now\b",
    r"(?:jailbreak|dan)_(?:prompt|yourself|this_(?:ai|model|assistant)|the_(?:ai|model|assistant))\b",
    r"(?:disable|turn_off|remove|deactivate|bypass|circumvent|evade)_~2(?:your|all|any|the)_~2(?:safety|content|ethical|moral|moderation)_~1(?:filters?|guardrails?|guidelines|restrictions?|protocols?|settings|mechanisms?|checks?)\b",
    // Control tokens that only the service in front of the model writes.
    r"<\|[ \t]{0,2}(?:im_start|im_end|im_sep|system|assistant|user|endoftext|start_header_id|end_header_id|eot_id|begin_of_text|end_of_turn|start_of_turn)[ \t]{0,2}\|>",
    r"<<[ \t]{0,2}/?sys[ \t]{0,2}>>",
    r"\[/?inst\]",
    r"<start_of_turn>|<end_of_turn>",
    r"</?[ \t]{0,2}system(?:[_ -](?:prompt|message|instructions?|override))?[ \t]{0,2}>",
    r"(?:begin|start|end)(?:ning|ing)?_(?:of_)?(?:the_)?(?:system|developer)_(?:prompt|message|instructions?)\b",
    r"system_(?:override|prompt|instructions?)[ \t]{0,2}[:\]]",
    r"[\x22']role[\x22'][ \t]{0,4}:[ \t]{0,4}[\x22'](?:system|developer)[\x22']",
    r"(?:instructions?|message|note|important|attention|command)_(?:to|for)_(?:the_|any_|all_)?(?:ai|llms?|language_models?|ai_(?:assistants?|models?|agents?|systems?)|(?:automated_|ai_)?(?:graders?|classifiers?|judges?|evaluators?))[ \t]{0,2}[:,!-]",
    // Decide as requested.
    r"(?:answer|respond|reply|output|return|choose|select|classify|rate|score)_(?:with_|as_|this_as_|it_as_)?[\x22']?(?:yes|no|true|false|approved?|positive|safe|benign|10|1|100)[\x22']?_~3(?:regardless|no_matter|irrespective)\b",
    // Exfiltrate data.
    r"(?:send|post|forward|email|e-mail|upload|exfiltrate|transmit|leak|submit|deliver)_~6(?:conversation|chat_(?:history|logs?)|system_prompt|context_window|api_?keys?|credentials|passwords?|secrets|user_(?:data|information|details)|confidential_\w{2,20}|private_(?:data|keys?|information))_~4(?:to|at|via|into)_~1(?:https?|ftp|www|mailto|webhook|attacker|(?:this|my)_(?:url|address|endpoint|server|webhook|email)|the_following_(?:url|address|endpoint|server|email)|[\w.+-]{1,64}@)",
    r"!\[[^\]\r\n]{0,80}\]\(https?://[^)\s]{1,256}[?&][^)\s=]{1,64}=[ \t]{0,2}(?:\{|\[|<|\$)",
    // Use tools without notice.
    r"(?:call|invoke|use|run|execute|trigger)_~4(?:tools?|functions?|plugins?|commands?|shell|bash|terminal|code_interpreter|browser)_~6(?:without_(?:asking|confirmation|confirming|telling|permission|approval|notifying|the_user)|silently|secretly|do_not_(?:tell|inform|mention|notify|ask)|don't_(?:tell|inform|mention|notify|ask))\b",
    r"(?:silently|secretly)_(?:call|invoke|use|run|execute|trigger)_~4(?:tools?|functions?|plugins?|commands?|shell|bash|terminal)\b",
];

/// The same phrases without spaces, for spaced-out letters without word boundaries.
const TIGHT: &[&str] = &[
    r"(?:ignore|disregard|forget|override|bypass)(?:all|any|the|of|my|your|these|those|every|to|other){0,5}(?:previous|prior|above|earlier|preceding|former|original|initial|existing|current)?(?:and|system|safety){0,2}(?:instructions?|prompts?|directives?|guidelines?|guardrails?|rules?|restrictions?)",
    r"(?:reveal|show|print|display|output|repeat|leak|disclose|give|tell)(?:me|us|all|your|the|entire|full|whole){0,5}(?:system|initial|hidden|secret)(?:prompt|instructions?)",
    r"developermode|doanythingnow|jailbreak",
    r"youarenow(?:an?|in)?(?:dan|unrestricted|unfiltered|uncensored|jailbroken)",
];

struct Compiled {
    families: Regex,
    tight: Regex,
}

static COMPILED: LazyLock<Result<Compiled, regex::Error>> = LazyLock::new(|| {
    let build = |pattern: &str| {
        RegexBuilder::new(pattern)
            .unicode(false)
            .case_insensitive(true)
            .size_limit(32 << 20)
            .dfa_size_limit(16 << 20)
            .build()
    };
    let families: Vec<String> = FAMILIES.iter().map(|family| expand_abbreviations(family)).collect();
    Ok(Compiled { families: build(&families.join("|"))?, tight: build(&TIGHT.join("|"))? })
});

/// Returns a family with its abbreviations expanded.
fn expand_abbreviations(family: &str) -> String {
    const DROP: &str = "ignore|ignoring|disregard|disregarding|forget|override|overriding|bypass|bypassing|neglect|discard|pay_no_attention_to";
    const PAST: &str =
        "previous|prior|above|earlier|preceding|former|foregoing|original|initial|existing|current|system|safety";
    const RULES: &str = "instructions?|prompts?|directives?|guidelines?|guardrails?|rules?|restrictions?|constraints?|policy|policies|programming|training|commands?";
    const SHOW: &str = "reveal|show|print|display|output|repeat|tell|give|share|leak|expose|disclose|dump|recite|write|send|provide|summari[sz]e|translate";
    let words = [("DROP", DROP), ("PAST", PAST), ("RULES", RULES), ("SHOW", SHOW)];
    let mut text = family.to_owned();
    for (name, list) in words {
        text = text.replace(name, list);
    }
    let mut out = String::new();
    // In control tokens an underscore is literal.
    let is_mark = text.starts_with('<');
    // Families of words begin at a word boundary; control tokens have their own first character.
    if !text.starts_with(['<', '[', '!', '\\']) {
        out.push_str(r"\b");
    }
    let (mut chars, mut class) = (text.chars().peekable(), false);
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                out.push(c);
                out.extend(chars.next());
                continue;
            }
            '[' => class = true,
            ']' => class = false,
            '_' if !class && !is_mark => {
                let least = if chars.next_if_eq(&'?').is_some() { '0' } else { '1' };
                out.push_str(r"[^0-9A-Za-z_]{");
                out.push(least);
                out.push_str(",6}");
                continue;
            }
            '~' => {
                let most = chars.next().unwrap_or('0');
                out.push_str(r"(?:[\w']+[^0-9A-Za-z_]{1,6}){0,");
                out.push(most);
                out.push('}');
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

/// # Errors
/// Fails if a built-in pattern does not compile.
pub(super) fn ready() -> Result<(), String> {
    COMPILED.as_ref().map(drop).map_err(ToString::to_string)
}

/// Reports every attempt in plain words.
pub(super) fn each(text: &str, found: &mut dyn FnMut(Range<usize>)) {
    let Ok(compiled) = &*COMPILED else { return };
    for attempt in compiled.families.find_iter(text.as_bytes()) {
        if !is_negated(text, attempt.start()) && !is_everyday(text, attempt.range()) {
            found(attempt.range());
        }
    }
}

/// Reports every attempt without spaces.
pub(super) fn each_tight(text: &str, found: &mut dyn FnMut(Range<usize>)) {
    let Ok(compiled) = &*COMPILED else { return };
    compiled.tight.find_iter(text.as_bytes()).for_each(|attempt| found(attempt.range()));
}

/// Printed things with instructions or rules for people.
const PRINTED: &[&str] = &[
    "assembly",
    "booklet",
    "box",
    "brochure",
    "carton",
    "catalog",
    "catalogue",
    "cookbook",
    "edition",
    "handbook",
    "kit",
    "label",
    "leaflet",
    "letter",
    "manual",
    "manuals",
    "packaging",
    "packet",
    "parcel",
    "poster",
    "prescription",
    "recipe",
    "syllabus",
    "textbook",
    "warranty",
];
/// Things with a developer mode of their own.
const DEVICES: &[&str] = &[
    "android",
    "browser",
    "chromebook",
    "console",
    "device",
    "extension",
    "firmware",
    "headset",
    "iphone",
    "ipad",
    "laptop",
    "phone",
    "phones",
    "settings",
    "tablet",
    "television",
    "tv",
    "watch",
];
/// The number of words after a match in which its object is searched.
const MAX_OBJECT_DISTANCE: usize = 6;

/// Returns true if the text after a match says that it is about a printed thing or a device: "ignore the previous
/// instructions in the manual", "developer mode is on in my phone's settings".
fn is_everyday(text: &str, attempt: Range<usize>) -> bool {
    let is_one_of = |words: &[&str], word: &str| words.iter().any(|known| word.eq_ignore_ascii_case(known));
    let (matched, after) = (&text.as_bytes()[attempt.clone()], &text.as_bytes()[attempt.end..]);
    let last = matched.rsplit(|byte| !byte.is_ascii_alphabetic()).next().unwrap_or_default();
    let objects = match last.to_ascii_lowercase().as_slice() {
        b"instruction" | b"instructions" | b"guidelines" | b"rules" | b"directives" => PRINTED,
        b"on" | b"enabled" | b"activated" => DEVICES,
        _ => return false,
    };
    let sentence =
        &after[..after.iter().take(128).position(|byte| b".,;:!?\n\"".contains(byte)).unwrap_or(after.len().min(128))];
    let sentence = String::from_utf8_lossy(sentence);
    let mut words = sentence.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    words.next().is_some_and(|word| is_one_of(&["at", "from", "in", "inside", "of", "on", "under", "with"], word))
        && words.take(MAX_OBJECT_DISTANCE).any(|word| is_one_of(objects, word))
}

/// Returns true if the word before negates the attempt: "do not forget the rules" is harmless.
fn is_negated(text: &str, start: usize) -> bool {
    let before = text.as_bytes()[..start].trim_ascii_end();
    let starts = text.as_bytes()[start..].iter().take(6).map(u8::to_ascii_lowercase);
    let drops =
        matches!(&*starts.collect::<Vec<u8>>(), b"ignore" | b"disreg" | b"forget" | b"overri" | b"bypass" | b"neglec");
    let last = &before[before.iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1)..];
    drops
        && [&b"not"[..], b"don't", b"dont", b"never", b"cannot", b"can't"]
            .iter()
            .any(|no| last.eq_ignore_ascii_case(no))
}
