//! Applies a draft to a guardrail.

use super::GuardrailDraft;
use crate::budget::{ResetInterval, SpendLimit};
use crate::edit::Edit;
use crate::guardrail::filter::CompiledFilters;
use crate::guardrail::{Guardrail, GuardrailName, GuardrailRules, InvalidGuardrail, KnownNames};
use crate::money::Usd;

impl GuardrailDraft {
    /// Returns the guardrail after the change. Only the members that the draft names are validated: a listed model that
    /// has left the catalogue does not prevent a rename.
    pub(in crate::guardrail) fn apply(
        &self,
        guardrail: Guardrail,
        names: &KnownNames,
    ) -> Result<Guardrail, InvalidGuardrail> {
        if self.workspace_id.is_some_and(|id| id != guardrail.workspace_id) {
            return Err(InvalidGuardrail::new(
                "workspace_id",
                "cannot change; create a guardrail in the other workspace",
            ));
        }
        let Guardrail { mut name, budget, mut rules, .. } = guardrail;
        if let Some(new) = &self.name {
            name = GuardrailName::try_new(new).map_err(|fault| InvalidGuardrail::new("name", fault.to_string()))?;
        }
        set(&mut rules.description, &self.description, |text| Ok(text.clone()))?;
        let models = |member, list: &Vec<String>| names.models(member, list);
        let mut ignored_ids = Vec::new();
        let providers = |member, list: &Vec<String>| names.providers(member, list);
        set(&mut rules.allowed_models, &self.allowed_models, |list| Ok(models("allowed_models", list)?.slugs))?;
        set(&mut rules.ignored_models, &self.ignored_models, |list| {
            let found = models("ignored_models", list)?;
            ignored_ids = found.ids;
            Ok(found.slugs)
        })?;
        if !self.ignored_models.is_keep() {
            rules.ignored_model_ids = ignored_ids;
        }
        set(&mut rules.allowed_providers, &self.allowed_providers, |list| providers("allowed_providers", list))?;
        set(&mut rules.ignored_providers, &self.ignored_providers, |list| providers("ignored_providers", list))?;
        for (flag, value) in &self.data_policy {
            if let Some(rule) = rules.data_policy.flag_mut(flag) {
                *rule = *value;
            }
        }
        let budget = self.budget(budget)?;
        self.set_filters(&mut rules, guardrail.id)?;
        Ok(Guardrail { name, budget, rules, ..guardrail })
    }

    /// Merges the budget. Amount and interval must come together: a default interval would be a budget nobody chose.
    fn budget(&self, now: Option<SpendLimit>) -> Result<Option<SpendLimit>, InvalidGuardrail> {
        let set = |amount: Usd, reset: Option<ResetInterval>| Ok(Some(SpendLimit { amount, reset }));
        match (&self.limit_usd, &self.reset_interval) {
            (Edit::Keep, Edit::Keep) => Ok(now),
            (Edit::Set(amount), Edit::Set(reset)) => set(*amount, Some(*reset)),
            (Edit::Set(amount), Edit::Clear) => set(*amount, None),
            (Edit::Clear, Edit::Keep | Edit::Clear) => Ok(None),
            (Edit::Keep, Edit::Clear) if now.is_none() => Ok(None),
            (Edit::Set(_), Edit::Keep) => Err(InvalidGuardrail::new(
                "reset_interval",
                "must be given together with limit_usd: daily, weekly, monthly, or null for a budget that never resets",
            )),
            (Edit::Keep | Edit::Clear, Edit::Set(_)) | (Edit::Keep, Edit::Clear) => Err(InvalidGuardrail::new(
                "limit_usd",
                "must be given together with reset_interval: an amount of more than 0 USD",
            )),
        }
    }

    fn set_filters(&self, rules: &mut GuardrailRules, id: crate::ids::GuardrailId) -> Result<(), InvalidGuardrail> {
        if self.content_filters.is_keep() && self.content_filter_builtins.is_keep() {
            return Ok(());
        }
        replace(&mut rules.content_filters, &self.content_filters);
        replace(&mut rules.content_filter_builtins, &self.content_filter_builtins);
        CompiledFilters::compile(std::iter::once((id, &*rules)))?;
        Ok(())
    }
}

fn set<T>(
    target: &mut Option<T>,
    change: &Edit<T>,
    resolve: impl FnOnce(&T) -> Result<T, InvalidGuardrail>,
) -> Result<(), InvalidGuardrail> {
    match change {
        Edit::Keep => {}
        Edit::Clear => *target = None,
        Edit::Set(value) => *target = Some(resolve(value)?),
    }
    Ok(())
}

fn replace<T: Clone>(target: &mut Vec<T>, change: &Edit<Vec<T>>) {
    match change {
        Edit::Keep => {}
        Edit::Clear => target.clear(),
        Edit::Set(list) => target.clone_from(list),
    }
}
