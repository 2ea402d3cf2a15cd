//! What the search begins with. Most of it is written by our own writers from the golden files, so that every wire
//! has good requests and good answers to begin with, whatever files it has itself.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use adapters_provider::canonical::divide;
use anyhow::Result;
use domain::decision::{Answers, ProviderInput};
use domain::json::Json;

use crate::answers::{self, member};
use crate::targets::Target;
use crate::{codecs, golden, journal};

/// Bodies of every wire that no golden file has.
const BODIES: &[&str] = &[
    r#"{"model":"models/m","input":[{"type":"text","text":"a"},{"type":"image","mime_type":"image/png","data":"eA=="}],"questions":{"q":{"type":"noul","instructions":[{"type":"text","text":"?"}],"criteria":{"true_description":"y","false_description":null}},"s":{"type":"score","instructions":"?","criteria":["a","b"]}},"provider":{"order":["A"],"only":["b"],"ignore":[],"sort":{"by":"latency","partition":"none"},"max_price":{"prompt":"0.5","completion":1},"quantizations":["fp8"],"data_collection":"deny","zdr":true,"preferred_max_latency":{"p90":0.5},"preferred_min_throughput":10},"partial":true}"#,
    r#"{"model":"m","models":["n","o"],"input":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"data:image/png;base64,eA=="}]},{"type":"function_call","name":"f","call_id":"c","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"1"},{"role":"assistant","content":[{"type":"output_text","text":"u"}]}],"questions":[{"type":"predicate","instructions":[{"type":"input_text","text":"?"},{"type":"input_json","data":{"a":1}}]},{"type":"choice","name":"c","instructions":"?","choices":[{"value":true,"description":"y"},{"value":"true"},{"value":false}]},{"type":"score","name":"s","instructions":"?","levels":[{"label":"l","description":"d"},{"label":"h"}]}],"safety_identifier":"u","session_id":"s","trace":{"a":1}}"#,
    r#"{"model":"m","input":{"a":[1,"b"]},"images":["data:image/png;base64,eA=="],"temperature":1.0,"chat_template_kwargs":{},"prompt_format_version":1,"return_prompt_token_ids":false,"questions":[{"id":"y","type":"yes_no","question":"?","yes":"a","no":{"b":1}},{"id":"c","type":"choice","question":["?"],"options":[{"name":"A","description":"d"},{"name":"b"}]},{"id":"s","type":"score","question":"?","levels":["l",["h"]]}]}"#,
    r#"{"model":"m","state":"s","questions":{"b":{"type":"box","instructions":"?"},"one":{"type":"choice","criteria":{"only":null}},"lone":{"type":"score","criteria":["x"]}},"assets":{"a":{"part":"p"},"i":{"data":"eA=="}},"parts":["p"],"user":"u","header":"h","form":"items"}"#,
    r#"{"model":"m","state":"s","questions":"opaque"}"#,
];

/// The inputs that the search of a target begins with.
///
/// # Errors
/// Golden files that cannot be read.
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

/// Writes the seeds into a folder, a file each.
///
/// # Errors
/// What cannot be read or written.
pub fn write(target: &Target, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (number, seed) in of(target)?.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:03}")), seed)?;
    }
    Ok(())
}

/// Requests by every wire: as callers wrote them, and as the outbound wires write them.
fn bodies() -> Result<Vec<Vec<u8>>> {
    let mut bodies: Vec<Vec<u8>> = BODIES.iter().map(|body| body.as_bytes().to_vec()).collect();
    for (_, caller, provider_input) in callers()? {
        bodies.push(caller.into_bytes());
        for codec in codecs::ALL {
            bodies.extend(codec.write("m", &provider_input).ok().map(|payload| payload.to_bytes().to_vec()));
        }
    }
    bodies.sort();
    bodies.dedup();
    Ok(bodies)
}

/// A line of questions and an answer: as providers gave them, and as the inbound wires write them.
fn answers() -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for (given, _, provider_input) in callers()? {
        let Some(asked) = divide(&provider_input).asked else { continue };
        let line = |provider_input: &ProviderInput, body: &[u8]| {
            let mut input = one_line(provider_input.questions.json.text()).into_bytes();
            input.push(b'\n');
            input.extend(body);
            input
        };
        found.extend(given.iter().map(|body| line(&provider_input, body)));
        let Some(typed) = &asked.questions.typed else { continue };
        let made = answers::made(typed);
        let Ok(checked) = Answers::check(&asked.questions, &made, answers::RULES) else { continue };
        for manner in answers::manners() {
            let body = answers::written(&manner, &asked, &checked)?;
            found.push(line(&asked, body.text().as_bytes()));
            let wrapped = format!(r#"{{"success":true,"result":{0},"response":{0}}}"#, body.text());
            found.push(line(&asked, wrapped.as_bytes()));
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// JSON has no line feed within a string, so one between its parts may be a space.
fn one_line(json: &str) -> String {
    json.replace(['\r', '\n'], " ")
}

/// A content type and a form each.
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

/// A byte that says how it is packed, then the packed bytes.
fn packed() -> Vec<Vec<u8>> {
    // `{}` by both.
    const GZIP: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff, 0xab, 0xae, 5, 0, 0x43, 0xbf, 0xa6, 0xa3, 2, 0, 0, 0];
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd, 0x20, 2, 0x11, 0, 0, 0x7b, 0x7d];
    vec![[b"g", GZIP].concat(), [b"z", ZSTD].concat(), b"i{}".to_vec()]
}

type Called = (Vec<Vec<u8>>, String, Arc<ProviderInput>);

/// The golden requests, read, with the answers that were given to them.
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
    fn every_target_holds_on_its_seeds() {
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
    fn the_planted_fault_is_in_no_seed() {
        for seed in of(&PLANTED).unwrap() {
            assert!((PLANTED.check)(&seed).is_ok(), "{}", String::from_utf8_lossy(&seed));
        }
    }
}
