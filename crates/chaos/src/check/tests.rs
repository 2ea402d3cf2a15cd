//! Every check finds a planted violation of its kind, and only its own check does.

use std::collections::BTreeMap;

use super::{MEMORY_KIB, P99, check};
use crate::history::{
    Account, Call, Content, Counter, Excess, Failover, FaultWindow, History, Key, KeyLimit, Operation, Outage, Outcome,
    Record, ResourceUsage, Restart, Revocation, Settings, Snapshot, Unknown,
};

const COST: i64 = 4_200_000;
const BOUND: i64 = 20_000_000;
const LIMIT: i64 = 100_000_000;
/// The keys of [`sound`].
const UNLIMITED: usize = 0;
const LIMITED: usize = 1;
const REVOKED: usize = 2;
const RATED: usize = 3;
const ROOMY: usize = 4;
/// The start of the run.
const STARTED_AT: i64 = 1_790_000_000_000;
/// The limit of [`RATED`]; the share of six processes is two.
const PER_MINUTE: u32 = 12;

fn decide(replica: usize, key: usize, invoked: u64, outcome: Outcome) -> Call {
    let operation = Operation::Decide;
    Call { operation, replica, incarnation: 0, key, invoked, completed: invoked + 10, outcome }
}

fn answer(id: &str) -> Outcome {
    Outcome::Ok { id: id.to_owned(), cost_pico: COST, stage: 0 }
}

fn rejection(status: u16) -> Outcome {
    Outcome::Rejected { status, has_retry_after: true, message: "no".to_owned(), remaining_pico: None }
}

fn record(id: &str) -> Record {
    Record { id: id.to_owned(), outcome: "completed".to_owned(), cost_pico: COST, charged_at: None, evidence: None }
}

fn staged_answer(id: &str) -> Outcome {
    Outcome::Ok { id: id.to_owned(), cost_pico: 2 * COST, stage: 2 }
}

fn staged_record(id: &str) -> Record {
    let questions = ["angry", "refund"].map(str::to_owned).to_vec();
    Record { cost_pico: 2 * COST, evidence: Some(questions), ..record(id) }
}

fn promote(invoked: u64, outcome: Outcome) -> Call {
    // Each call has another idempotency key.
    Call { operation: Operation::Promote { file: 2, number: invoked }, ..decide(0, UNLIMITED, invoked, outcome) }
}

fn key(name: &str, limit: KeyLimit) -> Key {
    Key { name: name.to_owned(), limit, created: 0, revocation: None }
}

fn window(fault: &str, outage: Outage) -> FaultWindow {
    FaultWindow {
        fault: fault.to_owned(),
        replica: Some(1),
        outage,
        began: 10_000,
        in_force: 10_010,
        until: 19_990,
        ended: 20_000,
        recovered: Some(21_000),
        quiet_until: 30_000,
        usage: ResourceUsage { memory_kib: 50_000, processor_permille: 400, p99_ms: 80, delay_ms: 2 },
    }
}

fn account() -> (String, String) {
    ("key".to_owned(), "limited".to_owned())
}

/// Returns a history and a snapshot without a violation.
fn sound() -> (History, Snapshot) {
    let mut keys = vec![
        key("unlimited", KeyLimit::None),
        key("limited", KeyLimit::Tight),
        key("revoked", KeyLimit::None),
        key("rated", KeyLimit::Rate),
        key("roomy", KeyLimit::Roomy),
    ];
    keys[REVOKED].revocation = Some(Revocation { invoked: 4_000, acknowledged: Some(4_100) });
    let promotion = promote(300, Outcome::Ok { id: "tgfile_a".to_owned(), cost_pico: 0, stage: 0 });
    let calls = vec![
        decide(0, UNLIMITED, 100, answer("a")),
        decide(1, LIMITED, 200, answer("b")),
        promotion,
        decide(2, REVOKED, 4_500, answer("c")),
        decide(2, REVOKED, 5_500, rejection(401)),
        decide(1, UNLIMITED, 15_000, rejection(503)),
        decide(0, UNLIMITED, 22_000, answer("d")),
        Call { operation: Operation::DecideInStages, ..decide(0, UNLIMITED, 22_100, staged_answer("s")) },
    ];
    let (scope, subject) = account();
    let history = History {
        started_at: STARTED_AT,
        delay: 0,
        settings: Settings {
            max_stale: 8_000,
            request_timeout: 5_000,
            bound_pico: BOUND,
            call_cost_pico: COST,
            overcharge_pico: 20 * COST,
            requests_per_minute: PER_MINUTE,
            rate_timeout: 50,
        },
        replicas: 3,
        keys,
        accounts: vec![Account { scope, subject, limit_pico: LIMIT, excess_pico: 0, keys: vec![LIMITED] }],
        windows: vec![window("cut-network of replica 1", Outage::Database)],
        restarts: Vec::new(),
        failovers: Vec::new(),
        calls,
    };
    let snapshot = Snapshot {
        records: ["a", "b", "c", "d"].map(record).into_iter().chain([staged_record("s")]).collect(),
        counters: BTreeMap::from([(account(), Counter { spent_pico: COST, allotted_pico: 0 })]),
        provider_calls: BTreeMap::from([(LIMITED, 1)]),
        documents: BTreeMap::from([("tgfile_a".to_owned(), "ready".to_owned())]),
        claims: BTreeMap::from([(300, "tgfile_a".to_owned())]),
        blobs: BTreeMap::from([("tgfile_a".to_owned(), Content::File(2))]),
        ..Snapshot::default()
    };
    (history, snapshot)
}

