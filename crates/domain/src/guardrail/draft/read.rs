//! Parses a draft from JSON, and applies it to a guardrail.

use super::GuardrailDraft;
use crate::budget::{ResetInterval, SpendLimit};
use crate::edit::Edit;
use crate::guardrail::filter::CompiledFilters;
use crate::guardrail::{
    BuiltinContentFilter, BuiltinFilter, ContentFilter, DataPolicyRules, Guardrail, GuardrailName, GuardrailRules,
    InvalidGuardrail, KnownNames, ScanScope,
};
use crate::json::{Json, JsonKind, unknown_member};
use crate::money::Usd;
use crate::usage::FilterAction;

/// The highest number of characters in a description.
const MAX_DESCRIPTION_CHARS: usize = 1000;
/// The highest number of elements in any list.
const MAX_ELEMENTS: usize = 1000;
/// The highest number of bytes in all patterns of a guardrail: a page of guardrails is in memory as a whole.
const MAX_PATTERN_BYTES: usize = 64 << 10;
/// The highest number of characters in a filter's label.
const MAX_LABEL_CHARS: usize = 100;

/// Members of a record that only the service sets.
const READ_ONLY: [&str; 4] = ["id", "version", "created_at", "updated_at"];
/// Members that a record may have, except those of its data policy.
const MEMBERS: [&str; 16] = [
    "workspace_id",
    "workspace_default",
    "name",
    "description",
    "allowed_models",
    "ignored_models",
    "allowed_providers",
    "ignored_providers",
    "limit_usd",
    "reset_interval",
    "content_filters",
    "content_filter_builtins",
    "allowed_data_regions",
    "allow_safety_retention_google",
    "allow_safety_retention_other",
    "enable_free_model_publication",
];

type Members = Vec<(String, Json)>;

impl GuardrailDraft {
    /// Parses the members of a record or of a change to one. An absent member is left unchanged, `null` clears it.
    /// Members that only the service sets are ignored, so that clients can send back a record as they read it.
    ///
    /// # Errors
    /// Returns the first violation, with its path. Duplicate members are rejected because either could be meant.
    /// Unknown members are rejected because a misspelt rule must not look like an enforced one.
    pub fn read(record: &Json) -> Result<Self, InvalidGuardrail> {
        let no_object = || InvalidGuardrail::new("", "a guardrail is a JSON object");
        let mut draft = Self::default();
        let mut seen: Vec<String> = Vec::new();
        for member in record.iter_members().ok_or_else(no_object)? {
            let (name, value) = member.ok_or_else(no_object)?;
            if READ_ONLY.contains(&&*name) {
                continue;
            }
            if !draft.parse_member(&name, &value)? {
                let known = MEMBERS.into_iter().chain(DataPolicyRules::FLAGS);
                return Err(InvalidGuardrail::new("", unknown_member(&name, known)));
            }
            if seen.iter().any(|other| *other == name) {
                return Err(InvalidGuardrail::new(name.into_owned(), "is given more than once"));
            }
            seen.push(name.into_owned());
        }
        Ok(draft)
    }

    /// Parses one member; returns false if the member is unknown.
    fn parse_member(&mut self, name: &str, value: &Json) -> Result<bool, InvalidGuardrail> {
        match name {
            "workspace_id" => self.workspace_id = parse_nullable(value, parse_workspace_id)?,
            "workspace_default" => {
                let is_default = parse_nullable(value, |value| parse_boolean(name, value))?;
                self.workspace_default = Some(is_default.unwrap_or_default());
            }
            "name" => self.name = Some(parse_string(name, value)?),
            "description" => self.description = parse_edit(value, parse_description)?,
            "allowed_models" => self.allowed_models = parse_edit(value, |value| parse_names(name, value))?,
            "ignored_models" => self.ignored_models = parse_edit(value, |value| parse_names(name, value))?,
            "allowed_providers" => self.allowed_providers = parse_edit(value, |value| parse_names(name, value))?,
            "ignored_providers" => self.ignored_providers = parse_edit(value, |value| parse_names(name, value))?,
            "limit_usd" => self.limit_usd = parse_edit(value, parse_amount)?,
            "reset_interval" => self.reset_interval = parse_edit(value, parse_interval)?,
            "content_filters" => self.content_filters = parse_edit(value, |value| parse_filters(name, value))?,
            "content_filter_builtins" => {
                self.content_filter_builtins = parse_edit(value, |value| parse_builtins(name, value))?;
            }
            "allowed_data_regions" => check_regions(value)?,
            "allow_safety_retention_google" | "allow_safety_retention_other" => require_value(
                name,
                value,
                false,
                "zero-retention endpoints have no safety exception; use null or false",
            )?,
            "enable_free_model_publication" => require_value(
                name,
                value,
                true,
                "endpoints do not tell whether prompts may be published; forbid training with enable_free_model_training, or give null or true",
            )?,
            "include_byok_in_budgets" => {
                require_value(name, value, false, "callers have no provider keys of their own; use null or false")?;
            }
            _ => match DataPolicyRules::FLAGS.into_iter().find(|flag| *flag == name) {
                Some(flag) => self.data_policy.push((flag, parse_nullable(value, |value| parse_boolean(name, value))?)),
                None => return Ok(false),
            },
        }
        Ok(true)
    }
}

