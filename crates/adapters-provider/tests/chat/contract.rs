//! The contract of a provider of the `chat-completions` wire, by each method.

use adapters_provider::ProviderSettings;
use domain::routing::{ChatMethod, Endpoint, Wire};
use domain::testing::contract::{Providers, RemoteProviders};

use crate::model::by;
use crate::support;
use crate::support::scripted::{OPAQUE, ScriptedServer};

const STATED: &str = r#"{"choices":[{"message":{"role":"assistant","content":"{\"q0\":0.75}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":300,"completion_tokens":40}}"#;
/// Log-probabilities of 3/4 and 1/4 for the two labels.
const LABELLED: &str = r#"{"choices":[{"message":{"role":"assistant","content":"A"},"logprobs":{"content":[{"token":"A","logprob":-0.2876820724517809,"top_logprobs":[{"token":"A","logprob":-0.2876820724517809},{"token":"B","logprob":-1.3862943611198906}]}]}}],"usage":{"prompt_tokens":100,"completion_tokens":1}}"#;

async fn remote(method: ChatMethod, answer: &'static str) -> RemoteProviders {
    let (server, base_url) = ScriptedServer::start(answer).await;
    let settings = ProviderSettings::new("acme".parse().unwrap(), base_url, Wire::ChatCompletions);
    let provider = support::provider_of(&support::settings(), Wire::ChatCompletions, settings);
    let endpoint = Endpoint { chat: by(method), ..support::endpoint_of(Wire::ChatCompletions) };
    server.subject(provider, endpoint, OPAQUE)
}

mod structured {
    use super::*;

    async fn remote_provider() -> RemoteProviders {
        remote(ChatMethod::Structured, STATED).await
    }

    async fn provider() -> Providers {
        remote_provider().await.providers
    }

    domain::decision_provider_contract!(
        #[tokio::test]
        crate::contract::structured::provider
    );
    domain::remote_provider_contract!(
        #[tokio::test]
        crate::contract::structured::remote_provider
    );
}

mod logprobs {
    use super::*;

    async fn remote_provider() -> RemoteProviders {
        remote(ChatMethod::Logprobs, LABELLED).await
    }

    async fn provider() -> Providers {
        remote_provider().await.providers
    }

    domain::decision_provider_contract!(
        #[tokio::test]
        crate::contract::logprobs::provider
    );
    domain::remote_provider_contract!(
        #[tokio::test]
        crate::contract::logprobs::remote_provider
    );
}
