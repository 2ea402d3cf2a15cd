//! Hints for requests to unknown paths: another product's API, or a wrong base URL.

use actix_web::http::Method;

use super::routes::{Route, RouteTable};

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
pub(super) fn path_hint(routes: RouteTable, base_path: &str, method: &Method, path: &str) -> Option<String> {
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
fn find_corrected_route(routes: RouteTable, base_path: &str, method: &Method, path: &str) -> Option<&'static Route> {
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
    use super::*;
    use crate::app::ROUTES;

    const TABLE: RouteTable = RouteTable(ROUTES);

    #[test]
    fn nearly_right_base_url_is_corrected() {
        for (path, expected) in [
            ("/v1/v1/decisions", "/v1/decisions"),
            ("/api/v1/api/v1/api/alpha/decisions", "/api/v1/api/alpha/decisions"),
            ("/systemone", "/api/v1/systemone"),
            ("/api/v1/v1/decisions", "/v1/decisions"),
            ("/v1/decisions/", "/v1/decisions"),
        ] {
            let hint = path_hint(TABLE, "/api/v1", &Method::POST, path).unwrap();
            assert_eq!(hint, format!("check the base URL: this operation is at {expected}"), "{path}");
        }
    }

    #[test]
    fn hint_shows_parameter_names() {
        for (path, expected) in
            [("/v1/model/acme/judge", "/api/v1/model/{author}/{slug}"), ("/models/count", "/api/v1/models/count")]
        {
            let hint = path_hint(TABLE, "/api/v1", &Method::GET, path).unwrap();
            assert!(hint.ends_with(expected), "{hint}");
        }
    }

    #[test]
    fn paths_of_other_apis_name_what_tollgate_serves() {
        for path in ["/v1/chat/completions", "/api/v1/chat/completions", "/v1/embeddings", "/v1/messages/"] {
            let hint = path_hint(TABLE, "/api/v1", &Method::POST, path).unwrap();
            assert!(hint.starts_with("Tollgate serves decision models"), "{hint}");
        }
    }

    #[test]
    fn unrelated_paths_have_no_hint() {
        for path in ["", "/admin.php", "/v1/v1/v1/v1/v1/v1/decisions", "/v1"] {
            assert_eq!(path_hint(TABLE, "/api/v1", &Method::POST, path), None, "{path}");
        }
    }

    #[test]
    fn hint_terminates_with_empty_base_path() {
        assert_eq!(path_hint(TABLE, "", &Method::POST, "/nothing/at/all"), None);
        assert!(path_hint(TABLE, "", &Method::POST, "/v1/v1/decisions").is_some());
    }
}