fn parse_nullable<T>(
    value: &Json,
    read: impl FnOnce(&Json) -> Result<T, InvalidGuardrail>,
) -> Result<Option<T>, InvalidGuardrail> {
    if value.kind() == JsonKind::Null { Ok(None) } else { read(value).map(Some) }
}

fn parse_edit<T>(
    value: &Json,
    read: impl FnOnce(&Json) -> Result<T, InvalidGuardrail>,
) -> Result<Edit<T>, InvalidGuardrail> {
    Ok(parse_nullable(value, read)?.map_or(Edit::Clear, Edit::Set))
}

fn type_error(path: &str, wanted: &str, value: &Json) -> InvalidGuardrail {
    InvalidGuardrail::new(path, format!("must be {wanted}, not {}", value.kind().with_article()))
}

fn parse_boolean(path: &str, value: &Json) -> Result<bool, InvalidGuardrail> {
    match value.text() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(type_error(path, "a boolean", value)),
    }
}

fn parse_string(path: &str, value: &Json) -> Result<String, InvalidGuardrail> {
    match value.kind() {
        // A quoted string without text has half of a surrogate pair in it.
        JsonKind::String => value.as_string().ok_or_else(|| InvalidGuardrail::new(path, "has an unpaired surrogate")),
        _ => Err(type_error(path, "a string", value)),
    }
}

fn parse_elements(path: &str, value: &Json) -> Result<Vec<Json>, InvalidGuardrail> {
    let count = value.iter_elements().ok_or_else(|| type_error(path, "an array", value))?.count();
    if count > MAX_ELEMENTS {
        let fault = format!("must have at most {MAX_ELEMENTS} elements, not {count}");
        return Err(InvalidGuardrail::new(path, fault));
    }
    if count == 0 {
        return Err(InvalidGuardrail::new(path, "must have at least one element; null removes the rule"));
    }
    Ok(value.elements().unwrap_or_default())
}

fn parse_workspace_id(value: &Json) -> Result<crate::ids::WorkspaceId, InvalidGuardrail> {
    let text = parse_string("workspace_id", value)?;
    text.parse().map_err(|_| InvalidGuardrail::new("workspace_id", "must be a UUID"))
}

fn parse_description(value: &Json) -> Result<String, InvalidGuardrail> {
    let text = parse_string("description", value)?;
    if text.chars().count() > MAX_DESCRIPTION_CHARS {
        let fault = format!("must have at most {MAX_DESCRIPTION_CHARS} characters");
        return Err(InvalidGuardrail::new("description", fault));
    }
    Ok(text)
}

fn parse_names(path: &str, value: &Json) -> Result<Vec<String>, InvalidGuardrail> {
    let elements = parse_elements(path, value)?;
    let name = |(index, element): (usize, &Json)| {
        let path = format!("{path}[{index}]");
        let name = parse_string(&path, element)?;
        if name.is_empty() { Err(InvalidGuardrail::new(path, "must not be empty")) } else { Ok(name) }
    };
    elements.iter().enumerate().map(name).collect()
}

fn parse_amount(value: &Json) -> Result<Usd, InvalidGuardrail> {
    if value.kind() != JsonKind::Number {
        return Err(type_error("limit_usd", "a number", value));
    }
    let amount: Option<Usd> = value.text().parse().ok();
    amount.filter(|amount| *amount > Usd::ZERO).ok_or_else(|| {
        let (most, digits) = (Usd::MAX, Usd::DIGITS);
        let fault = format!("must be more than 0 USD and at most {most}, with at most {digits} digits after the point");
        InvalidGuardrail::new("limit_usd", fault)
    })
}

fn parse_interval(value: &Json) -> Result<ResetInterval, InvalidGuardrail> {
    let name = parse_string("reset_interval", value)?;
    ResetInterval::from_name(&name)
        .ok_or_else(|| InvalidGuardrail::new("reset_interval", "must be daily, weekly, monthly or null"))
}

