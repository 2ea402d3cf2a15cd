//! `GET /providers`: the providers and their health. `PATCH /providers/{slug}`: pauses one.

use domain::operation::PauseProviderError;
use domain::routing::ProviderStatus;

use crate::endpoints::prelude::*;
use crate::http::members::{MemberNames, Members, invalid};

pub(crate) const LIST: Route = Route::memory(Get, "/providers", tags::MODELS, handle)
    .operation("listProviders", "List the providers")
    .description("The providers with at least one configured endpoint, including the sandbox.")
    .headers(&[IF_NONE_MATCH])
    .answer(BodySchema::of::<List<'_>>, "The providers");

/// `PATCH /providers/{slug}`: pauses or resumes a provider.
pub(crate) const UPDATE: Route =
    Route::management(Patch, "/providers/{slug}", tags::OPERATION, handler!(handle_update, payload))
        .operation("updateProvider", "Pause or resume a provider")
        .description(
            "A paused provider gets no new attempts: here at once, on other servers within a second, and after \
             restarts. Running attempts end. A model without another endpoint is 503.",
        )
        .body(BodySchema::of::<ProviderChange>)
        .answer(|| BodySchema::data::<View<'_>>("UpdatedProviderResponse", "A provider."), "The provider");

/// The members that a record has and that only the service sets.
const READ_ONLY: [&str; 9] = [
    "name",
    "slug",
    "privacy_policy_url",
    "terms_of_service_url",
    "status_page_url",
    "headquarters",
    "datacenters",
    "endpoint_count",
    "health",
];

/// The change of a provider.
#[derive(ToSchema)]
#[schema(as = ProviderChange)]
#[expect(dead_code, reason = "the schema of a body that is read by hand")]
struct ProviderChange {
    /// True: the provider gets no new attempts.
    paused: bool,
}

async fn handle_update(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let slug = call.id()?;
    let paused = read_paused(call.read_json(payload).await?.text()?, &slug)?;
    let provider = call.routed().pause_provider.execute(by, &slug, paused).await?;
    Ok(Data::respond(StatusCode::OK, View::new(&provider)))
}

fn read_paused(text: &str, of: &str) -> Result<bool, ApiError> {
    let members = Members::read(text, MemberNames { writable: &["paused"], read_only: &READ_ONLY, neutral: &[] })?;
    members.fixed("slug", Some(of))?;
    let paused = members.present("paused").ok_or_else(|| ApiError::invalid("No update fields provided"))?;
    paused.text().parse().map_err(|_| invalid("paused", "must be true or false"))
}

api_error!(PauseProviderError {
    pass: Restricted, Store;
    kind: NotFound;
});

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
    /// True if the operator paused it: it gets no new attempts.
    paused: bool,
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
            paused: provider.is_paused,
            health: Health {
                healthy: endpoints.healthy,
                throttled_for_some: endpoints.throttled_for_some,
                throttled: endpoints.throttled,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paused_is_a_boolean_beside_the_members_of_a_record() {
        let read = |text: &str| read_paused(text, "x").map_err(|error| error.text().to_owned());
        assert_eq!(read(r#"{"paused":true}"#), Ok(true));
        assert_eq!(read(r#"{"slug":"x","health":{"healthy":1},"paused":false}"#), Ok(false));
        assert_eq!(read(r#"{"slug":"y","paused":true}"#).unwrap_err(), "slug: is \"x\" here and cannot be changed");
        for value in ["1", "\"true\"", "[true]", "{}"] {
            let expected = "paused: must be true or false";
            assert_eq!(read(&format!(r#"{{"paused":{value}}}"#)).unwrap_err(), expected, "{value}");
        }
        for body in [r#"{"slug":"x"}"#, r#"{"paused":null}"#] {
            assert_eq!(read(body).unwrap_err(), "No update fields provided");
        }
        assert_eq!(
            read(r#"{"pause":true}"#).unwrap_err(),
            r#"unknown member "pause"; the nearest known member is "paused""#
        );
        assert!(read(r#"{"paused":true,"paused":false}"#).is_err() && read("[]").is_err());
    }
}