/// Checks a history and a snapshot with a planted violation; returns the checks and the texts of the found ones.
fn found(plant: impl FnOnce(&mut History, &mut Snapshot)) -> Vec<(&'static str, String)> {
    let (mut history, mut snapshot) = sound();
    plant(&mut history, &mut snapshot);
    check(&history, &snapshot).into_iter().map(|violation| (violation.check, violation.to_string())).collect()
}

/// Fails unless exactly one violation was found, by this check and with this text.
fn assert_found(found: &[(&str, String)], check: &str, text: &str) {
    let [(name, message)] = found else { panic!("not one violation with {text:?}: {found:?}") };
    assert_eq!(*name, check, "{message}");
    assert!(message.contains(text), "{message}");
}

#[test]
fn answer_of_stages_that_is_charged_for_one_is_found() {
    let found = found(|history, snapshot| {
        let is_staged = |call: &&mut Call| call.operation == Operation::DecideInStages;
        let outcome = Outcome::Ok { id: "s".to_owned(), cost_pico: COST, stage: 2 };
        history.calls.iter_mut().find(is_staged).unwrap().outcome = outcome;
        snapshot.records[4].cost_pico = COST;
    });
    assert_found(&found, "stages", "the answer s of 2 stages cost 4200000 picodollars");
}

#[test]
fn evidence_that_is_lost_doubled_or_left_is_found() {
    let with = |questions: &[&str]| Some(questions.iter().map(|question| (*question).to_owned()).collect());
    for questions in [&[][..], &["refund"], &["angry", "refund", "refund"]] {
        assert_found(&found(|_, snapshot| snapshot.records[4].evidence = with(questions)), "stages", "has evidence of");
    }
    let interrupted = Record { outcome: "interrupted".to_owned(), ..staged_record("i") };
    assert_found(&found(|_, snapshot| snapshot.records.push(interrupted)), "stages", "i (interrupted) has evidence of");
    let lone = |_: &mut History, snapshot: &mut Snapshot| snapshot.lone_evidence.push("gen-dec-1 | refund".to_owned());
    assert_found(&found(lone), "stages", "1 rows of evidence have no record");
    let none = |history: &mut History, _: &mut Snapshot| {
        history.calls.retain(|call| call.operation != Operation::DecideInStages);
    };
    assert_found(&found(none), "stages", "nothing is proved");
}

#[test]
fn rejection_of_stages_needs_room_for_one_only() {
    let remaining = |remaining_pico| Outcome::Rejected {
        status: 402,
        has_retry_after: false,
        message: "no".to_owned(),
        remaining_pico: Some(remaining_pico),
    };
    let plant = |operation, remaining_pico| {
        found(move |history, _| {
            history.calls.push(Call { operation, ..decide(1, LIMITED, 9_000, remaining(remaining_pico)) });
        })
    };
    assert_eq!(plant(Operation::DecideInStages, 2 * BOUND - 1), []);
    assert_found(&plant(Operation::DecideInStages, 2 * BOUND), "status", "402 although");
    assert_found(&plant(Operation::Decide, BOUND), "status", "402 although");
}