fn parse_action(path: &str, members: &Members) -> Result<FilterAction, InvalidGuardrail> {
    let at = format!("{path}.action");
    let value = find_member(members, "action").ok_or_else(|| InvalidGuardrail::new(&at, "is required"))?;
    let name = parse_string(&at, &value)?;
    FilterAction::from_name(&name).ok_or_else(|| InvalidGuardrail::new(&at, "must be block, redact or flag"))
}

fn parse_filters(path: &str, value: &Json) -> Result<Vec<ContentFilter>, InvalidGuardrail> {
    let filter = |(index, element): (usize, &Json)| {
        let path = format!("{path}[{index}]");
        let members = known_members(&path, element, &["pattern", "action", "label"])?;
        let at = format!("{path}.pattern");
        let pattern = find_member(&members, "pattern").ok_or_else(|| InvalidGuardrail::new(&at, "is required"))?;
        let label = find_member(&members, "label").map(|label| parse_label(&format!("{path}.label"), &label));
        Ok(ContentFilter {
            pattern: parse_string(&at, &pattern)?,
            action: parse_action(&path, &members)?,
            label: label.transpose()?,
        })
    };
    parse_elements(path, value)?.iter().enumerate().map(filter).collect()
}

fn parse_label(path: &str, value: &Json) -> Result<String, InvalidGuardrail> {
    let label = parse_string(path, value)?;
    let fits = (1..=MAX_LABEL_CHARS).contains(&label.chars().count()) && !label.chars().any(char::is_control);
    let fault = || format!("must have 1 to {MAX_LABEL_CHARS} characters and no control characters");
    if fits { Ok(label) } else { Err(InvalidGuardrail::new(path, fault())) }
}

fn parse_builtins(path: &str, value: &Json) -> Result<Vec<BuiltinContentFilter>, InvalidGuardrail> {
    let mut found: Vec<BuiltinContentFilter> = Vec::new();
    for (index, element) in parse_elements(path, value)?.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let members = known_members(&path, element, &["slug", "action", "label", "scan_scope"])?;
        let slug = parse_slug(&path, &members)?;
        if found.iter().any(|other| other.slug == slug) {
            return Err(InvalidGuardrail::new(format!("{path}.slug"), "is in the list already"));
        }
        let (action, scan_scope) = (parse_action(&path, &members)?, parse_scan_scope(&path, &members)?);
        found.push(BuiltinContentFilter { slug, action, scan_scope });
    }
    Ok(found)
}

fn parse_slug(path: &str, members: &Members) -> Result<BuiltinFilter, InvalidGuardrail> {
    let at = format!("{path}.slug");
    let value = find_member(members, "slug").ok_or_else(|| InvalidGuardrail::new(&at, "is required"))?;
    let name = parse_string(&at, &value)?;
    if let Some(known) = BuiltinFilter::from_name(&name) {
        return Ok(known);
    }
    let known: Vec<&str> = BuiltinFilter::ALL.into_iter().map(BuiltinFilter::as_str).collect();
    let reason = match name.as_str() {
        "person-name" | "address" => format!("{name} requires a language model, which is not available; known are"),
        _ => "must be one of".to_owned(),
    };
    Err(InvalidGuardrail::new(at, format!("{reason}: {}", known.join(", "))))
}

fn parse_scan_scope(path: &str, members: &Members) -> Result<ScanScope, InvalidGuardrail> {
    let at = format!("{path}.scan_scope");
    let Some(value) = find_member(members, "scan_scope") else { return Ok(ScanScope::default()) };
    let scope = ScanScope::from_name(&parse_string(&at, &value)?);
    scope.ok_or_else(|| InvalidGuardrail::new(at, "must be user_only or all_messages"))
}

/// Returns the members of an object and rejects unknown and repeated ones.
fn known_members(path: &str, value: &Json, known: &[&str]) -> Result<Members, InvalidGuardrail> {
    let no_object = || type_error(path, "an object", value);
    let mut members = Members::new();
    for member in value.iter_members().ok_or_else(no_object)? {
        let (name, value) = member.ok_or_else(no_object)?;
        if !known.contains(&&*name) {
            return Err(InvalidGuardrail::new(path, unknown_member(&name, known.iter().copied())));
        }
        if members.iter().any(|(other, _)| *other == name) {
            return Err(InvalidGuardrail::new(format!("{path}.{name}"), "is given more than once"));
        }
        members.push((name.into_owned(), value));
    }
    Ok(members)
}

