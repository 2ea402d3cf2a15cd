//! The routes: their type, the table that finds the route of a request, and hints for unknown paths. `app.rs` lists all
//! routes.

use Method::{Delete, Get, Patch, Post, Put};
use actix_web::HttpResponse;
use actix_web::http::header::HeaderMap;
use actix_web::web::Payload;
use domain::api_key::Principal;
use domain::authority::Authority;
use domain::error::ErrorKind;
use domain::version::IfMatch;
use futures_util::future::LocalBoxFuture;

use super::call::{Call, MAX_PARAMETERS, Parameters};
use super::conditions::if_match;
use super::error::{ApiError, ErrorFormat};
use super::operation::{BodySchema, Operation};
use super::parameters as query_parameters;
use super::route_parameters::{Header, IF_MATCH, IF_NONE_MATCH, Query};

/// The outcome of a handler.
pub(crate) type Outcome = Result<HttpResponse, ApiError>;
/// The pending outcome of a handler.
pub(crate) type Pending<'c> = LocalBoxFuture<'c, Outcome>;

/// The function that answers a request.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// Needs no key.
    Open(OpenHandler),
    /// Needs a key.
    Keyed(KeyedHandler),
}

/// A handler that needs no key.
#[derive(Clone, Copy)]
pub(crate) enum OpenHandler {
    /// Awaits nothing.
    Memory(fn(&Call<'_>) -> Outcome),
    /// May wait.
    Async(for<'c> fn(&'c Call<'c>) -> Pending<'c>),
}

/// A handler that needs a key, by the authority that it needs.
#[derive(Clone, Copy)]
pub(crate) enum KeyedHandler {
    /// Any key; awaits nothing except authentication.
    Memory(fn(&Call<'_>) -> Outcome),
    /// A key whose kind the handler checks.
    AnyKey(for<'c> fn(&'c Call<'c>, &'c Principal, Payload) -> Pending<'c>),
    /// A management key, by its authority.
    Management(for<'c> fn(&'c Call<'c>, &'c Authority, Payload) -> Pending<'c>),
}

/// Returns the handler that is this async function, of a call and its caller, or also of the body.
macro_rules! handler {
    ($handle:ident) => {
        |call, caller, _| Box::pin($handle(call, caller))
    };
    ($handle:ident, payload) => {
        |call, caller, payload| Box::pin($handle(call, caller, payload))
    };
}
pub(crate) use handler;

/// The method of a route. `HEAD` matches `GET`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// All methods, in the order of `Allow`.
    const ALL: [Self; 5] = [Get, Post, Put, Patch, Delete];

    /// Returns the value for `Allow`.
    fn allow(self) -> &'static str {
        match self {
            Get => "GET, HEAD",
            Post => "POST",
            Put => "PUT",
            Patch => "PATCH",
            Delete => "DELETE",
        }
    }

    pub(crate) fn accepts(self, method: &actix_web::http::Method) -> bool {
        use actix_web::http::Method as Http;
        match self {
            Get => method == Http::GET || method == Http::HEAD,
            Post => method == Http::POST,
            Put => method == Http::PUT,
            Patch => method == Http::PATCH,
            Delete => method == Http::DELETE,
        }
    }
}

/// The clients of a route.
#[derive(Clone, Copy)]
pub(crate) enum Clients {
    OfContract,
    /// Clients of vendors use their own headers for keys and request ids, and have their own error format while the
    /// body is unknown.
    OfVendors(ErrorFormat),
}

/// One operation of the API. Each endpoint file exports its own.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub(crate) method: Method,
    /// True if the base path precedes the pattern.
    pub(crate) under_base: bool,
    /// Path segments joined by slashes; a segment in braces matches any non-empty value.
    pub(crate) pattern: &'static str,
    pub(crate) handler: Handler,
    /// True if the handler reads the body. The in-flight permit is then taken after the body has arrived.
    pub(crate) reads_body: bool,
    pub(crate) clients: Clients,
    /// The query parameters. Others are rejected, unless `takes_any_query`.
    pub(crate) query: &'static [Query],
    /// True if the handler checks the names of the query parameters, or ignores unknown ones.
    pub(crate) takes_any_query: bool,
    // The following members are for the OpenAPI document.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) description: &'static str,
    /// One of `operation::tags`.
    pub(crate) tag: &'static str,
    pub(crate) headers: &'static [Header],
    pub(crate) body: Option<fn() -> BodySchema>,
    pub(crate) answer: Option<Answer>,
    /// The statuses that do not follow from parameters and body.
    pub(crate) statuses: &'static [u16],
    /// Completes an unusual operation.
    pub(crate) complete: fn(Operation) -> Operation,
}

/// The response of success: status, body and description.
type Answer = (u16, fn() -> BodySchema, &'static str);

impl Route {
    /// Creates a route for management keys. Its denied changes are recorded in the audit log.
    pub(crate) const fn management(
        method: Method,
        pattern: &'static str,
        tag: &'static str,
        handle: for<'c> fn(&'c Call<'c>, &'c Authority, Payload) -> Pending<'c>,
    ) -> Self {
        Self::new(method, pattern, tag, Handler::Keyed(KeyedHandler::Management(handle)))
    }

    /// Creates a route for keys of any kind; the handler checks the kind.
    pub(crate) const fn any_key(
        method: Method,
        pattern: &'static str,
        tag: &'static str,
        handle: for<'c> fn(&'c Call<'c>, &'c Principal, Payload) -> Pending<'c>,
    ) -> Self {
        Self::new(method, pattern, tag, Handler::Keyed(KeyedHandler::AnyKey(handle)))
    }

