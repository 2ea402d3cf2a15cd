//! Test cases as data, one file per filter. `+` begins a state with a match, and `-` a state without one. The text
//! after `=>` is the redacted state.

use super::*;
use rstest::rstest;

#[rstest]
#[case(BuiltinFilter::Email, include_str!("corpus/email.txt"))]
#[case(BuiltinFilter::Phone, include_str!("corpus/phone.txt"))]
#[case(BuiltinFilter::Ssn, include_str!("corpus/ssn.txt"))]
#[case(BuiltinFilter::CreditCard, include_str!("corpus/credit-card.txt"))]
#[case(BuiltinFilter::IpAddress, include_str!("corpus/ip-address.txt"))]
#[case(BuiltinFilter::Secrets, include_str!("corpus/secrets.txt"))]
#[case(BuiltinFilter::RegexPromptInjection, include_str!("corpus/prompt-injection.txt"))]
fn builtins_match_corpus(#[case] slug: BuiltinFilter, #[case] corpus: &str) {
    let [flag, redact, block] = FilterAction::ALL.map(|action| filters(&[(slug, action)], &[]));
    let (mut hits, mut misses, mut faults) = (0, 0, Vec::new());
    for (number, line) in corpus.lines().enumerate() {
        let Some((kind, case)) = line.split_at_checked(2).filter(|(kind, _)| matches!(*kind, "+ " | "- ")) else {
            assert!(line.is_empty() || line.starts_with('#'), "line {}", number + 1);
            continue;
        };
        let (state, expected) = case.split_once(" => ").map_or((case, None), |(state, sent)| (state, Some(sent)));
        let is_hit = kind == "+ ";
        let mut fault = |what: &str| faults.push(format!("line {}: {what}: {case}", number + 1));
        match sent(&block, state) {
            Err(blocked) if !is_hit => fault(&format!("a near miss is blocked at {}", blocked.path)),
            Err(blocked) if blocked.label != slug.label() => fault("another label"),
            Ok(_) if is_hit => fault("nothing is found"),
            _ => {}
        }
        match sent(&redact, state) {
            Err(_) => fault("it cannot be redacted"),
            Ok(sent) => {
                if (sent == state) == is_hit {
                    fault("what is redacted is not what is blocked");
                }
                if expected.is_some_and(|expected| expected != sent) {
                    fault(&format!("redacted to {sent}"));
                }
                if Json::parse(&sent).is_err() {
                    fault("redacted to what is no JSON");
                }
            }
        }
        let json = Json::parse(state).unwrap();
        let asked = ProviderInput::new(provider_input("\"s\"", ASKED).questions.clone(), Some(json));
        let flagged = flag.apply(&Arc::new(asked)).unwrap();
        if flagged.provider_input.state.as_ref().unwrap().text() != state || flagged.findings.is_empty() == is_hit {
            fault("what is flagged is not what is blocked, or is changed");
        }
        if is_hit { hits += 1 } else { misses += 1 }
    }
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), hits + misses, faults.join("\n"));
    assert!(hits >= 10 && misses >= 10, "{hits} hits, {misses} near misses");
}
