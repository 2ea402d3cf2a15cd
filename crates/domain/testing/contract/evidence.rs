//! Cases of [`crate::evidence::EvidenceRepository`].

use std::time::Duration;

use super::super::{SequentialIds, join_all};
use super::Stores;
use super::samples::{add_key, add_workspace, at, fold_charge, inference_key};
use super::usage::record;
use crate::budget::UsageCharge;
use crate::error::StoreError;
use crate::evidence::{
    Evidence, EvidenceFilter, Label, LabelMode, LabelOutcome, LabelRepetition, LabelSource, NewLabel, PresetRequest,
};
use crate::ids::{DecisionId, PresetId};
use crate::json::Json;
use crate::repetition::{Repetition, RepetitionScope, StoredResponse};
use crate::usage::{AnswerEvidence, AnswerMethod, PresetReference, UsageOutcome, UsageRecord};

suite! {
    /// Every case of the port's contract.
    evidence_repository_cases as evidence_repository_contract over Stores {
        fold_adds_evidence_once,
        answers_of_different_groups_are_kept_apart,
        concurrent_folds_of_a_new_group_keep_all_evidence,
        evidence_after_retention_is_complete,
        list_is_newest_first_and_filtered,
        presets_of_requests_are_found_without_answers,
        labels_need_the_evidence_of_their_answer,
        labels_have_versions,
        labels_are_added_all_or_none,
        concurrent_labels_are_all_kept,
        labels_of_a_repeated_request_change_nothing,
        prune_removes_old_rows_with_their_labels,
    }
}

fn id(number: u64) -> DecisionId {
    DecisionId::from_uuid(SequentialIds::uuid(number))
}