#[test]
fn sound_history_has_no_violation() {
    assert_eq!(found(|_, _| ()), []);
}

#[test]
fn bank_finds_counter_above_limit() {
    let above = Counter { spent_pico: COST, allotted_pico: LIMIT };
    let planted = found(|_, snapshot| {
        snapshot.counters.insert(account(), above);
    });
    assert_found(&planted, "bank", "are spent and held of a limit of 100000000");
    let planted = found(|_, snapshot| {
        let (scope, subject) = account();
        snapshot.excesses.push(Excess { scope, subject, counter: above, at: STARTED_AT + 1_200 });
    });
    assert_found(&planted, "bank", "was above its limit at 1200 ms");
}

#[test]
fn bank_permits_no_more_than_the_excesses_in_flight() {
    let above = |pico| {
        found(|history, snapshot| {
            history.accounts[0].excess_pico = COST;
            let counter = Counter { spent_pico: LIMIT + COST + pico, allotted_pico: 0 };
            snapshot.counters.insert(account(), counter);
            let (scope, subject) = account();
            snapshot.excesses.push(Excess { scope, subject, counter, at: STARTED_AT + 1_200 });
        })
    };
    assert_eq!(above(0), []);
    assert_eq!(above(1).len(), 2, "{:?}", above(1));
}

#[test]
fn bank_finds_uncounted_answer_and_uncounted_call() {
    let planted = found(|_, snapshot| {
        snapshot.provider_calls.insert(LIMITED, 2);
    });
    assert_found(&planted, "bank", "the provider billed 2 calls, 8400000 picodollars, 4200000 are counted");
    let planted = found(|history, snapshot| {
        history.calls.push(decide(0, LIMITED, 400, answer("e")));
        snapshot.records.push(record("e"));
    });
    assert_found(&planted, "bank", "answers cost 8400000 picodollars, 4200000 are counted");
    assert!(planted[0].1.contains("400..410 ms replica 0.0 key limited Decide"), "no evidence: {planted:?}");
}

#[test]
fn bank_finds_answers_and_calls_above_limit() {
    let planted = found(|history, snapshot| {
        for number in 0..24 {
            let id = format!("more-{number}");
            history.calls.push(decide(0, LIMITED, 400, answer(&id)));
            snapshot.records.push(record(&id));
        }
        snapshot.counters.insert(account(), Counter { spent_pico: LIMIT, allotted_pico: 0 });
    });
    let texts: String = planted.iter().map(|(_, text)| text.as_str()).collect();
    assert!(planted.iter().all(|(check, _)| *check == "bank"), "{planted:?}");
    assert!(texts.contains("answers cost 105000000 picodollars of a limit of 100000000"), "{texts}");
    let planted = found(|_, snapshot| {
        snapshot.provider_calls.insert(LIMITED, 24);
        snapshot.counters.insert(account(), Counter { spent_pico: LIMIT, allotted_pico: 0 });
    });
    let texts: String = planted.iter().map(|(_, text)| text.as_str()).collect();
    assert!(planted.iter().all(|(check, _)| *check == "bank"), "{planted:?}");
    assert!(texts.contains("the provider billed 24 calls, 100800000 picodollars of a limit of 100000000"), "{texts}");
}

#[test]
fn set_finds_missing_repeated_and_wrong_records() {
    let planted = found(|_, snapshot| snapshot.records.retain(|record| record.id != "a"));
    assert_found(&planted, "set", "the answer a has no record");
    let planted = found(|_, snapshot| snapshot.records.push(record("a")));
    assert_found(&planted, "set", "a has 2 records");
    let planted = found(|_, snapshot| snapshot.records[0].outcome = "abandoned".to_owned());
    assert_found(&planted, "set", "has the outcome abandoned");
    let planted = found(|_, snapshot| snapshot.records[0].cost_pico = 1);
    assert_found(&planted, "set", "cost 4200000 picodollars, its record says 1");
    let planted = found(|history, _| history.calls.push(decide(0, UNLIMITED, 400, answer("a"))));
    assert_found(&planted, "set", "a was answered twice");
}

