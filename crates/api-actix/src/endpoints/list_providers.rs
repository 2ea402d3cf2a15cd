//! `GET /providers`: the providers and their health.

use actix_web::HttpResponse;
use domain::error::ErrorKind;
use domain::routing::ProviderStatus;
use serde::Serialize;
use utoipa::openapi::path::OperationBuilder;

use crate::http::edge::Call;
use crate::http::error::ApiError;
use crate::http::etag::TaggedBody;
use crate::http::routes::{Handler, KeyedHandler, Method, Route};
use crate::openapi::operations::{COMMON_STATUSES, if_none_match, operation, responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route =
    Route::new(Method::Get, "/providers", Handler::Keyed(KeyedHandler::Memory(handle)), tags::MODELS, describe);

fn describe() -> OperationBuilder {
    operation("listProviders", "List the providers")
        .description(Some("The providers with at least one configured endpoint, including the sandbox."))
        .parameter(if_none_match())
        .responses(responses("The providers", "ProvidersResponse", &[304], &COMMON_STATUSES))
}

fn handle(call: &Call<'_>) -> Result<HttpResponse, ApiError> {
    let providers = call.gateway.services.routed.current().list_providers.execute();
    let data = providers.iter().map(View::new).collect();
    let body = serde_json::to_string(&List { data })
        .map_err(|error| ApiError::from_kind(ErrorKind::Internal).caused_by(error))?;
    Ok(TaggedBody::new(body).respond(call.request))
}

#[derive(Serialize)]
struct List<'a> {
    data: Vec<View<'a>>,
}

/// A provider in the format that existing clients decode, with the health of its endpoints. Other members are always
/// null.
#[derive(Serialize)]
struct View<'a> {
    name: &'a str,
    slug: &'a str,
    privacy_policy_url: Option<()>,
    terms_of_service_url: Option<()>,
    status_page_url: Option<()>,
    headquarters: Option<()>,
    datacenters: Option<()>,
    endpoint_count: usize,
    health: Health,
}

/// The number of endpoints, by throttling.
#[derive(Serialize)]
struct Health {
    healthy: usize,
    throttled_for_some: usize,
    throttled: usize,
}

impl<'a> View<'a> {
    fn new(provider: &'a ProviderStatus) -> Self {
        let endpoints = provider.endpoints;
        Self {
            name: &provider.name,
            slug: provider.slug.as_str(),
            privacy_policy_url: None,
            terms_of_service_url: None,
            status_page_url: None,
            headquarters: None,
            datacenters: None,
            endpoint_count: endpoints.total(),
            health: Health {
                healthy: endpoints.healthy,
                throttled_for_some: endpoints.throttled_for_some,
                throttled: endpoints.throttled,
            },
        }
    }
}
