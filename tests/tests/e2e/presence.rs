//! A caller that leaves before the answer.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Upstream, decisions};

use crate::costs::rows;
use crate::world::{ANSWER, World, body, leave_early};

#[tokio::test]
async fn when_the_caller_leaves_the_provider_is_left_and_the_request_is_on_record() -> Result<()> {
    for behaviour in [Behaviour::HangBeforeHeaders, Behaviour::HangAfterHeaders] {
        let alpha = Upstream::start(behaviour).await?;
        let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
        let world = World::with_providers(&alpha, &beta, 60_000).await?;
        let call = decisions(&world.inference.secret, body("acme/pair"));
        leave_early(&call, world.server.address(), &alpha).await?;
        let since = Instant::now();
        loop {
            let listed = world.instance.json(&["usage", "list"]).await?;
            if let [row] = rows(&listed)?.as_slice() {
                ensure!(row["outcome"] == "cancelled", "{row}");
                break;
            }
            ensure!(since.elapsed() < Duration::from_secs(10), "no record: {listed}");
            sleep(Duration::from_millis(50)).await;
        }
        ensure!(beta.take_requests().is_empty(), "another provider was asked for nobody");
        world.server.ensure_healthy().await?;
    }
    Ok(())
}