    /// Creates a route for any key that is answered from memory.
    pub(crate) const fn memory(
        method: Method,
        pattern: &'static str,
        tag: &'static str,
        handle: fn(&Call<'_>) -> Outcome,
    ) -> Self {
        Self::new(method, pattern, tag, Handler::Keyed(KeyedHandler::Memory(handle)))
    }

    /// Creates a route without a key, outside the base path.
    pub(crate) const fn open(pattern: &'static str, tag: &'static str, handler: OpenHandler) -> Self {
        Self::new(Get, pattern, tag, Handler::Open(handler)).outside_base().any_query()
    }

    /// Creates a route below the base path, without a body and with the contract's errors.
    const fn new(method: Method, pattern: &'static str, tag: &'static str, handler: Handler) -> Self {
        Self {
            method,
            under_base: true,
            pattern,
            handler,
            reads_body: false,
            clients: Clients::OfContract,
            query: &[],
            takes_any_query: false,
            id: "",
            summary: "",
            description: "",
            tag,
            headers: &[],
            body: None,
            answer: None,
            statuses: &[],
            complete: |operation| operation,
        }
    }

    /// Moves the route out of the base path.
    pub(crate) const fn outside_base(self) -> Self {
        Self { under_base: false, ..self }
    }

    /// Names the operation.
    pub(crate) const fn operation(self, id: &'static str, summary: &'static str) -> Self {
        Self { id, summary, ..self }
    }

    /// Describes the operation. The key that a management route needs is added.
    pub(crate) const fn description(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    /// Names the query parameters.
    pub(crate) const fn query(self, query: &'static [Query]) -> Self {
        Self { query, ..self }
    }

    /// Leaves the names of the query parameters to the handler.
    pub(crate) const fn any_query(self) -> Self {
        Self { takes_any_query: true, ..self }
    }

    /// Names the headers that the handler reads.
    pub(crate) const fn headers(self, headers: &'static [Header]) -> Self {
        Self { headers, ..self }
    }

    /// Lets the handler read a body of JSON.
    pub(crate) const fn body(self, schema: fn() -> BodySchema) -> Self {
        Self { body: Some(schema), reads_body: true, ..self }
    }

    /// Lets the handler read the body.
    pub(crate) const fn with_body(self) -> Self {
        Self { reads_body: true, ..self }
    }

    /// Describes the response 200.
    pub(crate) const fn answer(self, schema: fn() -> BodySchema, description: &'static str) -> Self {
        Self { answer: Some((200, schema, description)), ..self }
    }

    /// Describes the response 201.
    pub(crate) const fn created(self, schema: fn() -> BodySchema, description: &'static str) -> Self {
        Self { answer: Some((201, schema, description)), ..self }
    }

    /// Adds statuses that do not follow from parameters and body.
    pub(crate) const fn also(self, statuses: &'static [u16]) -> Self {
        Self { statuses, ..self }
    }

    /// Completes the description of an unusual operation.
    pub(crate) const fn complete(self, complete: fn(Operation) -> Operation) -> Self {
        Self { complete, ..self }
    }

    /// Serves vendor clients.
    pub(crate) const fn for_vendor_clients(self, error_format: ErrorFormat) -> Self {
        Self { clients: Clients::OfVendors(error_format), ..self }
    }

    /// Returns true for routes of vendor clients.
    pub(crate) const fn is_for_vendor_clients(&self) -> bool {
        matches!(self.clients, Clients::OfVendors(_))
    }

    /// Returns the error format while the body is unknown.
    pub(crate) const fn error_format(&self) -> ErrorFormat {
        match self.clients {
            Clients::OfContract => ErrorFormat::Contract,
            Clients::OfVendors(format) => format,
        }
    }

    /// Returns true if the route needs no key.
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.handler, Handler::Open(_))
    }

