//! The calls of an attempt stay within their bound for any behaviour of the server.

use std::sync::{Arc, LazyLock};

use domain::question::ProviderInput;
use domain::routing::{ChatMethod, ChatSettings};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::model::{Does, Server, by, call, choice_of, error, label_answer, saying, stated_answer};
use crate::support::provider_inputs::provider_input;
use crate::support::{self, AMPLE};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

const MEMBERS: [&str; 6] = [
    "reasoning_effort",
    "chat_template_kwargs",
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "response_format",
];

fn of_label(body: &Value) -> bool {
    body["logprobs"] == true
}

fn good(body: &Value) -> Does {
    let likely = |_: &str| 1.0;
    Does::Answer(200, if of_label(body) { label_answer(body, &likely) } else { stated_answer(body) })
}

/// Returns the bound and the number of sent bytes.
async fn measure(server: &Server, provider_input: &Arc<ProviderInput>, chat: ChatSettings) -> (u64, u64) {
    let call = call(provider_input, chat, AMPLE);
    let sent = call.sent.clone();
    let bound = server.provider().outbound_bytes(&call.endpoint, provider_input);
    let ended = server.provider().decide(call).await;
    let said = ended.map_or_else(|failure| failure.sent_bytes, |answer| answer.sent_bytes);
    assert_eq!(said, sent.get());
    (bound, sent.get())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: domain::testing::property_cases(48, ProptestConfig::default().cases), failure_persistence: None, ..ProptestConfig::default() })]

    /// A random server: it answers, rejects members, or reports no log-probabilities.
    #[test]
    fn sent_bytes_never_exceed_bound(
        asked in provider_input(),
        whims in prop::collection::vec(0_usize..14, 1..40),
        method in prop::sample::select(vec![ChatMethod::Logprobs, ChatMethod::Structured, ChatMethod::Auto]),
        top_logprobs in 2_usize..21,
    ) {
        RUNTIME.block_on(async {
            let server = Server::start(move |place, body| match whims[place % whims.len()] {
                whim @ 0..6 => Does::Answer(400, error(&format!("{} is not supported", MEMBERS[whim]))),
                6 => Does::Answer(400, error("logprobs are not supported")),
                7 => Does::Answer(200, saying("A")),
                8 => Does::Answer(500, json!({})),
                _ => good(body),
            })
            .await;
            let chat = ChatSettings { top_logprobs, min_label_probability_milli: 0, ..by(method) };
            for attempt in 0..5 {
                let (bound, sent) = measure(&server, &asked, chat).await;
                assert!(sent <= bound, "attempt {attempt}: {sent} bytes of at most {bound}");
            }
        });
    }
}

/// The worst unknown server: it rejects one member after the other, and then reports no log-probabilities. The bound
/// must be reached, or it is useless.
#[rstest]
#[case(ChatMethod::Logprobs, 5)]
#[case(ChatMethod::Structured, 7)]
#[case(ChatMethod::Auto, 12)]
#[tokio::test]
async fn sent_bytes_nearly_reach_bound(#[case] method: ChatMethod, #[case] calls: usize) {
    let mut server = Server::start(move |_, body| {
        let label = of_label(body);
        let spare = if label { &MEMBERS[..4] } else { &MEMBERS[..] };
        match spare.iter().find(|member| !body[**member].is_null()) {
            Some(member) => Does::Answer(400, error(&format!("{member} is not supported"))),
            None if label => Does::Answer(400, error("logprobs are not supported")),
            None => good(body),
        }
    })
    .await;
    let asked = choice_of(2);
    let (bound, sent) = measure(&server, &asked, by(method)).await;
    // Members omitted from label requests are omitted from the first object request too.
    let made = server.requests().len();
    assert_eq!(made, if method == ChatMethod::Auto { 8 } else { calls });
    assert!(sent <= bound, "{sent} {bound}");
    if method != ChatMethod::Auto {
        assert!(bound * 3 / 4 < sent, "{sent} bytes were bounded by {bound}");
    }
}

#[tokio::test]
async fn bound_shrinks_with_known_model_properties() {
    let server = Server::start(|_, body| good(body)).await;
    for (options, method) in [(2, ChatMethod::Structured), (45, ChatMethod::Logprobs)] {
        let asked = choice_of(options);
        let (first, sent) = measure(&server, &asked, by(method)).await;
        let (second, again) = measure(&server, &asked, by(method)).await;
        assert_eq!(sent, again);
        assert!(second < first, "{method:?}: one objection at most is expected of a server that took it before");
        assert!(second <= sent * 21 / 10, "{method:?}: {second} for {sent}");
    }
}

#[tokio::test]
async fn sent_bytes_stay_within_bound_when_server_changes() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let strict = Arc::new(AtomicBool::new(false));
    let changed = Arc::clone(&strict);
    let server = Server::start(move |_, body| {
        let objected = changed.load(Ordering::SeqCst).then(|| MEMBERS[..3].iter().find(|name| !body[**name].is_null()));
        match objected.flatten() {
            Some(member) => Does::Answer(400, error(&format!("{member} is not supported"))),
            None => good(body),
        }
    })
    .await;
    let (asked, chat) = (choice_of(2), by(ChatMethod::Logprobs));
    server.decide(&asked, chat).await.unwrap();
    strict.store(true, Ordering::SeqCst);
    let (bound, sent) = measure(&server, &asked, chat).await;
    assert!(sent <= bound);
    // Two of three members were rejected; the third follows.
    server.decide(&asked, chat).await.unwrap();
    let (bound, sent) = measure(&server, &asked, chat).await;
    assert!(sent <= bound && bound <= 2 * sent + 32, "{sent} {bound}");
}

#[tokio::test]
async fn outbound_bytes_is_zero_for_unsupported_questions() {
    let server = Server::start(|_, body| good(body)).await;
    let opaque = support::provider_input(r#"{"model":"m","state":"s","questions":"opaque"}"#);
    assert_eq!(measure(&server, &opaque, by(ChatMethod::Auto)).await, (0, 0));
    let alone = choice_of(1);
    assert_eq!(measure(&server, &alone, by(ChatMethod::Auto)).await, (0, 0), "the answer is known");
}
