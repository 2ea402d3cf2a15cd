//! The initial inputs. Most are written by our own writers from the golden files, so that every wire has valid requests
//! and answers.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use domain::json::Json;
use domain::question::{Answers, ProviderInput};
use wires::canonical::divide;

use crate::answers::{self, member};
use crate::targets::Target;
use crate::{codecs, golden, journal};

/// Bodies that no golden file contains.
const BODIES: &[&str] = &[
    r#"{"model":"models/m","input":[{"type":"text","text":"a"},{"type":"image","mime_type":"image/png","data":"eA=="}],"questions":{"q":{"type":"noul","instructions":[{"type":"text","text":"?"}],"criteria":{"true_description":"y","false_description":null}},"s":{"type":"score","instructions":"?","criteria":["a","b"]}},"provider":{"order":["A"],"only":["b"],"ignore":[],"sort":{"by":"latency","partition":"none"},"max_price":{"prompt":"0.5","completion":1},"quantizations":["fp8"],"data_collection":"deny","zdr":true,"preferred_max_latency":{"p90":0.5},"preferred_min_throughput":10},"partial":true}"#,
    r#"{"model":"m","models":["n","o"],"input":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"data:image/png;base64,eA=="}]},{"type":"function_call","name":"f","call_id":"c","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"1"},{"role":"assistant","content":[{"type":"output_text","text":"u"}]}],"questions":[{"type":"predicate","instructions":[{"type":"input_text","text":"?"},{"type":"input_json","data":{"a":1}}]},{"type":"choice","name":"c","instructions":"?","choices":[{"value":true,"description":"y"},{"value":"true"},{"value":false}]},{"type":"score","name":"s","instructions":"?","levels":[{"label":"l","description":"d"},{"label":"h"}]}],"safety_identifier":"u","session_id":"s","trace":{"a":1}}"#,
    r#"{"model":"m","input":{"a":[1,"b"]},"images":["data:image/png;base64,eA=="],"temperature":1.0,"chat_template_kwargs":{},"prompt_format_version":1,"return_prompt_token_ids":false,"questions":[{"id":"y","type":"yes_no","question":"?","yes":"a","no":{"b":1}},{"id":"c","type":"choice","question":["?"],"options":[{"name":"A","description":"d"},{"name":"b"}]},{"id":"s","type":"score","question":"?","levels":["l",["h"]]}]}"#,
    r#"{"model":"m","state":"s","questions":{"b":{"type":"box","instructions":"?"},"one":{"type":"choice","criteria":{"only":null}},"lone":{"type":"score","criteria":["x"]}},"assets":{"a":{"part":"p"},"i":{"data":"eA=="}},"parts":["p"],"user":"u","header":"h","form":"items"}"#,
    r#"{"model":"m","state":"s","questions":"opaque"}"#,
];

/// Returns the initial inputs of a target.
///
/// # Errors
/// Unreadable golden files.
pub fn of(target: &Target) -> Result<Vec<Vec<u8>>> {
    match target.name.split_once('-') {
        Some(("request", "multipart")) => Ok(forms()),
        Some(("request", "packed")) => Ok(packed()),
        Some(("answer", _)) => answers(),
        Some(("journal", "entry")) => journal::entries(),
        #[cfg(fuzzing)]
        Some(("journal", "segments")) => Ok(crate::segments::seeds()),
        _ => bodies(),
    }
}

/// Writes the seeds into a folder, one per file.
///
/// # Errors
/// Unreadable golden files, or an unwritable folder.
pub fn write(target: &Target, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (number, seed) in of(target)?.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:03}")), seed)?;
    }
    Ok(())
}

/// Returns requests of every wire: as clients wrote them, and as the outbound wires write them.
fn bodies() -> Result<Vec<Vec<u8>>> {
    let mut bodies: Vec<Vec<u8>> = BODIES.iter().map(|body| body.as_bytes().to_vec()).collect();
    for (_, caller, provider_input) in callers()? {
        bodies.push(caller.into_bytes());
        for codec in codecs::all() {
            bodies.extend(codec.write("m", &provider_input).ok().map(|payload| payload.to_bytes()));
        }
    }
    bodies.sort();
    bodies.dedup();
    Ok(bodies)
}