    /// Returns true if denied changes are recorded in the audit log.
    pub(crate) const fn is_audited(&self) -> bool {
        matches!(self.handler, Handler::Keyed(KeyedHandler::Management(_)))
    }

    /// Returns true if caches must not share the responses. Those of other POST requests are not cached anyway.
    pub(crate) const fn is_private(&self) -> bool {
        let is_cached = self.is_audited() || !matches!(self.method, Method::Post);
        is_cached && !self.is_open() && !self.is_for_vendor_clients()
    }

    /// Checks the names of the query parameters.
    ///
    /// # Errors
    /// 400 that names an unknown parameter.
    pub(super) fn check_query(&self, query: &str) -> Result<(), ApiError> {
        if self.takes_any_query {
            return Ok(());
        }
        query_parameters::check_names(query, self.query.iter().map(|query| query.name))
    }

    /// Returns true for a change of a record. Requests for decisions and promotions are none.
    pub(crate) const fn is_change(&self) -> bool {
        match self.method {
            Get => false,
            Post => self.is_audited(),
            Put | Patch | Delete => true,
        }
    }

    /// Returns true if the handler reads `If-Match`.
    pub(crate) fn has_versions(&self) -> bool {
        self.headers.iter().any(|header| header.name == IF_MATCH.name)
    }

    /// Checks the conditions of a change that the handler does not read: a change of something without versions matches
    /// no entity tag, and a condition that is not known must not be taken for one that holds.
    ///
    /// # Errors
    /// 412 for `If-Match` with entity tags, 400 for `If-None-Match`.
    pub(super) fn check_conditions(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        if !self.is_change() {
            return Ok(());
        }
        if headers.contains_key(IF_NONE_MATCH.name) {
            return Err(ApiError::invalid("If-None-Match is for GET; a change takes no such condition"));
        }
        if self.has_versions() {
            return Ok(());
        }
        match if_match(headers)? {
            None => Ok(()),
            // A PUT may create what `*` demands.
            Some(IfMatch::Any) if self.method != Put => Ok(()),
            Some(_) => Err(ApiError::from_kind(ErrorKind::PreconditionFailed)
                .message("This route changes nothing that has versions, so no entity tag of If-Match matches")),
        }
    }

    fn is_same_path(&self, other: &Self) -> bool {
        self.under_base == other.under_base && self.pattern == other.pattern
    }
}

/// A matched route and its path parameters.
#[derive(Clone, Copy)]
pub(crate) struct RouteMatch<'p> {
    /// The route of the requested method; if the path does not support the method, the first route of the path.
    pub(crate) route: &'static Route,
    pub(crate) parameters: Parameters<'p>,
}

