//! The schemas of Decisions bodies, whose readers and writers are in the crate `wires`.

pub(crate) mod gemini;
pub(crate) mod openai;
mod question;
pub(crate) mod sglang;
pub(crate) mod system_one;

#[cfg(test)]
mod tests {
    use super::gemini::GeminiDecisionsRequest;
    use super::openai::{OpenAiDecisionsRequest, OpenAiQuestion};
    use super::sglang::SglangDecisionsRequest;
    use super::system_one::DecisionsRequest;
    use domain::question::{MAX_LEVELS, MAX_OPTIONS};
    use std::collections::BTreeSet;
    use utoipa::{PartialSchema, ToSchema};
    use wires::client::{ALL_MEMBERS, SYSTEM_ONE_MEMBERS};

    fn described<T: ToSchema>() -> BTreeSet<String> {
        let schema = serde_json::to_value(T::schema()).unwrap();
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn described_members_are_those_that_are_read() {
        let names = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|&name| name.to_owned()).collect() };
        assert_eq!(described::<DecisionsRequest>(), names(&SYSTEM_ONE_MEMBERS));
        let read = names(&ALL_MEMBERS);
        let mut openai = described::<OpenAiDecisionsRequest>();
        // Described as ignored.
        assert!(openai.remove("prompt_cache_key") && openai.remove("prompt_cache_options"));
        for described in [openai, described::<GeminiDecisionsRequest>(), described::<SglangDecisionsRequest>()] {
            assert!(described.is_subset(&read), "{described:?}");
        }
    }

    #[test]
    fn described_limits_are_those_of_the_canonical_form() {
        let question = serde_json::to_value(OpenAiQuestion::schema()).unwrap();
        let most = |member: &str| question["properties"][member]["maxItems"].as_u64();
        assert_eq!((most("choices"), most("levels")), (Some(MAX_OPTIONS as u64), Some(MAX_LEVELS as u64)));
    }
}
