//! A request or an answer survives a round trip by both halves of one format.
//!
//! If a wire is less expressive than the canonical form, [`requests`] and [`answers`] define the expected change. The
//! generators stay within the wire's capabilities, so every value must be written.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod answers;
mod form;
mod provider_inputs;
mod requests;

use answers::{answer_round_trip, input_and_answers};
use proptest::prelude::*;
use provider_inputs::provider_input;
use requests::request_round_trip;
use wires::formats::Shape;

macro_rules! round_trips {
    ($($form:ident => $requests:ident, $answers:ident;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $requests(provider_input in provider_input(Shape::$form)) {
                    request_round_trip(Shape::$form, &provider_input)?;
                }

                #[test]
                fn $answers((provider_input, given) in input_and_answers(Shape::$form)) {
                    answer_round_trip(Shape::$form, &provider_input, &given)?;
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