/// All routes. The first one with a matching path decides.
#[derive(Clone, Copy)]
pub(crate) struct RouteTable(pub(crate) &'static [Route]);

impl RouteTable {
    /// Finds the route of a method and a raw path. An encoded slash is part of its segment; literal segments must match
    /// exactly.
    pub(crate) fn find<'p>(
        self,
        base_path: &str,
        method: &actix_web::http::Method,
        path: &'p str,
    ) -> Option<RouteMatch<'p>> {
        let below_base = path.strip_prefix(base_path).filter(|rest| rest.starts_with('/'));
        let (first, parameters) = self.0.iter().find_map(|route| {
            let path = if route.under_base { below_base? } else { path };
            parameters(route.pattern, path).map(|parameters| (route, parameters))
        })?;
        // The first match in the table is also the first of its path.
        let route = if first.method.accepts(method) {
            first
        } else {
            self.of_same_path(first).find(|route| route.method.accepts(method)).unwrap_or(first)
        };
        Some(RouteMatch { route, parameters })
    }

    /// Returns the value of `Allow`: all methods of the path.
    pub(crate) fn allow(self, route: &Route) -> String {
        let taken = |method: &&Method| self.of_same_path(route).any(|route| route.method == **method);
        Method::ALL.iter().filter(taken).map(|method| method.allow()).collect::<Vec<_>>().join(", ")
    }

    fn of_same_path(self, route: &Route) -> impl Iterator<Item = &'static Route> {
        self.0.iter().filter(move |other| other.is_same_path(route))
    }
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

/// Path suffixes of chat and other model APIs.
const OTHER_APIS: [&str; 12] = [
    "/chat/completions",
    "/completions",
    "/responses",
    "/messages",
    "/embeddings",
    "/rerank",
    "/moderations",
    "/images/generations",
    "/audio/speech",
    "/audio/transcriptions",
    "/api/chat",
    "/api/generate",
];

/// Base URL prefixes of published clients.
const PREFIXES: [&str; 4] = ["/api/v1", "/v1beta", "/v1", "/api"];
/// The maximum number of wrong prefixes to remove.
const MAX_PREFIXES: usize = 3;

/// Returns a hint at the right path, if one is found.
pub(super) fn path_hint(
    routes: RouteTable,
    base_path: &str,
    method: &actix_web::http::Method,
    path: &str,
) -> Option<String> {
    let path = path.trim_end_matches('/');
    if OTHER_APIS.iter().any(|end| path.ends_with(end)) {
        return Some(format!(
            "Tollgate serves decision models, not chat, embedding or media models: POST {base_path}/api/alpha/decisions, \
             or POST /v1/decisions in the form of an OpenAI client"
        ));
    }
    let route = find_corrected_route(routes, base_path, method, path)?;
    let base_path = if route.under_base { base_path } else { "" };
    Some(format!("check the base URL: this operation is at {base_path}{}", route.pattern))
}

/// Finds the route of the path with other prefixes.
fn find_corrected_route(
    routes: RouteTable,
    base_path: &str,
    method: &actix_web::http::Method,
    path: &str,
) -> Option<&'static Route> {
    let mut rest = path;
    for _ in 0..=MAX_PREFIXES {
        for prefix in ["", base_path, "/v1", "/v1beta", "/api"] {
            let corrected = format!("{prefix}{rest}");
            let found = routes.find(base_path, method, &corrected);
            if let Some(found) = found.filter(|found| found.route.method.accepts(method)) {
                return Some(found.route);
            }
        }
        rest = PREFIXES.into_iter().chain([base_path]).find_map(|prefix| {
            let rest = rest.strip_prefix(prefix)?;
            (!prefix.is_empty() && rest.starts_with('/')).then_some(rest)
        })?;
    }
    None
}

#[cfg(test)]
mod tests {
    use actix_web::http::Method as Http;

