//! Every form of token counts, on every wire.

use crate::support;
use domain::pricing::ReportedUsage;
use wires::chat::provider_response as response;
use wires::formats;
use wires::provider::WireCodec;
use wires::system_one::SystemOne;

const REQUEST: &str = r#"{"model":"m","state":"s","questions":{"a":{"type":"noul","instructions":"?"}}}"#;

/// Returns the usage that a wire reads, with the names of its token counts.
type Wire = (fn(&str) -> Option<ReportedUsage>, [&'static str; 2]);

fn read_by(codec: &impl WireCodec, answers: &str, usage: &str) -> Option<ReportedUsage> {
    let asked = support::provider_input(REQUEST);
    let body = format!(r#"{{"answers":{answers},"usage":{usage}}}"#);
    codec.read(&asked.questions, body.as_bytes()).unwrap().usage
}

fn system_one(usage: &str) -> Option<ReportedUsage> {
    read_by(&SystemOne::default(), r#"{"a":{"type":"noul","noul":0.5}}"#, usage)
}

fn openai(usage: &str) -> Option<ReportedUsage> {
    read_by(&formats::OPENAI, r#"[{"type":"predicate","probability":0.5}]"#, usage)
}

fn gemini(usage: &str) -> Option<ReportedUsage> {
    read_by(&formats::GEMINI, r#"{"a":{"type":"noul","noul":0.5,"confidence":0.5}}"#, usage)
}

fn sglang(usage: &str) -> Option<ReportedUsage> {
    read_by(&formats::SGLANG, r#"{"a":{"type":"yes_no","probabilities":{"yes":0.5,"no":0.5}}}"#, usage)
}

fn chat(usage: &str) -> Option<ReportedUsage> {
    let body = format!(r#"{{"choices":[{{"message":{{"content":"A"}}}}],"usage":{usage}}}"#);
    response::read(body.as_bytes()).unwrap().usage
}

const CHAT: [&str; 2] = ["prompt_tokens", "completion_tokens"];
const RESPONSES: [&str; 2] = ["input_tokens", "output_tokens"];
const GEMINI: [&str; 2] = ["total_input_tokens", "total_output_tokens"];
const WIRES: [Wire; 5] = [(system_one, RESPONSES), (openai, RESPONSES), (gemini, GEMINI), (sglang, CHAT), (chat, CHAT)];

#[test]
fn every_wire_reads_every_form_of_token_counts() {
    let reported = Some(ReportedUsage { input_tokens: 45, output_tokens: 2 });
    for (place, (read, own)) in WIRES.into_iter().enumerate() {
        for names in [CHAT, RESPONSES, GEMINI] {
            for counts in [["45", "2"], [r#""45""#, r#""2""#], ["45.0", "2e0"], [r#"" 4.5e1 ""#, "2"]] {
                let usage = format!(r#"{{"{}":{},"{}":{}}}"#, names[0], counts[0], names[1], counts[1]);
                assert_eq!(read(&usage), reported, "wire {place}: {usage}");
            }
            for unreported in ["0", "0.0", r#""0""#, "null"] {
                let usage = format!(r#"{{"{}":{unreported},"{}":2}}"#, names[0], names[1]);
                assert_eq!(read(&usage), None, "wire {place}: {usage}");
            }
            let input_alone = format!(r#"{{"{}":"45"}}"#, names[0]);
            assert_eq!(read(&input_alone), Some(ReportedUsage { input_tokens: 45, output_tokens: 0 }));
        }
        for names in [CHAT, RESPONSES, GEMINI].into_iter().filter(|names| *names != own) {
            let both = format!(r#"{{"{}":45,"{}":2,"{}":7,"{}":1}}"#, own[0], own[1], names[0], names[1]);
            assert_eq!(read(&both), reported, "the own names come first");
            let empty = format!(r#"{{"{}":0,"{}":0,"{}":45,"{}":2}}"#, own[0], own[1], names[0], names[1]);
            assert_eq!(read(&empty), reported, "a count of zero is no report: {empty}");
            let odd = format!(r#"{{"{}":"some"}}"#, names[0]);
            assert_eq!(read(&odd), None, "names of another wire do not fail an answer");
        }
        for empty in ["null", "{}", r#"{"cost":0.1}"#] {
            assert_eq!(read(empty), None, "wire {place}: {empty}");
        }
    }
}