#[test]
fn set_permits_loss_with_the_journal_only() {
    let restart =
        |stopped, lost_journal| Restart { replica: 0, incarnation: 0, stopped, ready: stopped + 9, lost_journal };
    let lose = |restart: Restart| {
        found(|history, snapshot| {
            snapshot.records.retain(|record| record.id != "a");
            history.restarts.push(restart);
        })
    };
    assert_eq!(lose(restart(1_000, true)), []);
    assert_found(&lose(restart(1_000, false)), "set", "the answer a has no record");
    assert_found(&lose(restart(4_000, true)), "set", "the answer a has no record");
    let other = Restart { incarnation: 1, ..restart(1_000, true) };
    assert_found(&lose(other), "set", "the answer a has no record");
}

#[test]
fn counter_finds_failed_audit_and_remaining_allowance() {
    let planted = found(|_, snapshot| snapshot.audit_error = Some("spent differs".to_owned()));
    assert_found(&planted, "counter", "spent differs");
    let planted = found(|_, snapshot| snapshot.allotted_pico = 7);
    assert_found(&planted, "counter", "7 picodollars are allotted");
    let planted = found(|history, snapshot| {
        history.calls.clear();
        snapshot.records.clear();
        snapshot.documents.clear();
        snapshot.blobs.clear();
    });
    assert_found(&planted, "counter", "no call was answered");
}

#[test]
fn documents_finds_lost_changed_and_orphaned_blobs() {
    let planted = found(|_, snapshot| {
        snapshot.blobs.clear();
    });
    assert_found(&planted, "documents", "the document tgfile_a has no blob");
    let planted = found(|_, snapshot| {
        snapshot.blobs.insert("tgfile_a".to_owned(), Content::File(1));
    });
    assert_found(&planted, "documents", "has other bytes than its file");
    let planted = found(|_, snapshot| {
        snapshot.blobs.insert("tgfile_a".to_owned(), Content::Other);
    });
    assert_found(&planted, "documents", "has other bytes than its file");
    let planted = found(|_, snapshot| {
        snapshot.blobs.insert("tgfile_b".to_owned(), Content::File(0));
    });
    assert_found(&planted, "documents", "the blob tgfile_b has no document");
    let planted = found(|_, snapshot| {
        snapshot.documents.clear();
        snapshot.blobs.clear();
    });
    assert_found(&planted, "documents", "the document tgfile_a does not exist");
    let planted = found(|_, snapshot| {
        snapshot.documents.insert("tgfile_b".to_owned(), "pending".to_owned());
    });
    assert_found(&planted, "documents", "the document tgfile_b is pending");
}

#[test]
fn documents_finds_second_document_of_a_key_and_wrong_storage() {
    let with_second = |snapshot: &mut Snapshot| {
        snapshot.documents.insert("tgfile_b".to_owned(), "ready".to_owned());
        snapshot.blobs.insert("tgfile_b".to_owned(), Content::File(2));
    };
    let planted = found(|history, snapshot| {
        // The repeated call got another document.
        let again = Operation::Promote { file: 2, number: 300 };
        let second = Outcome::Ok { id: "tgfile_b".to_owned(), cost_pico: 0, stage: 0 };
        history.calls.push(Call { operation: again, ..promote(400, second) });
        with_second(snapshot);
        snapshot.claims.insert(301, "tgfile_b".to_owned());
    });
    assert_found(&planted, "documents", "the idempotency key 300 leads to tgfile_a, tgfile_b was acknowledged");
    let planted = found(|history, snapshot| {
        history.calls.push(promote(15_000, rejection(503)));
        with_second(snapshot);
    });
    assert_found(&planted, "documents", "the document tgfile_b belongs to no idempotency key");
    let planted = found(|_, snapshot| snapshot.claims = BTreeMap::from([(301, "tgfile_a".to_owned())]));
    assert_found(&planted, "documents", "the idempotency key 300 of the document tgfile_a does not exist");
    let planted = found(|_, snapshot| snapshot.wrong_usage.push("w | 2 | 1 | 1 | 1".to_owned()));
    assert_found(&planted, "documents", "the used storage is not the sum of the documents: w | 2 | 1 | 1 | 1");
}

/// Plants an answer of the revoked key.
fn answer_revoked(replica: usize, at: u64, acknowledged: Option<u64>) -> Vec<(&'static str, String)> {
    found(|history, snapshot| {
        history.calls.retain(|call| call.key != REVOKED);
        history.calls.push(decide(replica, REVOKED, at, answer("late")));
        history.keys[REVOKED].revocation = Some(Revocation { invoked: 4_000, acknowledged });
        snapshot.records.push(record("late"));
    })
}