    use utoipa::openapi::RefOr;
    use utoipa::openapi::path::{Parameter, ParameterIn};

    use super::*;
    use crate::app::ROUTES;

    const BASE: &str = "/api/v1";
    const TABLE: RouteTable = RouteTable(ROUTES);

    fn pattern(path: &str) -> Option<(&'static str, Parameters<'_>)> {
        TABLE.find(BASE, &Http::GET, path).map(|matched| (matched.route.pattern, matched.parameters))
    }

    fn http(method: Method) -> Http {
        match method {
            Get => Http::GET,
            Post => Http::POST,
            Put => Http::PUT,
            Patch => Http::PATCH,
            Delete => Http::DELETE,
        }
    }

    #[test]
    fn every_route_matches_its_own_path() {
        for route in ROUTES {
            let base = if route.under_base { BASE } else { "" };
            let path = format!("{base}{}", route.pattern.replace(['{', '}'], ""));
            let found = TABLE.find(BASE, &http(route.method), &path).unwrap().route;
            assert!(found.is_same_path(route) && found.method == route.method, "{path}");
        }
    }

    #[test]
    fn path_has_each_method_once_and_allow_lists_all() {
        for route in ROUTES {
            let same = TABLE.of_same_path(route).filter(|other| other.method == route.method);
            assert_eq!(same.count(), 1, "{}", route.pattern);
            assert!(TABLE.allow(route).contains(route.method.allow()), "{}", route.pattern);
        }
    }

    #[test]
    fn unsupported_method_matches_first_route_of_path() {
        let matched = TABLE.find(BASE, &Http::OPTIONS, "/api/v1/models/count").unwrap();
        assert_eq!((matched.route.method, TABLE.allow(matched.route).as_str()), (Get, "GET, HEAD"));
        let head = TABLE.find(BASE, &Http::HEAD, "/api/v1/models/count").unwrap();
        assert!(head.route.is_same_path(matched.route));
    }

    #[test]
    fn only_listed_paths_are_open() {
        let listed = ["/", "/health/live", "/health/ready", "/openapi.json", "/docs", "/docs/rapidoc-9.3.8.min.js"];
        for route in ROUTES {
            assert_eq!(route.is_open(), !route.under_base && listed.contains(&route.pattern), "{}", route.pattern);
        }
    }

