//! Members of a request that not every server takes.

/// A member that can be left out: the question stays the same without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    /// `reasoning_effort: "none"`, which switches reasoning off at many hosted models.
    ReasoningEffort,
    /// `chat_template_kwargs: {"enable_thinking": false}`, which does at servers of open models.
    ChatTemplateKwargs,
    /// `temperature: 0`. Models that always reason take no other than 1.
    Temperature,
    /// `max_tokens`. Without it the same number goes as `max_completion_tokens`, its name at newer models.
    MaxTokens,
    /// `max_completion_tokens`, where it stands in for `max_tokens`. Without both nothing bounds the answer but the
    /// model's own limit.
    MaxCompletionTokens,
    /// `response_format` with a JSON schema. The prompt tells the form as well.
    ResponseFormat,
}

impl Member {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::ReasoningEffort,
        Self::ChatTemplateKwargs,
        Self::Temperature,
        Self::MaxTokens,
        Self::MaxCompletionTokens,
        Self::ResponseFormat,
    ];

    /// Its name in the body.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReasoningEffort => "reasoning_effort",
            Self::ChatTemplateKwargs => "chat_template_kwargs",
            Self::Temperature => "temperature",
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::ResponseFormat => "response_format",
        }
    }

    fn bit(self) -> u8 {
        match self {
            Self::ReasoningEffort => 1,
            Self::ChatTemplateKwargs => 1 << 1,
            Self::Temperature => 1 << 2,
            Self::MaxTokens => 1 << 3,
            Self::MaxCompletionTokens => 1 << 4,
            Self::ResponseFormat => 1 << 5,
        }
    }
}

/// A set of members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Members(u8);

impl Members {
    /// With this one.
    #[must_use]
    pub fn with(self, member: Member) -> Self {
        Self(self.0 | member.bit())
    }

    /// With all of those.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether it is among them.
    pub fn has(self, member: Member) -> bool {
        self.0 & member.bit() != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_apart() {
        for member in Member::ALL {
            let one = Members::default().with(member);
            assert_eq!(Member::ALL.into_iter().filter(|other| one.has(*other)).collect::<Vec<_>>(), [member]);
            assert_eq!(one.and(one), one);
        }
    }
}
