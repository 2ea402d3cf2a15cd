//! The groups of evidence.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use adapters_storage::{SeaOrmBudgetStore, SeaOrmEvidenceRepository};
use common::*;
use domain::budget::{BudgetStore, FoldEntry, FoldRequest, UsageCharge};
use domain::evidence::EvidenceRepository;
use domain::ids::PresetId;
use domain::json::Json;
use domain::usage::{AnswerEvidence, AnswerMethod, PresetReference, UsageRecord};
use uuid::Uuid;

/// Returns the charge of a request of a preset with three answers, two of them in one group.
fn charge(number: u128, preset: u128) -> UsageCharge {
    let answer = |position: u32, question: &str| AnswerEvidence {
        position,
        question: question.to_owned(),
        model: "typesafe/jev-1.14".parse().unwrap(),
        provider: "typesafe".into(),
        wire: "system-one".into(),
        method: AnswerMethod::Native,
        decision: Json::parse("true").unwrap(),
        probabilities: None,
    };
    let preset = PresetReference { id: PresetId::from_uuid(Uuid::from_u128(preset)), version: 1 };
    let record = UsageRecord { preset: Some(preset), ..usage(number, 1) };
    UsageCharge { evidence: vec![answer(0, "a"), answer(1, "b"), answer(2, "b")], ..UsageCharge::new(record) }
}

#[tokio::test]
async fn group_has_one_row_until_its_preset_has_no_evidence() {
    let folder = Folder::new();
    let database = folder.open().await;
    let (budget, evidence) = (SeaOrmBudgetStore::new(database.clone()), SeaOrmEvidenceRepository::new(database));
    let process = new_process();
    budget.register(process).await.unwrap();
    for after in 0..3 {
        let charges = [charge(u128::from(after) + 1, 1), charge(u128::from(after) + 11, 1 + u128::from(after % 2))];
        let entries = charges.map(|charge| FoldEntry { charge, allowances: Vec::new() }).to_vec();
        budget.fold(&FoldRequest { process, after, up_to: after + 1, entries }).await.unwrap();
    }
    assert_eq!((folder.count("evidence").await, folder.count("evidence_groups").await), (18, 4));
    assert_eq!(evidence.prune(at(0), 99).await.unwrap(), 0);
    assert_eq!(folder.count("evidence_groups").await, 4);
    folder.execute(&format!("DELETE FROM evidence WHERE record_id = {}", id_column(12))).await;
    assert_eq!(evidence.prune(at(0), 99).await.unwrap(), 0);
    assert_eq!(folder.count("evidence_groups").await, 2, "those of the second preset are gone");
}
