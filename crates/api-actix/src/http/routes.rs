//! The route table. The edge, the OpenAPI document and the tests read it.

use Method::{Delete, Get, Patch, Post};

use domain::model::DefaultModality;

use crate::endpoints::destinations::DestinationOperation as OnDestinations;
use crate::endpoints::guardrails::GuardrailOperation as OnGuardrails;
use crate::wires::dispatch::Entry;

/// The target of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// Served without authentication.
    Open(OpenRoute),
    /// Served to authenticated callers.
    Operation(Operation),
}

impl Target {
    /// Returns true if the target awaits nothing except authentication.
    pub(crate) fn is_answered_from_memory(self) -> bool {
        match self {
            Self::Operation(
                Operation::GetModel
                | Operation::CountModels
                | Operation::ListModels(_)
                | Operation::ListModelEndpoints
                | Operation::ListProviders,
            ) => true,
            Self::Open(open) => open != OpenRoute::Ready,
            Self::Operation(_) => false,
        }
    }
}

/// The open routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenRoute {
    Root,
    Live,
    Ready,
    OpenApi,
    Docs,
    DocsScript,
}

/// The operations of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    PromoteContainerFile,
    SubmitDecision(Entry),
    AssignKeysToGuardrail,
    RotateApiKey,
    GetModel,
    CountModels,
    ListModels(DefaultModality),
    ListModelEndpoints,
    ListProviders,
    GetGeneration,
    Guardrails(OnGuardrails),
    Destinations(OnDestinations),
}

impl Operation {
    /// Returns true if the operation has a request body, which is read before the permit is taken.
    pub(crate) fn reads_body(self) -> bool {
        match self {
            Self::SubmitDecision(_) | Self::AssignKeysToGuardrail => true,
            Self::Guardrails(operation) => operation.reads_body(),
            Self::Destinations(operation) => operation.reads_body(),
            _ => false,
        }
    }
}

/// The paths served without a key. All other paths in [`ROUTES`] need one.
pub(crate) const OPEN_PATHS: [&str; 6] =
    ["/", "/health/live", "/health/ready", "/openapi.json", "/docs", "/docs/rapidoc-9.3.8.min.js"];

/// The method of a route. `HEAD` matches `GET`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Patch,
    Delete,
}

impl Method {
    /// All methods, in the order of `Allow`.
    const ALL: [Self; 4] = [Get, Post, Patch, Delete];

    /// Returns the value for `Allow`.
    fn allow(self) -> &'static str {
        match self {
            Get => "GET, HEAD",
            Post => "POST",
            Patch => "PATCH",
            Delete => "DELETE",
        }
    }

    pub(crate) fn accepts(self, method: &actix_web::http::Method) -> bool {
        use actix_web::http::Method as Http;
        match self {
            Get => method == Http::GET || method == Http::HEAD,
            Post => method == Http::POST,
            Patch => method == Http::PATCH,
            Delete => method == Http::DELETE,
        }
    }
}

/// One row of the route table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) target: Target,
    pub(crate) method: Method,
    /// True if the base path precedes the pattern.
    pub(crate) under_base: bool,
    /// Path segments joined by slashes; a segment in braces matches any non-empty value.
    pub(crate) pattern: &'static str,
}

impl Route {
    /// Returns all routes of the same path, including this one.
    fn siblings(&self) -> impl Iterator<Item = &'static Route> {
        let (under_base, pattern) = (self.under_base, self.pattern);
        ROUTES.iter().filter(move |other| other.under_base == under_base && other.pattern == pattern)
    }

    /// Returns the value of `Allow`: all methods of the path.
    pub(crate) fn allow(&self) -> String {
        let taken = |method: &&Method| self.siblings().any(|route| route.method == **method);
        Method::ALL.iter().filter(taken).map(|method| method.allow()).collect::<Vec<_>>().join(", ")
    }

    /// Returns true for routes of vendor clients, which use their own headers for keys and request ids.
    pub(crate) fn is_vendor_route(&self) -> bool {
        match self.target {
            Target::Operation(Operation::SubmitDecision(entry)) => entry != Entry::Contract,
            Target::Operation(Operation::ListModels(_)) => true,
            _ => false,
        }
    }
}

const fn operation(operation: Operation, method: Method, under_base: bool, pattern: &'static str) -> Route {
    Route { target: Target::Operation(operation), method, under_base, pattern }
}

const fn open(route: OpenRoute, pattern: &'static str) -> Route {
    Route { target: Target::Open(route), method: Get, under_base: false, pattern }
}

