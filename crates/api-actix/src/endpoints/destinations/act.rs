//! Tests a destination, and retries its dead letters.

use crate::endpoints::prelude::*;
use crate::http::operation::if_match;

/// `POST …/observability/destinations/{id}/test`: sends a test delivery.
pub(crate) const TEST: Route = Route::management(
    Method::Post,
    "/observability/destinations/{id}/test",
    |call, by, _| Box::pin(handle_test(call, by)),
    tags::DESTINATIONS,
    describe_test,
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

fn describe_test() -> Operation {
    let body = BodySchema::data::<TestedView>("DestinationTestResponse", "A destination that accepted a test.");
    let description = "Sends a delivery without traces, also to a disabled destination. It must answer with 2xx or 400; \
                       otherwise this is 400 with the reason.";
    Operation::management("testDestination", "Test a trace destination", description)
        .answer(body, "The destination accepts traces", &[400, 404, 409, 412])
        .parameter(if_match())
        .parameter(path("id", "The destination's id, or its unique name."))
}

async fn handle_test(call: &Call<'_>, by: &Authority) -> Outcome {
    let tested = call.gateway.services.destinations.test(&call.change(by)?, &call.id()?).await?;
    Ok(HttpResponse::Ok().json(Data { data: TestedView { id: tested.id.to_string(), reached: true } }))
}

/// `POST …/observability/destinations/{id}/retry`: makes dead letters due again.
pub(crate) const RETRY: Route = Route::management(
    Method::Post,
    "/observability/destinations/{id}/retry",
    |call, by, _| Box::pin(handle_retry(call, by)),
    tags::DESTINATIONS,
    describe_retry,
);

/// The number of dead letters that are due again.
#[derive(Serialize, ToSchema)]
#[schema(as = RetriedDeadLetters)]
struct RetriedView {
    retried_count: u64,
}

fn describe_retry() -> Operation {
    let body = BodySchema::data::<RetriedView>("DestinationRetryResponse", "Dead letters that are due again.");
    Operation::management("retryDeadLetters", "Retry dead letters", "Makes the destination's dead letters due now.")
        .answer(body, "The dead letters are queued for delivery", &[400, 404, 409, 412])
        .parameter(if_match())
        .parameter(path("id", "The destination's id, or its unique name."))
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