    #[test]
    fn only_listed_paths_are_managed_and_audited() {
        let listed = [
            "/guardrails",
            "/guardrails/assignments/keys",
            "/guardrails/{id}",
            "/guardrails/{id}/assignments/keys",
            "/guardrails/{id}/assignments/keys/remove",
            "/guardrails/{id}/explain",
            "/guardrails/{id}/versions",
            "/guardrails/{id}/versions/{version}",
            "/guardrails/{id}/versions/{version}/restore",
            "/credits",
            "/keys",
            "/keys/{hash}",
            "/keys/{hash}/rotate",
            "/presets/{slug}/decisions",
            "/observability/destinations",
            "/observability/destinations/{id}",
            "/observability/destinations/{id}/test",
            "/observability/destinations/{id}/retry",
            "/catalogue/imports",
            "/audit",
            "/status",
            "/providers/{slug}",
            "/providers/{slug}/test",
            "/workspaces",
            "/workspaces/{id}",
            "/workspaces/{id}/budgets",
            "/workspaces/{id}/budgets/{interval}",
            "/workspaces/{id}/credits",
        ];
        for route in ROUTES {
            // Every key reads presets and labels.
            let is_changed_only = route.method == Put
                || matches!((route.method, route.pattern), (Patch, "/presets/{slug}") | (Post, "/labels"));
            let is_listed = route.under_base && (listed.contains(&route.pattern) || is_changed_only);
            assert_eq!(route.is_audited(), is_listed, "{}", route.pattern);
        }
        let missing: Vec<_> =
            listed.iter().filter(|pattern| !ROUTES.iter().any(|route| route.pattern == **pattern)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    /// Returns the names of the query parameters in the description of a route.
    fn described_query(route: &Route) -> Vec<String> {
        let described = crate::openapi::describe(route).description.parameters.unwrap_or_default();
        let name = |parameter| match parameter {
            RefOr::T(Parameter { name, parameter_in: ParameterIn::Query, .. }) => Some(name),
            _ => None,
        };
        described.into_iter().filter_map(name).collect()
    }

    #[test]
    fn routes_take_the_described_query_parameters_only() {
        for route in ROUTES.iter().filter(|route| !route.takes_any_query) {
            let pattern = route.pattern;
            let query = route.query.iter().map(|query| query.name).collect::<Vec<_>>().join("=&");
            let check = |text: &str| route.check_query(text).map_err(|error| error.text().to_owned());
            assert_eq!(check(&query), Ok(()), "{pattern}");
            assert!(check("x=1").unwrap_err().starts_with("unknown query parameter"), "{pattern}");
            let described = described_query(route);
            assert!(described.iter().all(|name| check(&format!("{name}=1")) == Ok(())), "{pattern}: {described:?}");
        }
        let checks_nothing = |route: &&Route| route.takes_any_query && route.is_audited();
        assert_eq!(ROUTES.iter().find(checks_nothing).map(|route| route.pattern), None);
    }

    #[test]
    fn parameters_are_raw_whole_segments() {
        let (_, parameters) = pattern("/api/v1/containers/a%2Fb/files/%2e%2e/promote").unwrap();
        assert_eq!(parameters, ["a%2Fb", "%2e%2e", ""]);
        let (_, parameters) = pattern("/api/v1/model/acme/judge:free").unwrap();
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
            assert!(pattern(path).is_none(), "{path}");
        }
    }

    #[test]
    fn routes_match_with_empty_base_path() {
        assert!(TABLE.find("", &Http::GET, "/models/count").is_some());
        assert!(TABLE.find("", &Http::POST, "/api/alpha/decisions").is_some());
    }

    #[test]
    fn nearly_right_base_url_is_corrected() {
        for (path, expected) in [
            ("/v1/v1/decisions", "/v1/decisions"),
            ("/api/v1/api/v1/api/alpha/decisions", "/api/v1/api/alpha/decisions"),
            ("/systemone", "/api/v1/systemone"),
            ("/api/v1/v1/decisions", "/v1/decisions"),
            ("/v1/decisions/", "/v1/decisions"),
        ] {
            let hint = path_hint(TABLE, "/api/v1", &Http::POST, path).unwrap();
            assert_eq!(hint, format!("check the base URL: this operation is at {expected}"), "{path}");
        }
    }

    #[test]
    fn hint_shows_parameter_names() {
        for (path, expected) in
            [("/v1/model/acme/judge", "/api/v1/model/{author}/{slug}"), ("/models/count", "/api/v1/models/count")]
        {
            let hint = path_hint(TABLE, "/api/v1", &Http::GET, path).unwrap();
            assert!(hint.ends_with(expected), "{hint}");
        }
    }

    #[test]
    fn paths_of_other_apis_name_what_tollgate_serves() {
        for path in ["/v1/chat/completions", "/api/v1/chat/completions", "/v1/embeddings", "/v1/messages/"] {
            let hint = path_hint(TABLE, "/api/v1", &Http::POST, path).unwrap();
            assert!(hint.starts_with("Tollgate serves decision models"), "{hint}");
        }
    }

    #[test]
    fn unrelated_paths_have_no_hint() {
        for path in ["", "/admin.php", "/v1/v1/v1/v1/v1/v1/decisions", "/v1"] {
            assert_eq!(path_hint(TABLE, "/api/v1", &Http::POST, path), None, "{path}");
        }
    }

    #[test]
    fn hint_terminates_with_empty_base_path() {
        assert_eq!(path_hint(TABLE, "", &Http::POST, "/nothing/at/all"), None);
        assert!(path_hint(TABLE, "", &Http::POST, "/v1/v1/decisions").is_some());
    }
}