/// The route table. Decisions have the contract's path, the path of the client packages, and the vendor paths. A vendor
/// path precedes an equal path below the base path.
pub(crate) const ROUTES: &[Route] = &[
    operation(Operation::SubmitDecision(Entry::Contract), Post, true, "/api/alpha/decisions"),
    operation(Operation::SubmitDecision(Entry::Contract), Post, false, "/api/alpha/decisions"),
    operation(Operation::SubmitDecision(Entry::SystemOne), Post, false, "/v1/systemone"),
    operation(Operation::SubmitDecision(Entry::SystemOne), Post, true, "/systemone"),
    operation(Operation::SubmitDecision(Entry::AnyShape), Post, false, "/v1/decisions"),
    operation(Operation::SubmitDecision(Entry::AnyShape), Post, true, "/decisions"),
    operation(Operation::SubmitDecision(Entry::Gemini), Post, false, "/v1beta/decisions"),
    operation(Operation::CountModels, Get, true, "/models/count"),
    operation(Operation::GetModel, Get, true, "/model/{author}/{slug}"),
    operation(Operation::ListModels(DefaultModality::Decisions), Get, false, "/v1/models"),
    operation(Operation::ListModels(DefaultModality::Text), Get, true, "/models"),
    operation(Operation::ListModelEndpoints, Get, true, "/models/{author}/{slug}/endpoints"),
    operation(Operation::ListProviders, Get, true, "/providers"),
    operation(Operation::GetGeneration, Get, true, "/generation"),
    operation(Operation::RotateApiKey, Post, true, "/keys/{hash}/rotate"),
    operation(Operation::PromoteContainerFile, Post, true, "/containers/{container_id}/files/{file_id}/promote"),
    operation(Operation::Guardrails(OnGuardrails::List), Get, true, "/guardrails"),
    operation(Operation::Guardrails(OnGuardrails::Create), Post, true, "/guardrails"),
    operation(Operation::Guardrails(OnGuardrails::Get), Get, true, "/guardrails/{id}"),
    operation(Operation::Guardrails(OnGuardrails::Update), Patch, true, "/guardrails/{id}"),
    operation(Operation::Guardrails(OnGuardrails::Delete), Delete, true, "/guardrails/{id}"),
    operation(Operation::Guardrails(OnGuardrails::ListAssignedKeys), Get, true, "/guardrails/{id}/assignments/keys"),
    operation(Operation::AssignKeysToGuardrail, Post, true, "/guardrails/{id}/assignments/keys"),
    operation(Operation::Guardrails(OnGuardrails::RemoveKeys), Post, true, "/guardrails/{id}/assignments/keys/remove"),
    operation(Operation::Guardrails(OnGuardrails::Explain), Post, true, "/guardrails/{id}/explain"),
    operation(Operation::Guardrails(OnGuardrails::ListVersions), Get, true, "/guardrails/{id}/versions"),
    operation(Operation::Guardrails(OnGuardrails::GetVersion), Get, true, "/guardrails/{id}/versions/{version}"),
    operation(
        Operation::Guardrails(OnGuardrails::RestoreVersion),
        Post,
        true,
        "/guardrails/{id}/versions/{version}/restore",
    ),
    operation(Operation::Destinations(OnDestinations::List), Get, true, "/observability/destinations"),
    operation(Operation::Destinations(OnDestinations::Create), Post, true, "/observability/destinations"),
    operation(Operation::Destinations(OnDestinations::Get), Get, true, "/observability/destinations/{id}"),
    operation(Operation::Destinations(OnDestinations::Update), Patch, true, "/observability/destinations/{id}"),
    operation(Operation::Destinations(OnDestinations::Delete), Delete, true, "/observability/destinations/{id}"),
    open(OpenRoute::Root, OPEN_PATHS[0]),
    open(OpenRoute::Live, OPEN_PATHS[1]),
    open(OpenRoute::Ready, OPEN_PATHS[2]),
    open(OpenRoute::OpenApi, OPEN_PATHS[3]),
    open(OpenRoute::Docs, OPEN_PATHS[4]),
    open(OpenRoute::DocsScript, OPEN_PATHS[5]),
];

/// The maximum number of braces in a pattern.
pub(crate) const MAX_PARAMETERS: usize = 3;

/// The path segments matched by the braces, percent-encoded, in order; empty if there are fewer.
pub(crate) type Parameters<'p> = [&'p str; MAX_PARAMETERS];