fn preset(number: u64) -> PresetReference {
    PresetReference { id: PresetId::from_uuid(SequentialIds::uuid(700 + number)), version: 3 }
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn answer(position: u32) -> AnswerEvidence {
    AnswerEvidence {
        position,
        question: format!("quéstion {position} 'quoted'"),
        model: "acme/judge:free".parse().unwrap(),
        provider: "acme".into(),
        wire: "system-one".into(),
        method: AnswerMethod::Stated,
        decision: json("\"b \\u0000\""),
        probabilities: Some(json(r#"{"b \u0000":0.30000000000000004,"ü":0.25}"#)),
    }
}

/// Returns the charge of a request with two answers, the second without a distribution.
fn charge(number: u64, of: u64) -> UsageCharge {
    let bare = AnswerEvidence {
        method: AnswerMethod::LabelProbabilities,
        model: "acme/other".parse().unwrap(),
        decision: json("true"),
        probabilities: None,
        ..answer(7)
    };
    let record = UsageRecord { preset: Some(preset(of)), ..record(number, 1) };
    UsageCharge { evidence: vec![answer(0), bare], ..UsageCharge::new(record) }
}

/// Returns the stored rows of a charge.
fn rows(charge: &UsageCharge) -> Vec<Evidence> {
    let record = &charge.record;
    let row = |answer: &AnswerEvidence| Evidence {
        id: record.id.clone(),
        workspace_id: record.workspace_id,
        preset: record.preset.unwrap(),
        answer: answer.clone(),
        created_at: record.created_at,
        label: None,
        cost: Some(record.cost),
        latency: Some(record.latency),
    };
    charge.evidence.iter().map(row).collect()
}

/// Returns the stored rows of requests, in the order of ids and positions.
async fn stored(stores: &Stores, ids: &[DecisionId]) -> Vec<Evidence> {
    let mut rows = Vec::new();
    for number in [0, 1] {
        let filter = EvidenceFilter::of_preset(preset(number).id);
        rows.extend(stores.evidence.list(&filter, 999).await.unwrap());
    }
    rows.retain(|row| ids.contains(&row.id));
    rows.sort_by_key(|row| (row.id.clone(), row.answer.position));
    rows
}

/// Returns all versions of the label of an answer, oldest first.
async fn all_versions(stores: &Stores, number: u64, position: u32) -> Vec<Label> {
    let mut versions = stores.evidence.versions(&id(number), position, u32::MAX, 999).await.unwrap();
    versions.reverse();
    versions
}

async fn insert_charges(stores: &Stores, numbers: impl IntoIterator<Item = u64>) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    for number in numbers {
        fold_charge(stores, charge(number, number % 2)).await.unwrap();
    }
}

fn new_label(number: u64, value: &str) -> NewLabel {
    NewLabel { id: id(number), position: 0, value: json(value), source: LabelSource::Human }
}

async fn fold_adds_evidence_once(stores: &Stores) {
    insert_charges(stores, [1, 2, 2]).await;
    assert_eq!(stored(stores, &[id(3), id(1)]).await, rows(&charge(1, 1)), "field by field");
    let expected = [rows(&charge(1, 1)), rows(&charge(2, 0))].concat();
    assert_eq!(stored(stores, &[id(2), id(1)]).await, expected);
    // A real record that replaces an abandoned one brings its evidence.
    let abandoned = UsageRecord { outcome: UsageOutcome::Abandoned, preset: None, ..record(4, 1) };
    fold_charge(stores, UsageCharge::new(abandoned)).await.unwrap();
    fold_charge(stores, charge(4, 0)).await.unwrap();
    assert_eq!(stored(stores, &[id(4)]).await, rows(&charge(4, 0)));
}

async fn answers_of_different_groups_are_kept_apart(stores: &Stores) {
    let base = || AnswerEvidence { question: "ab".to_owned(), provider: "cd".into(), wire: "ef".into(), ..answer(0) };
    let answers = [
        base(),
        AnswerEvidence { question: "other".to_owned(), ..base() },
        AnswerEvidence { model: "acme/other".parse().unwrap(), ..base() },
        AnswerEvidence { provider: "other".into(), ..base() },
        AnswerEvidence { wire: "other".into(), ..base() },
        AnswerEvidence { method: AnswerMethod::Native, ..base() },
        // The same letters in other members.
        AnswerEvidence { question: "abc".to_owned(), provider: "d".into(), ..base() },
        AnswerEvidence { provider: "cde".into(), wire: "f".into(), ..base() },
    ];
    let first = preset(0);
    let presets = [first, PresetReference { version: 4, ..first }, preset(1)];
    let mut charges = Vec::new();
    for (number, (workspace, preset)) in (1..).zip([1, 2].into_iter().flat_map(|of| presets.map(|preset| (of, preset))))
    {
        let record = UsageRecord { preset: Some(preset), ..record(number, workspace) };
        let evidence = (0..).zip(&answers).map(|(position, answer)| AnswerEvidence { position, ..answer.clone() });
        charges.push(UsageCharge { evidence: evidence.collect(), ..UsageCharge::new(record) });
    }
    for number in [1, 2] {
        add_workspace(stores, number).await;
        add_key(stores, &inference_key(number, number)).await;
    }
    for charge in &charges {
        fold_charge(stores, charge.clone()).await.unwrap();
    }
    let ids: Vec<DecisionId> = charges.iter().map(|charge| charge.record.id.clone()).collect();
    assert_eq!(stored(stores, &ids).await, charges.iter().flat_map(rows).collect::<Vec<_>>());
}

async fn concurrent_folds_of_a_new_group_keep_all_evidence(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    let charges: Vec<UsageCharge> = (1..=8).map(|number| charge(number, 0)).collect();
    for folded in join_all(charges.iter().map(|charge| fold_charge(stores, charge.clone()))).await {
        folded.unwrap();
    }
    let ids: Vec<DecisionId> = charges.iter().map(|charge| charge.record.id.clone()).collect();
    assert_eq!(stored(stores, &ids).await, charges.iter().flat_map(rows).collect::<Vec<_>>());
}

async fn evidence_after_retention_is_complete(stores: &Stores) {
    insert_charges(stores, [1]).await;
    for removed in [2, 0, 0] {
        assert_eq!(stores.evidence.prune(at(60), 9).await.unwrap(), removed);
    }
    fold_charge(stores, charge(3, 1)).await.unwrap();
    assert_eq!(stores.evidence.prune(at(1), 9).await.unwrap(), 0);
    assert_eq!(stored(stores, &[id(1), id(3)]).await, rows(&charge(3, 1)));
}

async fn list_is_newest_first_and_filtered(stores: &Stores) {
    insert_charges(stores, 1..=5).await;
    assert_eq!(
        stores.evidence.label(&[new_label(3, "true")], LabelMode::Each, "key:k", None).await.unwrap(),
        [LabelOutcome::Changed]
    );
    let all = EvidenceFilter::of_preset(preset(1).id);
    let list = async |filter: &EvidenceFilter, limit| {
        let found = stores.evidence.list(filter, limit).await.unwrap();
        found.into_iter().map(|row| (row.id, row.answer.position)).collect::<Vec<_>>()
    };
    let both = |number| [(id(number), 7), (id(number), 0)];
    assert_eq!(list(&all, 9).await, [both(5), both(3), both(1)].concat());
    assert_eq!(list(&all, 3).await, [(id(5), 7), (id(5), 0), (id(3), 7)]);
    let after = |number, position| EvidenceFilter {
        after: Some((at(i64::try_from(number).unwrap()), id(number), position)),
        ..all.clone()
    };
    assert_eq!(list(&after(3, 7), 9).await, [&[(id(3), 0)][..], &both(1)].concat());
    assert_eq!(list(&after(3, 0), 9).await, both(1));
    for (filter, expected) in [
        (EvidenceFilter { version: Some(4), ..all.clone() }, vec![]),
        (EvidenceFilter { question: Some(answer(7).question), until: Some(at(3)), ..all.clone() }, vec![(id(1), 7)]),
        (EvidenceFilter { question: Some("a\0".to_owned()), ..all.clone() }, vec![]),
        (
            EvidenceFilter { model: Some("acme/judge:free".to_owned()), ..all.clone() },
            vec![(id(5), 0), (id(3), 0), (id(1), 0)],
        ),
        (EvidenceFilter { since: Some(at(3)), until: Some(at(5)), ..all.clone() }, both(3).to_vec()),
        (EvidenceFilter { is_labelled: Some(true), ..all.clone() }, vec![(id(3), 0)]),
        (
            EvidenceFilter { is_labelled: Some(false), since: Some(at(3)), version: Some(3), ..all.clone() },
            vec![(id(5), 7), (id(5), 0), (id(3), 7)],
        ),
    ] {
        assert_eq!(list(&filter, 9).await, expected, "{filter:?}");
    }
}

async fn presets_of_requests_are_found_without_answers(stores: &Stores) {
    insert_charges(stores, 1..=3).await;
    let find = async |ids: &[DecisionId]| stores.evidence.find_presets(ids).await.unwrap();
    assert_eq!(find(&[]).await, []);
    assert_eq!(find(&[id(9)]).await, []);
    let expected = [1, 2, 3].map(|number| {
        let UsageRecord { id, workspace_id, .. } = charge(number, number % 2).record;
        PresetRequest { id, workspace_id, preset: preset(number % 2) }
    });
    assert_eq!(find(&[id(3), id(9), id(1), id(2), id(3)]).await, expected);
    // More requests than a statement names.
    let many: Vec<DecisionId> = (1..=300).map(id).collect();
    assert_eq!(find(&many).await, expected);
}

async fn labels_need_the_evidence_of_their_answer(stores: &Stores) {
    use LabelOutcome::{Changed, Unknown};
    insert_charges(stores, 1..=100).await;
    let label = |number, position| NewLabel { position, ..new_label(number, "1") };
    // More answers than a statement names; the answers 1 and the requests above 100 have no evidence.
    let labels = (1..=120).flat_map(|number| [0, 1, 7].map(|position| label(number, position)));
    let labels: Vec<NewLabel> = labels.collect();
    let outcomes = stores.evidence.label(&labels, LabelMode::Each, "key:k", None).await.unwrap();
    let stored_ids: Vec<DecisionId> = (1..=100).map(id).collect();
    for (label, outcome) in labels.iter().zip(outcomes) {
        let is_stored = label.position != 1 && stored_ids.contains(&label.id);
        assert_eq!(outcome, if is_stored { Changed } else { Unknown }, "{label:?}");
    }
    let rows = stored(stores, &[id(1), id(100)]).await;
    assert!(rows.len() == 4 && rows.iter().all(|row| row.label.is_some()), "{rows:?}");
}

async fn labels_have_versions(stores: &Stores) {
    use LabelOutcome::{Changed, TooMany, Unchanged, Unknown};
    insert_charges(stores, [1]).await;
    let label = async |new: &[NewLabel], by| stores.evidence.label(new, LabelMode::Each, by, None).await.unwrap();
    let unknown = NewLabel { position: 1, ..new_label(1, "1") };
    assert_eq!(label(&[new_label(2, "1"), unknown, new_label(1, "1")], "key:a").await, [Unknown, Unknown, Changed]);
    assert_eq!(label(&[new_label(1, "1")], "key:b").await, [Unchanged]);
    let by_system = NewLabel { source: LabelSource::System, ..new_label(1, "1") };
    assert_eq!(
        label(&[by_system.clone(), by_system, new_label(1, "\"é\"")], "key:b").await,
        [Changed, Unchanged, Changed]
    );
    let versions = all_versions(stores, 1, 0).await;
    let expected = [
        ("1", LabelSource::Human, "key:a"),
        ("1", LabelSource::System, "key:b"),
        ("\"é\"", LabelSource::Human, "key:b"),
    ];
    let expected = (1..).zip(expected).map(|(version, (value, source, by))| Label {
        version,
        value: json(value),
        source,
        created_by: by.to_owned(),
        created_at: versions[0].created_at,
    });
    assert_eq!(versions, expected.collect::<Vec<_>>());
    let found = stored(stores, &[id(1)]).await;
    assert_eq!((found[0].label.as_ref(), found[1].label.as_ref()), (versions.last(), None));
    let many: Vec<NewLabel> = (0..Label::MAX_VERSIONS).map(|number| new_label(1, &number.to_string())).collect();
    let outcomes = label(&many, "key:b").await;
    assert_eq!((outcomes[96], outcomes[97], outcomes[99]), (Changed, TooMany, TooMany));
    assert_eq!(all_versions(stores, 1, 0).await.len(), 100);
    let page = async |newest, limit| {
        let page = stores.evidence.versions(&id(1), 0, newest, limit).await.unwrap();
        page.into_iter().map(|label| label.version).collect::<Vec<_>>()
    };
    assert_eq!([page(u32::MAX, 2).await, page(3, 2).await], [[100, 99], [3, 2]]);
    assert_eq!([page(1, 9).await, page(0, 9).await], [vec![1], vec![]]);
    assert_eq!(all_versions(stores, 1, 7).await, []);
}

async fn labels_are_added_all_or_none(stores: &Stores) {
    use LabelOutcome::{Changed, TooMany, Unknown};
    insert_charges(stores, [1]).await;
    let label = async |new: &[NewLabel]| stores.evidence.label(new, LabelMode::AllOrNone, "key:k", None).await.unwrap();
    let other = NewLabel { position: 7, ..new_label(1, "2") };
    assert_eq!(label(&[other.clone(), new_label(2, "1")]).await, [Changed, Unknown]);
    let many: Vec<NewLabel> = (0..Label::MAX_VERSIONS).map(|number| new_label(1, &number.to_string())).collect();
    assert_eq!(label(&many).await, [Changed; 100]);
    assert_eq!(label(&[other.clone(), new_label(1, "true")]).await, [Changed, TooMany]);
    assert_eq!(all_versions(stores, 1, 7).await, []);
    assert!(stored(stores, &[id(1)]).await[1].label.is_none());
    assert_eq!(label(&[other, new_label(1, "99")]).await, [Changed, LabelOutcome::Unchanged]);
    assert_eq!(all_versions(stores, 1, 7).await.len(), 1);
}

async fn concurrent_labels_are_all_kept(stores: &Stores) {
    insert_charges(stores, [1]).await;
    let labels = (0..8).map(|number| {
        let new = [new_label(1, &number.to_string())];
        async move { stores.evidence.label(&new, LabelMode::Each, "key:k", None).await.unwrap() }
    });
    assert_eq!(join_all(labels).await.concat(), [LabelOutcome::Changed; 8]);
    let versions = all_versions(stores, 1, 0).await;
    assert_eq!(versions.iter().map(|label| label.version).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(stored(stores, &[id(1)]).await[0].label.as_ref(), versions.last());
}

async fn labels_of_a_repeated_request_change_nothing(stores: &Stores) {
    insert_charges(stores, [1]).await;
    let scope =
        RepetitionScope { caller: "key:k".to_owned(), route: "POST /labels".to_owned(), key: "a".parse().unwrap() };
    let request = Repetition { scope, fingerprint: [7; 32] };
    let respond = |outcomes: &Vec<LabelOutcome>| StoredResponse::Content {
        status: 200,
        body: format!("{outcomes:?}"),
        version: None,
    };
    let label = async |value: &str, mode, repetition| {
        let labels = [new_label(1, value), new_label(2, "1")];
        stores.evidence.label(&labels, mode, "key:k", repetition).await
    };
    let repetition: Option<LabelRepetition<'_>> = Some((&request, &respond));
    label("true", LabelMode::AllOrNone, repetition).await.unwrap();
    assert_eq!(stores.repetitions.find(&request.scope).await.unwrap(), None, "no label was added");
    let outcomes = join_all((0..4).map(|_| label("true", LabelMode::Each, repetition))).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    assert!(
        outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).all(|error| matches!(error, StoreError::Repeated))
    );
    let kept = stores.repetitions.find(&request.scope).await.unwrap().unwrap();
    let response = respond(&vec![LabelOutcome::Changed, LabelOutcome::Unknown]);
    assert_eq!((kept.request.clone(), kept.response), (request.clone(), response));
    label("false", LabelMode::Each, None).await.unwrap();
    let again = label("true", LabelMode::Each, repetition).await;
    assert!(matches!(again, Err(StoreError::Repeated)), "{again:?}");
    let versions = all_versions(stores, 1, 0).await;
    assert_eq!(versions.iter().map(|label| label.value.text()).collect::<Vec<_>>(), ["true", "false"]);
}

async fn prune_removes_old_rows_with_their_labels(stores: &Stores) {
    insert_charges(stores, 1..=3).await;
    stores.evidence.label(&[new_label(1, "true"), new_label(3, "true")], LabelMode::Each, "key:k", None).await.unwrap();
    let prune = async |before, limit| stores.evidence.prune(before, limit).await.unwrap();
    assert_eq!(prune(at(1), 9).await, 0);
    assert_eq!((prune(at(3), 3).await, prune(at(3), 3).await, prune(at(3), 3).await), (3, 1, 0));
    assert_eq!(all_versions(stores, 1, 0).await, []);
    let left = stored(stores, &[id(1), id(2), id(3)]).await;
    assert_eq!((left.len(), left[0].label.is_some()), (2, true));
    // The evidence outlives its record.
    stores.clock.advance(Duration::from_hours(24 * 400));
    stores.maintenance.prune(Duration::from_hours(24 * 32), 99).await.unwrap();
    let left = stored(stores, &[id(3)]).await;
    assert_eq!((left[0].cost, left[0].latency), (None, None));
}
