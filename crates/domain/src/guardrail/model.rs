//! A guardrail's record.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::InvalidGuardrailName;
use crate::budget::SpendLimit;
use crate::ids::{GuardrailId, WorkspaceId};
use crate::usage::FilterAction;

/// A named set of rules that keys of one workspace can hold, or that a whole workspace is under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guardrail {
    /// Its id.
    pub id: GuardrailId,
    /// The workspace whose keys can hold it.
    pub workspace_id: WorkspaceId,
    /// What people call it.
    pub name: GuardrailName,
    /// What keys that hold it may spend, each on its own.
    pub budget: Option<SpendLimit>,
    /// Everything else that it rules.
    pub rules: GuardrailRules,
    /// From 1; every change makes it one more.
    pub version: u32,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub updated_at: Option<DateTime<Utc>>,
}

/// What a guardrail rules beside money. Member names are those of every surface and of stores.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuardrailRules {
    /// At most 1,000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Canonical slugs of the only models that may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_models: Option<Vec<String>>,
    /// Canonical slugs of models that may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored_models: Option<Vec<String>>,
    /// What the models of [`Self::ignored_models`] were called beside their slugs when the list was written: ids without
    /// variants. A catalogue may give a model another slug, or drop it and take it in again; a ban outlives that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored_model_ids: Vec<String>,
    /// Slugs of the only providers that may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_providers: Option<Vec<String>>,
    /// Slugs of providers that may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored_providers: Option<Vec<String>>,
    /// What providers may do with data.
    #[serde(flatten)]
    pub data_policy: DataPolicyRules,
    /// Patterns of the operator's own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content_filters: Vec<ContentFilter>,
    /// Patterns that come with the service.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content_filter_builtins: Vec<BuiltinContentFilter>,
}

/// What providers may do with data, as far as endpoint records can answer it. `None` is no rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataPolicyRules {
    /// True: only endpoints that keep nothing; for every group that says nothing itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr: Option<bool>,
    /// The same for models of `anthropic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr_anthropic: Option<bool>,
    /// The same for models of `openai`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr_openai: Option<bool>,
    /// The same for models of `google`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr_google: Option<bool>,
    /// The same for models of `x-ai`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr_xai: Option<bool>,
    /// The same for models of everybody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_zdr_other: Option<bool>,
    /// False: no endpoint that costs something and collects what it is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_paid_model_training: Option<bool>,
    /// False: no endpoint that costs nothing and collects what it is sent.
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

    /// The rule of that name.
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

/// A pattern of the operator's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentFilter {
    /// A regular expression that is matched in linear time.
    pub pattern: String,
    /// What happens to a match.
    pub action: FilterAction,
    /// What it is called, and what stands in for a match in brackets; at most 100 characters.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub label: Option<String>,
}

/// A pattern that comes with the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltinContentFilter {
    /// Which.
    pub slug: BuiltinFilter,
    /// What happens to a match.
    pub action: FilterAction,
}

/// The patterns that come with the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuiltinFilter {
    /// Addresses of electronic mail.
    Email,
    /// Telephone numbers.
    Phone,
    /// Social security numbers of the United States.
    Ssn,
    /// Payment card numbers whose check digit is right.
    CreditCard,
    /// Addresses of the internet protocol, both versions.
    IpAddress,
    /// Keys and tokens of well-known services, private keys, and values that are called a password.
    Secrets,
    /// Attempts to make a model disregard its instructions.
    RegexPromptInjection,
}

impl BuiltinFilter {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::Email,
        Self::Phone,
        Self::Ssn,
        Self::CreditCard,
        Self::IpAddress,
        Self::Secrets,
        Self::RegexPromptInjection,
    ];

    /// Its name on every surface.
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

    /// The filter of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|filter| filter.as_str() == name)
    }

    /// What it is called in refusals, and, in brackets, what stands in for a match.
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

/// A state that a guardrail was in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardrailVersion {
    /// The guardrail as it was.
    pub guardrail: Guardrail,
    /// When it came to be so.
    pub changed_at: DateTime<Utc>,
    /// Who did it: the name of an [`crate::audit::Actor`].
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

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
