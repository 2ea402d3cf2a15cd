//! Request members that some servers reject.

use domain::named_enum;

named_enum! {
    /// An optional member: the question stays the same without it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Member {
        /// `reasoning_effort: "none"`, which disables reasoning at many hosted models.
        ReasoningEffort = "reasoning_effort",
        /// `chat_template_kwargs: {"enable_thinking": false}`, which disables reasoning at servers of open models.
        ChatTemplateKwargs = "chat_template_kwargs",
        /// `temperature: 0`. Models that always reason accept only 1.
        Temperature = "temperature",
        /// `max_tokens`. Without it the limit is sent as `max_completion_tokens`, its name at newer models.
        MaxTokens = "max_tokens",
        /// `max_completion_tokens`, the fallback for `max_tokens`. Without both only the model's own limit bounds the
        /// answer.
        MaxCompletionTokens = "max_completion_tokens",
        /// `response_format` with a JSON schema. The prompt describes the format as well.
        ResponseFormat = "response_format",
    }
}

/// A set of members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Members(u8);

impl Members {
    /// Adds a member.
    #[must_use]
    pub fn with(self, member: Member) -> Self {
        Self(self.0 | 1 << member as u8)
    }

    /// Adds all members of another set.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns true if the set contains the member.
    pub fn has(self, member: Member) -> bool {
        self.0 & 1 << member as u8 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_contain_only_added_member() {
        for member in Member::ALL {
            let one = Members::default().with(member);
            assert_eq!(Member::ALL.into_iter().filter(|other| one.has(*other)).collect::<Vec<_>>(), [member]);
            assert_eq!(one.and(one), one);
        }
    }
}
