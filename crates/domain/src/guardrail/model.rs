//! A guardrail's record.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::InvalidGuardrailName;
use crate::budget::SpendLimit;
use crate::ids::{GuardrailId, WorkspaceId};
use crate::usage::FilterAction;

/// A named set of rules, assigned to keys of one workspace or to the whole workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guardrail {
    /// The id.
    pub id: GuardrailId,
    /// The workspace whose keys it can be assigned to.
    pub workspace_id: WorkspaceId,
    /// The display name.
    pub name: GuardrailName,
    /// The spend limit of each key that has the guardrail assigned, counted per key.
    pub budget: Option<SpendLimit>,
    /// All other rules.
    pub rules: GuardrailRules,
    /// The version, from 1; every change adds 1.
    pub version: u32,
    /// The time of creation.
    pub created_at: DateTime<Utc>,
    /// The time of the last change.
    pub updated_at: Option<DateTime<Utc>>,
}

/// The rules of a guardrail besides its budget. Member names are those of the interface and of stores.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuardrailRules {
    /// A description of at most 1,000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Canonical slugs of the allowed models; all others are forbidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_models: Option<Vec<String>>,
    /// Canonical slugs of the forbidden models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored_models: Option<Vec<String>>,
    /// The ids, without variants, that the models of [`Self::ignored_models`] had when the list was written. The ban
    /// still holds if the catalogue later gives a model another slug, or drops it and lists it again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored_model_ids: Vec<String>,
    /// Slugs of the allowed providers; all others are forbidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_providers: Option<Vec<String>>,
    /// Slugs of the forbidden providers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored_providers: Option<Vec<String>>,
    /// The rules for the handling of data by providers.
    #[serde(flatten)]
    pub data_policy: DataPolicyRules,
    /// Patterns of the operator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content_filters: Vec<ContentFilter>,
    /// Built-in patterns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content_filter_builtins: Vec<BuiltinContentFilter>,
}

/// The rules for the handling of data by providers, as far as endpoint records cover it. `None` is no rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataPolicyRules {
    /// If true, only endpoints with zero retention, for every group below without a value of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr: Option<bool>,
    /// The same rule for models of `anthropic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr_anthropic: Option<bool>,
    /// The same rule for models of `openai`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr_openai: Option<bool>,
    /// The same rule for models of `google`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr_google: Option<bool>,
    /// The same rule for models of `x-ai`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr_xai: Option<bool>,
    /// The same rule for models of all other authors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr_other: Option<bool>,
    /// If false, no endpoint with a price that collects its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_paid_model_training: Option<bool>,
    /// If false, no endpoint without a price that collects its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_free_model_training: Option<bool>,
}

impl DataPolicyRules {
    /// The names of the rules.
    pub const FLAGS: [&str; 8] = [
        "enforce_zdr",
        "enforce_zdr_anthropic",
        "enforce_zdr_openai",
        "enforce_zdr_google",
        "enforce_zdr_xai",
        "enforce_zdr_other",
        "enable_paid_model_training",
        "enable_free_model_training",
    ];

    /// Returns the rule of that name.
    pub(super) fn flag_mut(&mut self, name: &str) -> Option<&mut Option<bool>> {
        Some(match name {
            "enforce_zdr" => &mut self.enforce_zdr,
            "enforce_zdr_anthropic" => &mut self.enforce_zdr_anthropic,
            "enforce_zdr_openai" => &mut self.enforce_zdr_openai,
            "enforce_zdr_google" => &mut self.enforce_zdr_google,
            "enforce_zdr_xai" => &mut self.enforce_zdr_xai,
            "enforce_zdr_other" => &mut self.enforce_zdr_other,
            "enable_paid_model_training" => &mut self.enable_paid_model_training,
            "enable_free_model_training" => &mut self.enable_free_model_training,
            _ => return None,
        })
    }
}

/// A pattern of the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentFilter {
    /// A regular expression, matched in linear time.
    pub pattern: String,
    /// The action on a match.
    pub action: FilterAction,
    /// The filter's name. In brackets it replaces a redacted match. At most 100 characters.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub label: Option<String>,
}

/// The use of a built-in pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltinContentFilter {
    /// The pattern.
    pub slug: BuiltinFilter,
    /// The action on a match.
    pub action: FilterAction,
}

/// The built-in patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuiltinFilter {
    /// E-mail addresses.
    Email,
    /// Telephone numbers.
    Phone,
    /// Social security numbers of the United States.
    Ssn,
    /// Payment card numbers whose check digit is right.
    CreditCard,
    /// IP addresses, version 4 and 6.
    IpAddress,
    /// Keys and tokens of well-known services, private keys, and values labelled as a password.
    Secrets,
    /// Attempts to make a model disregard its instructions.
    RegexPromptInjection,
}

impl BuiltinFilter {
    /// All patterns.
    pub const ALL: [Self; 7] = [
        Self::Email,
        Self::Phone,
        Self::Ssn,
        Self::CreditCard,
        Self::IpAddress,
        Self::Secrets,
        Self::RegexPromptInjection,
    ];

    /// Returns the name on all interfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Phone => "phone",
            Self::Ssn => "ssn",
            Self::CreditCard => "credit-card",
            Self::IpAddress => "ip-address",
            Self::Secrets => "secrets",
            Self::RegexPromptInjection => "regex-prompt-injection",
        }
    }

    /// Returns the pattern of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|filter| filter.as_str() == name)
    }

    /// Returns the label for error messages. In brackets it replaces a redacted match.
    pub fn label(self) -> &'static str {
        match self {
            Self::Email => "EMAIL",
            Self::Phone => "PHONE",
            Self::Ssn => "SSN",
            Self::CreditCard => "CREDIT_CARD",
            Self::IpAddress => "IP_ADDRESS",
            Self::Secrets => "SECRET",
            Self::RegexPromptInjection => "PROMPT_INJECTION",
        }
    }
}

/// A version of a guardrail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardrailVersion {
    /// The guardrail in this version.
    pub guardrail: Guardrail,
    /// The time of the change to this version.
    pub changed_at: DateTime<Utc>,
    /// The name of the [`crate::audit::Actor`] who made the change.
    pub changed_by: String,
}

/// A name of 1 to 200 characters without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardrailName(String);

impl GuardrailName {
    /// Checks length and characters.
    pub fn try_new(name: &str) -> Result<Self, InvalidGuardrailName> {
        let fits = (1..=200).contains(&name.chars().count());
        if fits && !name.chars().any(char::is_control) && !name.trim().is_empty() {
            Ok(Self(name.to_owned()))
        } else {
            Err(InvalidGuardrailName)
        }
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
