//! `GET /providers`: the providers and their health.

use domain::routing::ProviderStatus;

use crate::endpoints::prelude::*;
use crate::http::response::TaggedBody;

pub(crate) const ROUTE: Route = Route::memory(Method::Get, "/providers", handle, tags::MODELS, describe);

fn describe() -> Operation {
    Operation::new("listProviders", "List the providers")
        .description("The providers with at least one configured endpoint, including the sandbox.")
        .parameter(if_none_match())
        .answer(BodySchema::of::<List<'_>>(), "The providers", &[304])
}

fn handle(call: &Call<'_>) -> Outcome {
    let providers = call.routed().list_providers.execute();
    let data = providers.iter().map(View::new).collect();
    Ok(TaggedBody::json(&List { data })?.respond(call.request))
}

/// A list of providers.
#[derive(Serialize, ToSchema)]
#[schema(as = ProvidersResponse)]
struct List<'a> {
    data: Vec<View<'a>>,
}

/// A provider. The members for its addresses and locations are always null.
#[derive(Serialize, ToSchema)]
#[schema(as = Provider)]
struct View<'a> {
    name: &'a str,
    /// The slug, as used in preferences.
    slug: &'a str,
    #[schema(required, value_type = Option<String>)]
    privacy_policy_url: Option<()>,
    #[schema(required, value_type = Option<String>)]
    terms_of_service_url: Option<()>,
    #[schema(required, value_type = Option<String>)]
    status_page_url: Option<()>,
    #[schema(required, value_type = Option<String>)]
    headquarters: Option<()>,
    #[schema(required, value_type = Option<Vec<String>>)]
    datacenters: Option<()>,
    #[schema(value_type = u64, minimum = 1)]
    endpoint_count: usize,
    health: Health,
}

/// The number of the provider's endpoints, by throttling.
#[derive(Serialize, ToSchema)]
#[schema(as = ProviderHealth)]
struct Health {
    /// Not throttled for any workspace.
    #[schema(value_type = u64)]
    healthy: usize,
    /// Throttled for some workspaces because of their own failures.
    #[schema(value_type = u64)]
    throttled_for_some: usize,
    /// Throttled for all workspaces.
    #[schema(value_type = u64)]
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