#[test]
fn revocation_finds_answer_after_one_second() {
    assert_eq!(answer_revoked(0, 5_050, Some(4_100)), []);
    assert_found(&answer_revoked(0, 5_200, Some(4_100)), "revocation", "answered by replica 0 at 5200 ms");
    assert_eq!(answer_revoked(0, 9_000, None), [], "the revocation is not acknowledged");
}

#[test]
fn revocation_permits_stale_replica_until_its_bound() {
    // Replica 1 cannot reach the database from 10,000 to 20,000 ms; keys.max_stale_ms is 8,000.
    assert_eq!(answer_revoked(1, 17_900, Some(10_000)), []);
    assert_found(&answer_revoked(1, 18_100, Some(10_000)), "revocation", "allowed until 18000 ms");
    assert_found(&answer_revoked(0, 17_900, Some(10_000)), "revocation", "allowed until 11000 ms");
    // The replica has reached the database again.
    assert_found(&answer_revoked(1, 24_000, Some(18_000)), "revocation", "allowed until 23000 ms");
}

#[test]
fn status_finds_client_errors_for_valid_keys() {
    let reject = |key, status| found(|history, _| history.calls.push(decide(0, key, 400, rejection(status))));
    assert_found(&reject(UNLIMITED, 401), "status", "401 for a valid key");
    assert_found(&reject(REVOKED, 401), "status", "401 for a valid key");
    assert_found(&reject(UNLIMITED, 402), "status", "402 for a key without a limit");
    assert_found(&reject(LIMITED, 402), "status", "402 without the figures of its limit");
    assert_found(&reject(RATED, 402), "status", "402 for a key without a limit");
    for status in [403, 404, 429, 500, 502, 504, 524, 529] {
        assert_found(&reject(UNLIMITED, status), "status", &format!("{status} is not the status"));
    }
    let planted = found(|history, snapshot| {
        for number in 0..2 {
            history.calls.push(decide(0, RATED, 390 + number, answer(&format!("rated-{number}"))));
            snapshot.records.push(record(&format!("rated-{number}")));
        }
        let Outcome::Rejected { message, .. } = rejection(429) else { panic!("no rejection") };
        let outcome = Outcome::Rejected { status: 429, has_retry_after: false, message, remaining_pico: None };
        history.calls.push(decide(0, RATED, 400, outcome));
    });
    assert_found(&planted, "status", "429 without Retry-After");
}

#[test]
fn status_finds_limit_error_with_room_and_missing_retry_after() {
    let reject = |status, has_retry_after, remaining_pico| {
        let outcome = Outcome::Rejected { status, has_retry_after, message: String::new(), remaining_pico };
        found(|history, _| history.calls.push(decide(0, LIMITED, 400, outcome)))
    };
    assert_eq!(reject(402, true, Some(BOUND - 1)), []);
    assert_found(&reject(402, true, Some(BOUND)), "status", "402 although 20000000 picodollars remain");
    assert_eq!(reject(503, true, None), []);
    assert_found(&reject(503, false, None), "status", "503 without Retry-After");
}

#[test]
fn status_finds_missing_and_undocumented_responses() {
    let lost = |outcome: &Outcome, stopped| {
        found(|history, _| {
            let ready = stopped + 50;
            history.restarts.push(Restart { replica: 0, incarnation: 0, stopped, ready, lost_journal: false });
            history.calls.push(decide(0, UNLIMITED, 400, outcome.clone()));
        })
    };
    for (outcome, text) in
        [(Outcome::Failed, "accepted no connection"), (Outcome::Unknown("reset".to_owned()), "did not respond: reset")]
    {
        assert_eq!(lost(&outcome, 405), [], "the process ended");
        assert_found(&lost(&outcome, 3_000), "status", text);
    }
    assert_found(&lost(&Outcome::Invalid("no id".to_owned()), 405), "status", "no id");
    let planted = found(|_, snapshot| snapshot.panics.push("thread panicked".to_owned()));
    assert_found(&planted, "status", "a replica panicked");
}

#[test]
fn deadline_finds_late_response() {
    for outcome in [answer("e"), rejection(503)] {
        let planted = found(|history, snapshot| {
            history.calls.push(Call { completed: 7_500, ..decide(0, UNLIMITED, 400, outcome.clone()) });
            snapshot.records.push(record("e"));
        });
        assert_found(&planted, "deadline", "a response took 7100 ms");
    }
}

