//! What goes out by a wire and comes in by the same wire is what it was; only the binary knows both sides.
//!
//! Where a wire is poorer than the canonical form, [`requests`] and [`answers`] say exactly what becomes of what it
//! cannot hold, and the generators keep to what it can carry at all: everything they make must be written.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod answers;
mod form;
mod inquiries;
mod requests;

use answers::{asked_and_given, back_and_there};
use form::Form;
use inquiries::provider_input;
use proptest::prelude::*;
use requests::there_and_back;

macro_rules! round_trips {
    ($($form:ident => $requests:ident, $answers:ident;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $requests(provider_input in provider_input(Form::$form)) {
                    there_and_back(Form::$form, &provider_input)?;
                }

                #[test]
                fn $answers((provider_input, given) in asked_and_given(Form::$form)) {
                    back_and_there(Form::$form, &provider_input, &given)?;
                }
            )*
        }
    };
}

round_trips! {
    SystemOne => system_one_requests, system_one_answers;
    OpenAi => openai_requests, openai_answers;
    Gemini => gemini_requests, gemini_answers;
    Sglang => sglang_requests, sglang_answers;
}
