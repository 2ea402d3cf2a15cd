//! Tests a destination, and retries its dead letters.

use crate::endpoints::prelude::*;

/// `POST …/observability/destinations/{id}/test`: sends a test delivery.
pub(crate) const TEST: Route =
    Route::management(Post, "/observability/destinations/{id}/test", tags::DESTINATIONS, handler!(handle_test))
        .operation("testDestination", "Test a trace destination")
        .description(
            "Sends a delivery without traces, also to a disabled destination. It must answer with 2xx or 400; \
             otherwise this is 400 with the reason. Messages that wait after a failure are due at once.",
        )
        .headers(&[IF_MATCH])
        .answer(
            || BodySchema::data::<TestedView>("DestinationTestResponse", "A destination that accepted a test."),
            "The destination accepts traces",
        );

/// A destination that accepted a test delivery.
#[derive(Serialize, ToSchema)]
#[schema(as = TestedDestination)]
struct TestedView {
    /// The destination's id.
    id: String,
    /// Always true.
    reached: bool,
}

async fn handle_test(call: &Call<'_>, by: &Authority) -> Outcome {
    let tested = call.gateway.services.destinations.test(&call.change(by)?, &call.id()?).await?;
    Ok(HttpResponse::Ok().json(Data { data: TestedView { id: tested.id.to_string(), reached: true } }))
}

/// `POST …/observability/destinations/{id}/retry`: makes dead letters due again.
pub(crate) const RETRY: Route =
    Route::management(Post, "/observability/destinations/{id}/retry", tags::DESTINATIONS, handler!(handle_retry))
        .operation("retryDeadLetters", "Retry dead letters")
        .description("Makes the destination's dead letters, and messages that wait after a failure, due now.")
        .headers(&[IF_MATCH])
        .answer(
            || BodySchema::data::<RetriedView>("DestinationRetryResponse", "Messages that are due again."),
            "The messages are queued for delivery",
        );

/// The number of messages that are due again.
#[derive(Serialize, ToSchema)]
#[schema(as = RetriedDeadLetters)]
struct RetriedView {
    retried_count: u64,
}

async fn handle_retry(call: &Call<'_>, by: &Authority) -> Outcome {
    let name = call.id()?;
    let id = match name.parse() {
        // A destination that is not stored may have dead letters, too.
        Ok(id) => id,
        Err(_) => call.gateway.services.destinations.get(by, &name).await?.id,
    };
    let retried_count = call.gateway.services.retry_dead_letters.execute(&call.change(by)?, id).await?;
    Ok(HttpResponse::Ok().json(Data { data: RetriedView { retried_count } }))
}