#[test]
fn recovery_finds_unanswered_replica_and_rejections_in_quiet_phase() {
    let planted = found(|history, _| history.windows[0].recovered = None);
    assert_found(&planted, "recovery", "not every replica answered again after cut-network");
    let planted = found(|history, _| history.calls.push(decide(1, UNLIMITED, 25_000, rejection(503))));
    assert_found(&planted, "recovery", "1 calls were rejected in the quiet phase");
    let limited = found(|history, _| history.calls.push(decide(1, LIMITED, 25_000, rejection(503))));
    assert_eq!(limited, [], "an allowance of a lost process is not yet accounted for");
    let roomy = |invoked| {
        found(|history, _| {
            history.windows[0].quiet_until = 40_000;
            history.calls.push(decide(1, ROOMY, invoked, rejection(503)));
        })
    };
    assert_eq!(roomy(29_900), [], "it draws again within ten seconds");
    assert_found(&roomy(30_000), "recovery", "1 calls were rejected in the quiet phase");
}

#[test]
fn resources_finds_each_ceiling() {
    let usages = [
        (ResourceUsage { memory_kib: MEMORY_KIB + 1, ..ResourceUsage::default() }, "KiB of memory"),
        (ResourceUsage { processor_permille: 1_600, ..ResourceUsage::default() }, "processor time"),
        (ResourceUsage { p99_ms: P99 + 100, ..ResourceUsage::default() }, "99th percentile"),
    ];
    for (usage, text) in usages {
        assert_found(&found(|history, _| history.windows[0].usage = usage), "resources", text);
    }
}

/// Replaces the outage of the sound history by one of the object store.
fn cut_blobs(history: &mut History) {
    history.windows = vec![window("cut-object-store", Outage::Blobs)];
    history.calls.retain(|call| call.outcome != rejection(503));
    history.calls.push(promote(15_000, rejection(503)));
}

#[test]
fn documents_finds_effects_of_a_cut_object_store() {
    let plant = |change: &dyn Fn(&mut History, &mut Snapshot)| {
        found(|history, snapshot| {
            cut_blobs(history);
            change(history, snapshot);
        })
    };
    assert_eq!(plant(&|_, _| ()), []);
    let succeeded = plant(&|history, snapshot| {
        history.calls.push(promote(16_000, Outcome::Ok { id: "tgfile_b".to_owned(), cost_pico: 0, stage: 0 }));
        snapshot.documents.insert("tgfile_b".to_owned(), "ready".to_owned());
        snapshot.claims.insert(16_000, "tgfile_b".to_owned());
        snapshot.blobs.insert("tgfile_b".to_owned(), Content::File(2));
    });
    assert_found(&succeeded, "documents", "1 promotions succeeded during cut-object-store");
    let repeated = plant(&|history, snapshot| {
        // The document existed before the cut: only its answer was lost.
        let operation = Operation::Promote { file: 2, number: 9_000 };
        history.calls.push(Call { operation, ..promote(10_000, rejection(503)) });
        let found = Outcome::Ok { id: "tgfile_b".to_owned(), cost_pico: 0, stage: 0 };
        history.calls.push(Call { operation, ..promote(16_000, found) });
        snapshot.documents.insert("tgfile_b".to_owned(), "ready".to_owned());
        snapshot.claims.insert(9_000, "tgfile_b".to_owned());
        snapshot.blobs.insert("tgfile_b".to_owned(), Content::File(2));
    });
    assert_eq!(repeated, []);
    let rejected = plant(&|history, _| history.calls.push(decide(0, UNLIMITED, 15_000, rejection(503))));
    assert_found(&rejected, "documents", "1 Decisions requests were rejected during cut-object-store");
    let untried = plant(&|history, _| history.calls.retain(|call| call.outcome != rejection(503)));
    assert_found(&untried, "documents", "no promotion was tried during cut-object-store");
}

#[test]
fn documents_finds_document_of_a_rejected_promotion() {
    let plant = |invoked| {
        found(|history, snapshot| {
            cut_blobs(history);
            history.calls.push(promote(invoked, rejection(503)));
            snapshot.documents.insert("tgfile_b".to_owned(), "ready".to_owned());
            snapshot.claims.insert(invoked, "tgfile_b".to_owned());
            snapshot.blobs.insert("tgfile_b".to_owned(), Content::File(2));
        })
    };
    assert_found(
        &plant(15_000),
        "documents",
        "1 documents exist without an acknowledgement, 0 calls may have made one",
    );
    assert_eq!(plant(9_995), [], "the promotion had begun before the object store was cut");
}

