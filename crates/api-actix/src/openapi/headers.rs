//! The headers of responses in the OpenAPI document.

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, Parameter};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Response};

use crate::http::download::OCTET_STREAM;
use crate::http::export::CSV;
use crate::http::routes::Route;

/// The schemas of responses with one record, whose entity tag is its version.
const RECORDS: [&str; 11] = [
    "ApiKeyResponse",
    "ApiKeyWithBudgetsResponse",
    "ApiKeyWithSecret",
    "CatalogueImportResponse",
    "DestinationResponse",
    "GuardrailResponse",
    "OwnKeyResponse",
    "PresetResponse",
    "WorkspaceBudgetResponse",
    "WorkspaceCreditResponse",
    "WorkspaceResponse",
];

/// Describes the headers of the responses of a route.
pub(super) fn describe(route: &Route, operation: &mut Operation) {
    let is_conditional = |parameter: &RefOr<Parameter>| match parameter {
        RefOr::T(parameter) => parameter.name == "If-None-Match",
        RefOr::Ref(_) => false,
    };
    let has_tag = operation.parameters.iter().flatten().any(is_conditional);
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        let is = |statuses: &[&str]| statuses.contains(&status.as_str());
        let is_content = is(&["200", "201", "206", "304"]);
        let is_attachment = is_content && [OCTET_STREAM, CSV].iter().any(|kind| response.content.contains_key(*kind));
        let is_tagged = is_content && (has_tag || is_record(response));
        for (name, description, applies) in [
            ("x-request-id", "The id of the request in the log.", true),
            ("x-typesafe-request-id", "The same as `x-request-id`.", route.is_for_vendor_clients()),
            ("WWW-Authenticate", "`Bearer`.", is(&["401"])),
            ("Allow", "The methods of the path.", is(&["405"])),
            ("Retry-After", "The seconds to wait before a repetition.", is(&["429", "503", "529"])),
            ("x-ratelimit-limit", "The exceeded rate per minute.", is(&["429"])),
            ("x-ratelimit-remaining", "The rest of the exceeded rate.", is(&["429"])),
            ("x-ratelimit-reset", "The end of the wait, in milliseconds of Unix time.", is(&["429"])),
            (
                "Cache-Control",
                "`private, no-cache`; `private, no-store` with a secret.",
                is_content && (has_tag || route.is_private()),
            ),
            ("ETag", "The version, for `If-Match` of a record and `If-None-Match` of other content.", is_tagged),
            ("Content-Disposition", "`attachment` with a name, of a file or an export.", is_attachment),
            ("X-Content-Type-Options", "`nosniff`, of a file or an export.", is_attachment),
            ("Content-Range", "The range of the body, and the size of the file.", is(&["206", "416"])),
        ] {
            if applies {
                let schema = ObjectBuilder::new().schema_type(Type::String);
                let header = HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build();
                response.headers.insert(name.to_owned(), header.into());
            }
        }
    }
}

fn is_record(response: &Response) -> bool {
    let schemas = response.content.values().filter_map(|content| match content {
        RefOr::T(content) => content.schema.as_ref(),
        RefOr::Ref(_) => None,
    });
    let mut names = schemas.filter_map(|schema| match schema {
        RefOr::Ref(reference) => reference.ref_location.rsplit('/').next(),
        RefOr::T(_) => None,
    });
    names.any(|name| RECORDS.contains(&name))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::app::openapi_document;

    #[test]
    fn responses_describe_their_headers() {
        let document = openapi_document("");
        let names = |path: &str, method: &str, status: &str| {
            let headers = &document["paths"][path][method]["responses"][status]["headers"];
            let headers = headers.as_object().into_iter().flatten();
            headers.map(|(name, header)| (name.clone(), header["schema"].clone())).collect::<Vec<(String, Value)>>()
        };
        for (path, method, status, expected) in [
            ("/keys/{hash}", "get", "200", "Cache-Control ETag x-request-id"),
            ("/keys", "post", "201", "Cache-Control ETag x-request-id"),
            ("/keys", "get", "200", "Cache-Control x-request-id"),
            ("/usage", "get", "200", "Cache-Control Content-Disposition X-Content-Type-Options x-request-id"),
            ("/endpoints/zdr", "get", "304", "Cache-Control ETag x-request-id"),
            ("/keys", "get", "401", "WWW-Authenticate x-request-id"),
            ("/keys", "get", "503", "Retry-After x-request-id"),
            ("/systemone", "post", "200", "x-request-id x-tollgate-abstained x-typesafe-request-id"),
        ] {
            let found = names(path, method, status);
            let found: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(found.join(" "), expected, "{method} {path} {status}");
        }
        // Every record whose operation takes If-Match has the tag to send.
        for name in RECORDS {
            assert!(!document["components"]["schemas"][name].is_null(), "{name}");
        }
    }
}
