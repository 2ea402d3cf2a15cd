//! Clients that disconnect before the response.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Upstream, decisions};

use crate::costs::rows;
use crate::gateway::{ANSWER, TestGateway, body, disconnect_early};

#[tokio::test]
async fn disconnect_cancels_provider_call_and_is_recorded() -> Result<()> {
    for behaviour in [Behaviour::HangBeforeHeaders, Behaviour::HangAfterHeaders] {
        let alpha = Upstream::start(behaviour).await?;
        let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
        let gateway = TestGateway::with_providers(&alpha, &beta, 60_000).await?;
        let call = decisions(&gateway.inference.secret, body("acme/pair"));
        disconnect_early(&call, gateway.server.address(), &alpha).await?;
        let since = Instant::now();
        loop {
            let listed = gateway.instance.json(&["usage", "list"]).await?;
            if let [row] = rows(&listed)?.as_slice() {
                ensure!(row["outcome"] == "cancelled", "{row}");
                break;
            }
            ensure!(since.elapsed() < Duration::from_secs(10), "no record: {listed}");
            sleep(Duration::from_millis(50)).await;
        }
        ensure!(beta.take_requests().is_empty(), "another provider was called after the disconnect");
        gateway.server.ensure_healthy().await?;
    }
    Ok(())
}