/// A matched route and its path parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RouteMatch<'p> {
    /// The route of the requested method; if the path does not support the method, the first route of the path.
    pub(crate) route: &'static Route,
    pub(crate) parameters: Parameters<'p>,
}

/// Finds the route of a method and a raw path. An encoded slash is part of its segment; literal segments must match
/// exactly.
pub(crate) fn find<'p>(base_path: &str, method: &actix_web::http::Method, path: &'p str) -> Option<RouteMatch<'p>> {
    let below_base = path.strip_prefix(base_path).filter(|rest| rest.starts_with('/'));
    let (first, parameters) = ROUTES.iter().find_map(|route| {
        let path = if route.under_base { below_base? } else { path };
        parameters(route.pattern, path).map(|parameters| (route, parameters))
    })?;
    // The first match in the table is also the first of its siblings.
    let route = if first.method.accepts(method) {
        first
    } else {
        first.siblings().find(|route| route.method.accepts(method)).unwrap_or(first)
    };
    Some(RouteMatch { route, parameters })
}

fn parameters<'p>(pattern: &str, path: &'p str) -> Option<Parameters<'p>> {
    if !pattern.contains('{') {
        return (pattern == path).then_some([""; MAX_PARAMETERS]);
    }
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    let mut parameters = [""; MAX_PARAMETERS];
    let mut free = parameters.iter_mut();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(parameters),
            (Some(name), Some(segment)) if name.starts_with('{') && !segment.is_empty() => *free.next()? = segment,
            (Some(name), Some(segment)) if name == segment => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::Method as Http;

    const BASE: &str = "/api/v1";

    fn target(path: &str) -> Option<(Target, Parameters<'_>)> {
        find(BASE, &Http::GET, path).map(|matched| (matched.route.target, matched.parameters))
    }

    fn http(method: Method) -> Http {
        match method {
            Get => Http::GET,
            Post => Http::POST,
            Patch => Http::PATCH,
            Delete => Http::DELETE,
        }
    }

    #[test]
    fn every_route_matches_its_own_path() {
        for route in ROUTES {
            let base = if route.under_base { BASE } else { "" };
            let path = format!("{base}{}", route.pattern.replace(['{', '}'], ""));
            assert_eq!(find(BASE, &http(route.method), &path).unwrap().route, route, "{path}");
        }
    }

    #[test]
    fn path_has_each_method_once_and_allow_lists_all() {
        for route in ROUTES {
            let same = route.siblings().filter(|other| other.method == route.method);
            assert_eq!(same.count(), 1, "{route:?}");
            assert!(route.allow().contains(route.method.allow()), "{route:?}");
        }
    }

    #[test]
    fn unsupported_method_matches_first_route_of_path() {
        let matched = find(BASE, &Http::OPTIONS, "/api/v1/models/count").unwrap();
        assert_eq!((matched.route.method, matched.route.allow().as_str()), (Get, "GET, HEAD"));
        assert_eq!(find(BASE, &Http::HEAD, "/api/v1/models/count").unwrap().route, matched.route);
    }

    #[test]
    fn only_the_listed_paths_are_open() {
        for route in ROUTES {
            assert_eq!(matches!(route.target, Target::Open(_)), OPEN_PATHS.contains(&route.pattern), "{route:?}");
        }
    }

    #[test]
    fn parameters_are_raw_whole_segments() {
        let (_, parameters) = target("/api/v1/containers/a%2Fb/files/%2e%2e/promote").unwrap();
        assert_eq!(parameters, ["a%2Fb", "%2e%2e", ""]);
        let (_, parameters) = target("/api/v1/model/acme/judge:free").unwrap();
        assert_eq!(parameters, ["acme", "judge:free", ""]);
    }

    #[test]
    fn similar_paths_do_not_match() {
        for path in [
            "",
            "/api/v1",
            "/api/v1/",
            "/api/v1models/count",
            "/models/count",
            "/api/v1/models/count/",
            "/api/v1//models/count",
            "/api/v1/model/acme",
            "/api/v1/model//judge",
            "/api/v1/model/a/b/c",
            "/api/v1/Models/count",
            "/api/v1/models%2Fcount",
            "/health",
            "/api/v1/health/live",
            "/health/live/",
        ] {
            assert_eq!(target(path), None, "{path}");
        }
    }

    #[test]
    fn routes_match_with_empty_base_path() {
        assert!(find("", &Http::GET, "/models/count").is_some());
        assert!(find("", &Http::POST, "/api/alpha/decisions").is_some());
    }
}