/// Plants an outage of the server of rate limits with responses of these durations for the key with a rate.
fn cut_rates(forgets: bool, durations: &[u64], change: impl FnOnce(&mut History)) -> Vec<(&'static str, String)> {
    found(|history, snapshot| {
        history.windows = vec![window("kill-valkey", Outage::Rates { forgets })];
        history.calls.retain(|call| call.outcome != rejection(503));
        for (number, duration) in durations.iter().enumerate() {
            let id = format!("rated-{number}");
            let begun = 12_000 + number as u64;
            history.calls.push(Call { completed: begun + duration, ..decide(0, RATED, begun, answer(&id)) });
            snapshot.records.push(record(&id));
        }
        history.calls.push(decide(1, UNLIMITED, 12_000, answer("other")));
        snapshot.records.push(record("other"));
        change(history);
    })
}

#[test]
fn rate_finds_rejected_and_delayed_requests_without_its_server() {
    assert_eq!(cut_rates(true, &[60, 10, 10], |_| ()), []);
    let rejected = cut_rates(true, &[10], |history| history.calls.push(decide(0, RATED, 13_000, rejection(503))));
    assert_found(&rejected, "rate", "1 Decisions requests were rejected during kill-valkey");
    assert_found(&cut_rates(true, &[60, 60, 10], |_| ()), "rate", "half of the 3 requests with a rate took 60 ms");
    assert_found(&cut_rates(true, &[600, 10, 10], |_| ()), "rate", "one of the 3 requests with a rate took 600 ms");
    assert_found(&cut_rates(true, &[], |_| ()), "rate", "no request was answered by a replica's share");
}

#[test]
fn rate_finds_more_answers_than_server_and_shares_admit() {
    let calls = |count| vec![10; count];
    // Twelve by the server and twelve by the shares at once; another twelve if the server lost its counts.
    assert_eq!(cut_rates(false, &calls(24), |_| ()), []);
    assert_found(
        &cut_rates(false, &calls(25), |_| ()),
        "rate",
        "25 requests were answered within 35 ms at 12 a minute",
    );
    assert_eq!(cut_rates(true, &calls(36), |_| ()), []);
    assert_found(&cut_rates(true, &calls(37), |_| ()), "rate", "37 requests were answered within 47 ms");
    // Both refill: 24 a minute.
    let later = |after: u64| {
        cut_rates(false, &calls(25), |history| {
            for call in history.calls.iter_mut().filter(|call| call.outcome == answer("rated-24")) {
                *call = Call { invoked: 12_000 + after, completed: 12_010 + after, ..call.clone() };
            }
        })
    };
    assert_eq!(later(2_500), []);
    assert_found(&later(2_400), "rate", "25 requests were answered within 2411 ms");
}

#[test]
fn rate_finds_rejection_of_an_unused_key() {
    let reject = |used: u64| {
        found(|history, snapshot| {
            for number in 0..used {
                let id = format!("used-{number}");
                history.calls.push(decide(0, RATED, 30_000 + number, answer(&id)));
                snapshot.records.push(record(&id));
            }
            history.calls.push(decide(1, RATED, 40_000, rejection(429)));
        })
    };
    assert_eq!(reject(2), []);
    assert_found(&reject(1), "rate", "429 although the key was used 1 times in the last minute, a share is 2");
    let planted = found(|history, snapshot| {
        history.calls.push(decide(0, RATED, 30_000, answer("used")));
        snapshot.records.push(record("used"));
        history.calls.push(decide(0, RATED, 100_000, rejection(429)));
    });
    assert_found(&planted, "rate", "used 0 times");
}

