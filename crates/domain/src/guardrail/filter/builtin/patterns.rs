//! The patterns of the built-in filters: of secrets, and of attempts at prompt injection.

use std::sync::LazyLock;

use regex_automata::meta::{self, Regex};
use regex_automata::util::syntax;

/// The patterns of the built-in filters.
pub(super) struct Patterns {
    pub(super) tokens: Regex,
    pub(super) assignment: Regex,
    pub(super) credentials: Regex,
    pub(super) attempts: Regex,
    pub(super) attempts_without_spaces: Regex,
    /// All but `attempts_without_spaces`.
    pub(super) any: Regex,
}

pub(super) static PATTERNS: LazyLock<Result<Patterns, String>> = LazyLock::new(|| {
    let (tokens, attempts) = (TOKENS.join("|"), attempts());
    Ok(Patterns {
        tokens: compile(&[&tokens])?,
        assignment: compile(&[ASSIGNMENT])?,
        credentials: compile(&[CREDENTIALS])?,
        attempts: compile(&[&attempts])?,
        attempts_without_spaces: compile(&[&attempts_without_spaces()])?,
        any: compile(&[&tokens, ASSIGNMENT, CREDENTIALS, &attempts])?,
    })
});

/// Compiles patterns of bytes. They begin with one of many words, and the search for them would take longer than the
/// automaton.
fn compile(patterns: &[&str]) -> Result<Regex, String> {
    let syntax = syntax::Config::new().unicode(false).utf8(false);
    let config = meta::Config::new()
        .auto_prefilter(false)
        .nfa_size_limit(Some(32 << 20))
        .hybrid_cache_capacity(16 << 20)
        .utf8_empty(false);
    meta::Builder::new().syntax(syntax).configure(config).build_many(patterns).map_err(|fault| fault.to_string())
}

/// Tokens that are recognisable by themselves. Their lengths have no upper bound: counted repetitions are slower to
/// match, and an unbounded match reads its bytes only once.
pub(super) const TOKENS: &[&str] = &[
    // Tollgate.
    r"\bsk-tg-v1-[0-9a-f]{16,}",
    // Model providers.
    r"\bsk-(?:proj-|svcacct-|admin-|live-|or-v1-|ant-[a-z]{2,8}[0-9]{0,3}-)?[0-9A-Za-z_-]{20,}",
    r"\bgsk_[0-9A-Za-z]{32,}",
    r"\bhf_[0-9A-Za-z]{30,}",
    r"\br8_[0-9A-Za-z]{32,}",
    r"\bpplx-[0-9A-Za-z]{32,}",
    // Clouds.
    r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b",
    r"\bAIza[0-9A-Za-z_-]{35}",
    r"\bya29\.[0-9A-Za-z_-]{20,}",
    r"\bGOCSPX-[0-9A-Za-z_-]{20,}",
    r"\bdo[oprt]_v1_[0-9a-f]{64}",
    r"\bAccountKey=[0-9A-Za-z+/]{40,}={0,2}",
    // Code hosting and package registries.
    r"\bgh[pousr]_[0-9A-Za-z]{36,}",
    r"\bgithub_pat_[0-9A-Za-z_]{22,}",
    r"\bglpat-[0-9A-Za-z_-]{20,}",
    r"\bnpm_[0-9A-Za-z]{36}\b",
    r"\bpypi-[0-9A-Za-z_-]{50,}",
    r"\bdckr_pat_[0-9A-Za-z_-]{20,}",
    r"\bATATT3[0-9A-Za-z_=-]{40,}",
    // Messaging and payment.
    r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}",
    r"\bxapp-[0-9]-[0-9A-Za-z-]{20,}",
    r"\bhooks\.slack\.com/services/[0-9A-Za-z/]{20,}",
    r"\b(?:sk|rk|pk)_(?:live|test)_[0-9A-Za-z]{16,}",
    r"\bwhsec_[0-9A-Za-z+/=]{24,}",
    r"\bSG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}",
    r"\bkey-[0-9a-f]{32}\b",
    r"\bAC[0-9a-f]{32}\b",
    r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b",
    // Signed tokens, and header values.
    r"\beyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]*",
    r"(?i:\b(?:bearer|basic)[ \t]+[0-9a-z._~+/-]{16,}={0,2})",
    // A private key up to its end marker, or to the end of the text.
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-[^-])*(?:-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)?",
];

/// A value labelled as a secret. The value is one of the last three groups.
pub(super) const ASSIGNMENT: &str = r#"(?xi)
    (?P<name> password | passwd | passphrase | pwd | api[\ _-]?key | secret[\ _-]?key | access[\ _-]?key
      | private[\ _-]?key | client[\ _-]?secret | auth[\ _-]?token | access[\ _-]?token | refresh[\ _-]?token
      | secret | token ) \b
    ["'`\])]?[\ \t]{0,4} (?P<sign> => | := | = | : | \bis\b ) [\ \t]{0,4}
    (?: " (?P<double> [^"\r\n]+ ) " | ' (?P<single> [^'\r\n]+ ) '
      | (?P<bare> [^\s"'`,;]+ ) )"#;

/// The password in a URL.
pub(super) const CREDENTIALS: &str = r#"\b[A-Za-z][0-9A-Za-z+.-]*://(?P<value>[^\s/?\#:@"'<>]*:[^\s/?\#@"'<>]+)@"#;

/// Attempts at prompt injection. Each family is a sentence with gaps of few words, so that matching stays cheap. In
/// these, `_` is the separator of two words, and `~N` is up to N arbitrary words with their separators.
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

/// Returns all families as one pattern.
fn attempts() -> String {
    let families: Vec<String> = FAMILIES.iter().map(|family| expand_abbreviations(family)).collect();
    format!("(?i){}", families.join("|"))
}

/// Returns the phrases without spaces as one pattern.
fn attempts_without_spaces() -> String {
    format!("(?i){}", TIGHT.join("|"))
}

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