/// Returns a member of an object; `None` if it is absent or null.
fn find_member(members: &Members, name: &str) -> Option<Json> {
    let found = members.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    found.filter(|value| value.kind() != JsonKind::Null).cloned()
}

/// Accepts only `harmless`, the value that enforces nothing, for a rule that cannot be enforced.
fn require_value(path: &str, value: &Json, harmless: bool, why: &str) -> Result<(), InvalidGuardrail> {
    match parse_nullable(value, |value| parse_boolean(path, value))? {
        Some(other) if other != harmless => Err(InvalidGuardrail::new(path, format!("cannot be kept: {why}"))),
        _ => Ok(()),
    }
}

fn check_regions(value: &Json) -> Result<(), InvalidGuardrail> {
    let path = "allowed_data_regions";
    if value.iter_elements().is_some_and(|mut regions| regions.next().is_none()) {
        return Ok(());
    }
    let Some(regions) = parse_nullable(value, |value| parse_names(path, value))? else { return Ok(()) };
    let every = ["global", "europe", "us"];
    if let Some(index) = regions.iter().position(|region| !every.contains(&region.as_str())) {
        return Err(InvalidGuardrail::new(format!("{path}[{index}]"), "must be global, europe or us"));
    }
    if every.iter().all(|region| regions.iter().any(|named| named == region)) {
        return Ok(());
    }
    let why = "cannot be kept: endpoints do not tell where they run; allow the providers that run there with \
               allowed_providers, or give null";
    Err(InvalidGuardrail::new(path, why))
}

impl GuardrailDraft {
    /// Returns the guardrail after the change. Only members that change are validated: a listed model that has left the
    /// catalogue prevents neither a rename nor that a record is sent back as it was read.
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
        let mut ignored_ids = self.ignored_models.is_clear().then(Vec::new);
        let providers = |member, list: &Vec<String>| names.providers(member, list);
        set(&mut rules.allowed_models, &self.allowed_models, |list| Ok(models("allowed_models", list)?.slugs))?;
        set(&mut rules.ignored_models, &self.ignored_models, |list| {
            let found = models("ignored_models", list)?;
            ignored_ids = Some(found.ids);
            Ok(found.slugs)
        })?;
        if let Some(ids) = ignored_ids {
            rules.ignored_model_ids = ids;
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

    /// Merges the budget. Amount and interval of a new one must come together: a default interval would be a budget nobody
    /// chose.
    fn budget(&self, now: Option<SpendLimit>) -> Result<Option<SpendLimit>, InvalidGuardrail> {
        let set = |amount: Usd, reset: Option<ResetInterval>| Ok(Some(SpendLimit { amount, reset }));
        match (&self.limit_usd, &self.reset_interval) {
            (Edit::Keep, Edit::Keep) => Ok(now),
            (Edit::Set(amount), Edit::Set(reset)) => set(*amount, Some(*reset)),
            (Edit::Set(amount), Edit::Clear) => set(*amount, None),
            (Edit::Clear, Edit::Keep | Edit::Clear) => Ok(None),
            (Edit::Set(amount), Edit::Keep) if now.is_some() => set(*amount, now.and_then(|now| now.reset)),
            (Edit::Keep, Edit::Clear) => Ok(now.map(|now| SpendLimit { reset: None, ..now })),
            (Edit::Keep, Edit::Set(reset)) if now.is_some() => {
                Ok(now.map(|now| SpendLimit { reset: Some(*reset), ..now }))
            }
            (Edit::Set(_), Edit::Keep) => Err(InvalidGuardrail::new(
                "reset_interval",
                "must be given together with limit_usd: daily, weekly, monthly, or null for a budget that never resets",
            )),
            (Edit::Keep | Edit::Clear, Edit::Set(_)) => Err(InvalidGuardrail::new(
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
        let bytes: usize = rules.content_filters.iter().map(|filter| filter.pattern.len()).sum();
        if bytes > MAX_PATTERN_BYTES {
            let fault = format!("must have at most {MAX_PATTERN_BYTES} bytes of patterns together, not {bytes}");
            return Err(InvalidGuardrail::new("content_filters", fault));
        }
        CompiledFilters::compile(std::iter::once((id, &*rules)))?;
        Ok(())
    }
}

fn set<T: PartialEq>(
    target: &mut Option<T>,
    change: &Edit<T>,
    resolve: impl FnOnce(&T) -> Result<T, InvalidGuardrail>,
) -> Result<(), InvalidGuardrail> {
    match change {
        Edit::Keep => {}
        Edit::Clear => *target = None,
        Edit::Set(value) if target.as_ref() == Some(value) => {}
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