#[test]
fn failover_permits_what_the_standby_did_not_receive_only() {
    let lose = |lag_began, drawn| {
        found(|history, snapshot| {
            let unknown = BTreeMap::from([(account(), Unknown { drawn_pico: drawn, moved_pico: drawn })]);
            history.failovers.push(Failover { lag_began, promoted: lag_began + 2_000, unknown });
            let above = Counter { spent_pico: LIMIT, allotted_pico: 7 };
            snapshot.counters.insert(account(), above);
            let (scope, subject) = account();
            snapshot.excesses.push(Excess { scope, subject, counter: above, at: STARTED_AT + 1_200 });
            // A document, a revocation and a key of the lag.
            history.calls.push(promote(31_000, Outcome::Ok { id: "tgfile_b".to_owned(), cost_pico: 0, stage: 0 }));
            history.keys[REVOKED].revocation = Some(Revocation { invoked: 30_900, acknowledged: Some(31_000) });
            history.calls.push(decide(2, REVOKED, 45_000, answer("late")));
            history.keys[ROOMY].created = 31_000;
            history.calls.push(decide(2, ROOMY, 45_000, rejection(401)));
            history.calls.retain(|call| (call.key, call.invoked) != (REVOKED, 5_500));
            snapshot.records.push(record("late"));
        })
    };
    assert_eq!(lose(30_000, 7), []);
    let texts: Vec<String> = lose(30_000, 6).into_iter().map(|(_, text)| text).collect();
    assert!(texts.iter().any(|text| text.contains("was above its limit at 1200 ms")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("are spent and held of a limit of")), "{texts:?}");
    assert_eq!(texts.len(), 2, "{texts:?}");
    let texts: Vec<String> = lose(40_000, 7).into_iter().map(|(_, text)| text).collect();
    for expected in ["the document tgfile_b does not exist", "was revoked at 31000 ms", "401 for a valid key"] {
        assert!(texts.iter().any(|text| text.contains(expected)), "{expected}: {texts:?}");
    }
    assert_eq!(texts.len(), 3, "{texts:?}");
}

#[test]
fn failover_permits_what_moved_in_the_lag_until_it_is_folded() {
    let stand_twice = |at, moved_pico| {
        found(|history, snapshot| {
            let unknown = BTreeMap::from([(account(), Unknown { drawn_pico: 0, moved_pico })]);
            history.failovers.push(Failover { lag_began: 30_000, promoted: 32_000, unknown });
            let counter = Counter { spent_pico: LIMIT, allotted_pico: 7 };
            let (scope, subject) = account();
            snapshot.excesses.push(Excess { scope, subject, counter, at: STARTED_AT + at });
        })
    };
    assert_eq!(stand_twice(32_700, 7), []);
    for (at, moved) in [(32_700, 6), (29_999, 7), (42_001, 7)] {
        assert_found(&stand_twice(at, moved), "bank", &format!("was above its limit at {at} ms"));
    }
    let planted = found(|history, snapshot| {
        let unknown = BTreeMap::from([(account(), Unknown { drawn_pico: 0, moved_pico: 7 })]);
        history.failovers.push(Failover { lag_began: 30_000, promoted: 32_000, unknown });
        snapshot.counters.insert(account(), Counter { spent_pico: LIMIT, allotted_pico: 7 });
    });
    assert_found(&planted, "bank", "are spent and held of a limit of 100000000");
}

#[test]
fn failover_permits_no_lost_answer() {
    let planted = found(|history, snapshot| {
        history.failovers.push(Failover { lag_began: 0, promoted: 2_000, unknown: BTreeMap::new() });
        snapshot.records.retain(|record| record.id != "a");
    });
    assert_found(&planted, "set", "the answer a has no record");
}

#[test]
fn clock_finds_charge_at_another_time_than_its_request() {
    let charge = |at: i64| found(|_, snapshot| snapshot.records[0].charged_at = Some(STARTED_AT + at));
    for at in [-1_900, 100, 2_110] {
        assert_eq!(charge(at), [], "{at}");
    }
    assert_found(&charge(-1_901), "clock", "the answer a was charged at -1901 ms, its request ran from 100 to 110 ms");
    assert_found(&charge(2_111), "clock", "the answer a was charged at 2111 ms");
}

#[test]
fn checks_of_times_add_the_delay_of_the_machine() {
    let late = |delay| {
        found(|history, _| {
            history.delay = delay;
            history.calls.push(Call { completed: 7_500, ..decide(0, UNLIMITED, 400, rejection(503)) });
        })
    };
    assert_found(&late(99), "deadline", "a response took 7100 ms");
    assert_eq!(late(100), []);
    let slow = |delay| {
        found(|history, _| {
            history.delay = delay;
            history.windows[0].usage.p99_ms = P99 + 100;
        })
    };
    assert_found(&slow(99), "resources", "99th percentile");
    assert_eq!(slow(100), []);
}
