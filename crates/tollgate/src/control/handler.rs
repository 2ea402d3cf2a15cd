//! The answers of the control socket: the status of the server, and the test of a provider.

use api_actix::ServerHandle;
use async_trait::async_trait;
use serde_json::json;

use super::{ControlHandler, ControlRequest};

#[async_trait]
impl ControlHandler for ServerHandle {
    async fn answer(&self, request: ControlRequest) -> String {
        let answer = match request {
            ControlRequest::Status => {
                self.status().await.map_err(|error| error.to_string()).map(|status| serde_json::to_string(&status))
            }
            ControlRequest::TestProvider { provider, model } => {
                let tested = self.test_provider(&provider, model.as_deref()).await;
                tested.map_err(|error| error.to_string()).map(|report| serde_json::to_string(&report))
            }
        };
        match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => json!({ "error": error.to_string() }).to_string(),
            Err(error) => json!({ "error": error }).to_string(),
        }
    }
}
