//! Lists the models that the guardrails of a key permit.

use std::sync::Arc;

use super::GuardrailPolicies;
use crate::api_key::Principal;
use crate::error::StoreError;
use crate::model::{CatalogueSnapshot, ListModels, Model, ModelList, ModelListRequest, Visibility};
use crate::routing::EndpointDirectory;

/// The permitted models of a key.
#[derive(Debug)]
pub struct PermittedModels {
    /// The list.
    pub list: ModelList,
    /// The permitted rows that serve Decisions requests under their own names, independent of filter and page.
    pub decision_models: Vec<Arc<Model>>,
}

/// Lists the models that the guardrails of a key permit.
pub struct ListPermittedModels {
    models: Arc<ListModels>,
    endpoints: Arc<EndpointDirectory>,
    policies: Arc<dyn GuardrailPolicies>,
}

impl ListPermittedModels {
    /// Creates the use case.
    pub fn new(
        models: Arc<ListModels>,
        endpoints: Arc<EndpointDirectory>,
        policies: Arc<dyn GuardrailPolicies>,
    ) -> Self {
        Self { models, endpoints, policies }
    }

    /// Lists the models that the workspace's guardrail and the key's own permit. A management key has no guardrail.
    /// `visibility` is that of the decision models.
    ///
    /// # Errors
    /// The guardrails cannot be read: a list without their rules is never returned.
    pub async fn execute(
        &self,
        caller: &Principal,
        request: &ModelListRequest,
        visibility: Visibility,
    ) -> Result<PermittedModels, StoreError> {
        let policy = match caller {
            Principal::Inference(key) => self.policies.find(key).await?,
            Principal::Management(_) | Principal::Operator(_) => None,
        };
        let permits = |snapshot: &CatalogueSnapshot, model: &Model| {
            policy.as_ref().is_none_or(|policy| policy.permits_model(model, self.endpoints.for_model(model), snapshot))
        };
        let list = match &policy {
            Some(_) => self.models.execute_where(request, permits),
            None => self.models.execute(request),
        };
        let snapshot = &list.snapshot;
        let is_permitted = |row: &&Arc<Model>| {
            let target = snapshot.resolve(row.id.as_str());
            target.is_some_and(|target| permits(snapshot, &target.model))
        };
        let decision_models =
            self.models.decision_models(snapshot, visibility).filter(is_permitted).map(Arc::clone).collect();
        Ok(PermittedModels { list, decision_models })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_key::{InferenceKey, ManagementKey};
    use crate::guardrail::fixtures::{apply_draft, endpoint, guardrail_id, row};
    use crate::guardrail::{Guardrail, MockGuardrailPolicies, Policy};
    use crate::ids::WorkspaceId;
    use crate::model::{AliasTarget, ModalityFilter, Page};
    use crate::routing::DataPolicy;
    use crate::testing::{MemoryCatalogue, SequentialIds};
    use rstest::rstest;

    fn use_case(policies: MockGuardrailPolicies) -> ListPermittedModels {
        let target = AliasTarget { name: "Judge".to_owned(), slug: "acme/judge".parse().unwrap() };
        let rows = vec![
            row("acme/judge", "acme/judge-20260901"),
            row("rival/oracle", "rival/oracle-1"),
            row("rival/idle", "rival/idle"),
            row("openai/decider", "openai/decider"),
            Model { alias_target: Some(target), ..row("~acme/judge-latest", "~acme/judge-latest") },
        ];
        let private = DataPolicy { zdr: true, collects: false };
        let endpoints = vec![
            endpoint("acme/judge", "typesafe"),
            crate::routing::Endpoint { data_policy: private, ..endpoint("acme/judge", "mirror") },
            endpoint("rival/oracle", "typesafe"),
            endpoint("openai/decider", "mirror"),
        ];
        let endpoints = Arc::new(EndpointDirectory::new(endpoints));
        let models = ListModels::new(Arc::new(MemoryCatalogue::new(rows)), Arc::clone(&endpoints) as _);
        ListPermittedModels::new(Arc::new(models), endpoints, Arc::new(policies))
    }

    fn under(guardrails: &[&str]) -> MockGuardrailPolicies {
        let numbered = guardrails
            .iter()
            .zip(1..)
            .map(|(record, number)| Guardrail { id: guardrail_id(number), ..apply_draft(record).unwrap() });
        let policy = (!guardrails.is_empty()).then(|| Arc::new(Policy::compile(numbered.collect()).unwrap()));
        let mut policies = MockGuardrailPolicies::new();
        policies.expect_find().returning(move |_| Ok(policy.clone()));
        policies
    }

    fn request(page: Option<Page>) -> ModelListRequest {
        ModelListRequest { filter: ModalityFilter::All.into(), visibility: Visibility::All, sort: None, page }
    }

    fn inference() -> Principal {
        Principal::Inference(InferenceKey::for_tests(
            SequentialIds::key(9),
            WorkspaceId::from_uuid(SequentialIds::uuid(1)),
        ))
    }

    fn ids(models: &PermittedModels) -> Vec<&str> {
        models.list.rows.iter().map(|&index| models.list.snapshot.rows()[index].id.as_str()).collect()
    }

    const JUDGE: &str = "acme/judge";
    const ORACLE: &str = "rival/oracle";
    const IDLE: &str = "rival/idle";
    const DECIDER: &str = "openai/decider";
    const ALIAS: &str = "~acme/judge-latest";

    #[rstest]
    #[case::none(&[], &[JUDGE, ORACLE, IDLE, DECIDER, ALIAS])]
    #[case::without_rules(&["{}"], &[JUDGE, ORACLE, IDLE, DECIDER, ALIAS])]
    #[case::allowed_models(&[r#"{"allowed_models":["acme/judge"]}"#], &[JUDGE, ALIAS])]
    #[case::ignored_models(&[r#"{"ignored_models":["acme/judge","rival/oracle"]}"#], &[IDLE, DECIDER])]
    #[case::two_guardrails(
        &[r#"{"allowed_models":["acme/judge","rival/oracle"]}"#, r#"{"ignored_models":["rival/oracle"]}"#],
        &[JUDGE, ALIAS]
    )]
    #[case::one_endpoint_is_enough(&[r#"{"ignored_providers":["typesafe"]}"#], &[JUDGE, IDLE, DECIDER, ALIAS])]
    #[case::every_rule_by_one_endpoint(
        &[r#"{"ignored_providers":["typesafe"]}"#, r#"{"enforce_zdr":true}"#],
        &[JUDGE, IDLE, ALIAS]
    )]
    #[tokio::test]
    async fn list_contains_permitted_models(#[case] guardrails: &[&str], #[case] expected: &[&str]) {
        let models = use_case(under(guardrails)).execute(&inference(), &request(None), Visibility::All).await.unwrap();
        assert_eq!(ids(&models), expected);
        let decisions: Vec<&str> = models.decision_models.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(decisions, expected);
        let callable =
            use_case(under(guardrails)).execute(&inference(), &request(None), Visibility::Callable).await.unwrap();
        assert!(callable.decision_models.iter().all(|row| row.id.as_str() != IDLE));
    }

    #[tokio::test]
    async fn pages_contain_only_permitted_models() {
        let policies = under(&[r#"{"ignored_models":["acme/judge"]}"#]);
        let page = Page::of(Some(1), Some(1)).unwrap();
        let models = use_case(policies).execute(&inference(), &request(page), Visibility::All).await.unwrap();
        assert_eq!((ids(&models), models.list.total, models.list.next), (vec![IDLE], 3, Some((2, 1))));
    }

    #[tokio::test]
    async fn management_key_lists_all_models_without_reading_guardrails() {
        let management = Principal::Management(ManagementKey::for_tests(SequentialIds::key(8)));
        let models =
            use_case(MockGuardrailPolicies::new()).execute(&management, &request(None), Visibility::All).await.unwrap();
        assert_eq!(ids(&models), [JUDGE, ORACLE, IDLE, DECIDER, ALIAS]);
    }

    #[tokio::test]
    async fn store_failure_is_an_error() {
        let mut policies = MockGuardrailPolicies::new();
        policies.expect_find().returning(|_| Err(StoreError::unavailable("down")));
        let listed = use_case(policies).execute(&inference(), &request(None), Visibility::All).await;
        assert!(listed.is_err());
    }
}
