//! Acknowledged promotions are readable, and no blob is left without its document.

use crate::history::{Content, History, Operation, Outcome, Snapshot, Violation};

const CHECK: &str = "documents";

/// Checks the documents and their blobs after the sweep.
pub fn check(history: &History, snapshot: &Snapshot) -> Vec<Violation> {
    let mut found = Vec::new();
    for call in &history.calls {
        let (Operation::Promote { file }, Outcome::Ok { id, .. }) = (call.operation, &call.outcome) else { continue };
        let state = snapshot.documents.get(id).map(String::as_str);
        let text = match (state, snapshot.blobs.get(id)) {
            (Some("ready"), Some(Content::File(stored))) if *stored == file => continue,
            (Some("ready"), Some(_)) => format!("the document {id} has other bytes than its file"),
            (Some("ready"), None) => format!("the document {id} has no blob"),
            (Some(state), _) => format!("the document {id} is {state}"),
            (None, _) => format!("the document {id} does not exist"),
        };
        found.push(Violation::of_calls(CHECK, text, history, [call]));
    }
    let orphans = snapshot.blobs.keys().filter(|id| !snapshot.documents.contains_key(*id));
    found.extend(orphans.map(|id| violation(format!("the blob {id} has no document after the sweep"))));
    let pending = snapshot.documents.iter().filter(|(_, state)| *state != "ready");
    found.extend(pending.map(|(id, state)| violation(format!("the document {id} is {state} after the sweep"))));
    found
}

fn violation(text: String) -> Violation {
    Violation { check: CHECK, text, evidence: Vec::new() }
}