/// Returns lines of questions followed by an answer: from providers, and from the inbound wires.
fn answers() -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for (given, _, provider_input) in callers()? {
        let Some(outbound) = divide(&provider_input).remaining else { continue };
        let line = |provider_input: &ProviderInput, body: &[u8]| {
            let mut input = join_lines(provider_input.questions.json.text()).into_bytes();
            input.push(b'\n');
            input.extend(body);
            input
        };
        found.extend(given.iter().map(|body| line(&provider_input, body)));
        let Some(typed) = &outbound.questions.typed else { continue };
        let made = answers::sample_answers(typed);
        let Ok(checked) = Answers::check(&outbound.questions, &made, answers::RULES) else { continue };
        for response_format in answers::response_formats() {
            let body = answers::write_body(&response_format, &outbound, &checked)?;
            found.push(line(&outbound, body.text().as_bytes()));
            let wrapped = format!(r#"{{"success":true,"result":{0},"response":{0}}}"#, body.text());
            found.push(line(&outbound, wrapped.as_bytes()));
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Replaces line feeds by spaces: valid JSON strings contain none.
fn join_lines(json: &str) -> String {
    json.replace(['\r', '\n'], " ")
}

/// Returns inputs of a content type and a form.
fn forms() -> Vec<Vec<u8>> {
    let form = |body: &str| format!("multipart/form-data; boundary=B\n{body}").into_bytes();
    let request =
        r#"{"model":"m","state":"s","questions":{"q":{"type":"noul","instructions":"?"}},"assets":{"a":{"part":"p"}}}"#;
    let head = "Content-Disposition: form-data; name=";
    vec![
        form(&format!(
            "--B\r\n{head}\"request\"\r\nContent-Type: application/json\r\n\r\n{request}\r\n--B\r\n{head}\"p\"; \
             filename=\"p\"\r\nContent-Type: image/png\r\n\r\nbytes\r\n--B--\r\n"
        )),
        form(&format!("preamble\r\n--B\r\n{head}p\r\n\r\n\r\n--B  \r\n{head}request\r\n\r\n{request}\r\n--B--end")),
        form("--B--"),
    ]
}

/// Returns inputs of an encoding byte and compressed bytes.
fn packed() -> Vec<Vec<u8>> {
    // `{}`, compressed both ways.
    const GZIP: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff, 0xab, 0xae, 5, 0, 0x43, 0xbf, 0xa6, 0xa3, 2, 0, 0, 0];
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd, 0x20, 2, 0x11, 0, 0, 0x7b, 0x7d];
    vec![[b"g", GZIP].concat(), [b"z", ZSTD].concat(), b"i{}".to_vec()]
}

type Called = (Vec<Vec<u8>>, String, Arc<ProviderInput>);

/// Reads the golden requests with their answers.
fn callers() -> Result<Vec<Called>> {
    let mut callers = Vec::new();
    for golden::Case { caller, answers } in golden::cases()? {
        let Ok(object) = Json::parse(&caller) else { continue };
        let get = |name: &str| member(&object, name);
        let draft = domain::decision::DecisionDraft {
            model: get("model"),
            questions: get("questions"),
            state: get("state"),
            assets: get("assets"),
            images: get("images"),
            ..Default::default()
        };
        if let Ok(request) = draft.check() {
            callers.push((answers, caller, request.provider_input));
        }
    }
    Ok(callers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::{PLANTED, TARGETS};

    #[test]
    fn every_target_passes_on_its_seeds() {
        for target in TARGETS {
            let seeds = of(target).unwrap();
            assert!(seeds.len() > 2, "{} has {} seeds", target.name, seeds.len());
            for seed in seeds {
                let held = (target.check)(&seed);
                assert!(held.is_ok(), "{}: {:?}\n{}", target.name, held, String::from_utf8_lossy(&seed));
            }
        }
    }

    #[test]
    fn planted_fault_is_not_in_seeds() {
        for seed in of(&PLANTED).unwrap() {
            assert!((PLANTED.check)(&seed).is_ok(), "{}", String::from_utf8_lossy(&seed));
        }
    }
}
