//! The parameters of routes: of queries and headers as constants that routes name, of paths by a table.

use serde_json::{Value, json};
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::export::FORMATS;
use super::operation::FILE_ID;
use super::page;
use super::parameters::{PAGE_LIMITS, UNIQUE_NAME};

/// A query parameter.
#[derive(Clone, Copy)]
pub(crate) struct Query {
    pub(crate) name: &'static str,
    /// Empty for a parameter that is accepted and not described.
    description: &'static str,
    schema: fn() -> ObjectBuilder,
    is_required: bool,
}

impl Query {
    pub(crate) const fn new(name: &'static str, description: &'static str, schema: fn() -> ObjectBuilder) -> Self {
        Self { name, description, schema, is_required: false }
    }

    pub(crate) const fn text(name: &'static str, description: &'static str) -> Self {
        Self::new(name, description, text)
    }

    pub(crate) const fn flag(name: &'static str, description: &'static str) -> Self {
        Self::new(name, description, flag)
    }

    /// Creates a parameter that is accepted and not described.
    pub(crate) const fn undescribed(name: &'static str) -> Self {
        Self::new(name, "", text)
    }

    /// Creates the parameter of a creation that rejects a taken name.
    pub(crate) const fn unique_name(description: &'static str) -> Self {
        Self::new(UNIQUE_NAME, description, || flag().default(Some(json!(false))))
    }

    pub(crate) const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    /// Returns the errors that the parameter can cause, beside 400.
    pub(crate) fn statuses(&self) -> &'static [u16] {
        if self.name == "workspace_id" { NAMED } else { &[] }
    }

    /// Describes the parameter.
    pub(crate) fn describe(&self) -> Option<Parameter> {
        let parameter = parameter(self.name, ParameterIn::Query, self.description, (self.schema)());
        let required = if self.is_required { Required::True } else { Required::False };
        (!self.description.is_empty()).then(|| parameter.required(required).build())
    }
}

/// Returns the schema of a text.
pub(crate) fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// Returns the schema of `true` and `false`.
pub(crate) fn flag() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Boolean)
}

/// Returns the schema of a number.
pub(crate) fn number(minimum: usize, maximum: Option<usize>) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(minimum)).maximum(maximum)
}

pub(crate) const WORKSPACE: Query =
    workspace("The workspace's id, its slug, or its unique name. Default: all workspaces of the caller.");
pub(crate) const DEFAULT_WORKSPACE: Query = workspace(
    "The workspace's id, its slug, or its unique name. Default: the default workspace, or the only one of the key.",
);
pub(crate) const PRESET_WORKSPACE: Query = workspace(
    "The workspace's id, its slug, or its unique name. Default: the default workspace, or the only one of the key. An \
     inference key has its own.",
);
pub(crate) const FILES_WORKSPACE: Query = workspace(
    "The workspace's id, its slug, or its unique name. Default: the default workspace, or the only one of the key; an \
     inference key has its own, and any other one is 400.",
);
pub(crate) const OFFSET: Query = Query::new("offset", "The number of elements to skip.", || number(0, None));
pub(crate) const LIMIT: Query = limit(|| page_size().default(Some(json!(page::DEFAULT_LIMIT))));
/// The limit of a list whose default is the maximum.
pub(crate) const FULL_LIMIT: Query = limit(|| page_size().default(Some(json!(page::MAX_LIMIT))));
pub(crate) const CURSOR: Query = Query::text("cursor", "The `next_cursor` of the page before.");
pub(crate) const AFTER: Query = Query::text("after", "The `last_id` of the page before.");
/// The limit of an append-only list.
pub(crate) const CURSOR_LIMIT: Query =
    Query::new("limit", "The size of a page; 100 by default.", || number(1, Some(PAGE_LIMITS.2)));
pub(crate) const FORMAT: Query = Query::new(
    "format",
    "Exports the whole list as an attachment, one at a time for a key. A body without its last chunk is incomplete.",
    || text().enum_values(Some(FORMATS)),
);

const fn workspace(description: &'static str) -> Query {
    Query::text("workspace_id", description)
}

const fn limit(schema: fn() -> ObjectBuilder) -> Query {
    Query::new("limit", "The maximum number of elements on a page.", schema)
}

fn page_size() -> ObjectBuilder {
    number(1, Some(100))
}

/// A header that a handler reads.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub(crate) name: &'static str,
    description: &'static str,
    max_length: usize,
    /// The statuses that it can cause.
    pub(crate) statuses: &'static [u16],
}

pub(crate) const IF_MATCH: Header = Header::new(
    "If-Match",
    "Entity tags of versions that the change accepts, or `*` for any. Otherwise 412.",
    4_096,
    &[400, 409, 412],
);
pub(crate) const IDEMPOTENCY_KEY: Header = Header::new(
    "Idempotency-Key",
    "1 to 255 visible ASCII characters. A repetition within 24 hours gets the first response again; with \
     another path or body it is 409.",
    255,
    &[400, 409],
);
pub(crate) const IF_NONE_MATCH: Header =
    Header::new("If-None-Match", "Entity tags of cached responses.", 4_096, &[304]);

impl Header {
    pub(crate) const fn new(
        name: &'static str,
        description: &'static str,
        max_length: usize,
        statuses: &'static [u16],
    ) -> Self {
        Self { name, description, max_length, statuses }
    }

    /// Describes the header.
    pub(crate) fn describe(&self) -> Parameter {
        let schema = text().max_length(Some(self.max_length));
        parameter(self.name, ParameterIn::Header, self.description, schema).build()
    }
}

/// The statuses of a parameter of a path that must exist.
const UNKNOWN: &[u16] = &[404];
/// The statuses of a parameter that may be a name, which several resources may have.
const NAMED: &[u16] = &[404, 409];

const VARIANT: &str = "The model's slug, optionally followed by a colon and a variant";
const MODEL: &str = "The model's name: without an author, or with an encoded slash.";
const VERSION: &str = "The version's number";
const AUTHOR: &str = "The author or organisation of the model";

/// A parameter of a path: the beginning of the pattern, the name, the description, an example, and the statuses.
type PathParameter = (&'static str, &'static str, &'static str, Option<&'static str>, &'static [u16]);

/// The parameters of paths. The first row that fits is taken.
const PATH_PARAMETERS: [PathParameter; 21] = [
    ("/guardrails/", "id", "The guardrail's id, or its unique name.", None, NAMED),
    ("/workspaces/", "id", "The workspace's id, its slug, or its unique name.", None, NAMED),
    ("/observability/", "id", "The destination's id, or its unique name.", None, NAMED),
    ("/files/", "id", "The file's id", Some("tgfile_01a2183cdc287714ba96aed3abd3318f"), UNKNOWN),
    (
        "/keys/",
        "hash",
        "The key's hash, a unique prefix of it (8 digits or more), its id, or its unique name.",
        None,
        NAMED,
    ),
    ("/presets/", "slug", "The preset's slug.", None, UNKNOWN),
    ("/presets/", "version", VERSION, None, UNKNOWN),
    ("/guardrails/", "version", VERSION, None, UNKNOWN),
    ("/workspaces/", "interval", "`daily`, `weekly`, `monthly` or `lifetime`.", None, UNKNOWN),
    (
        "/containers/",
        "container_id",
        "The container's id from a tool result: 1 to 128 of A-Z a-z 0-9 _ -",
        Some("sess_demo"),
        UNKNOWN,
    ),
    (
        "/containers/",
        "file_id",
        "`cfile_` and the unpadded base64url encoding of the file's path",
        Some(FILE_ID),
        UNKNOWN,
    ),
    ("/providers/{slug}/test", "slug", "The slug of a configured provider", None, UNKNOWN),
    ("/providers/", "slug", "The slug of a provider with a configured endpoint", None, UNKNOWN),
    ("/models/", "model", MODEL, None, UNKNOWN),
    ("/v1/models/", "model", MODEL, None, UNKNOWN),
    ("/model/", "author", AUTHOR, Some("sandbox"), UNKNOWN),
    ("/model/", "slug", VARIANT, Some("decider"), UNKNOWN),
    ("/models/", "author", AUTHOR, None, UNKNOWN),
    ("/models/", "slug", VARIANT, None, UNKNOWN),
    ("/v1/models/", "author", AUTHOR, None, UNKNOWN),
    ("/v1/models/", "slug", VARIANT, None, UNKNOWN),
];

/// Describes the parameters of a path, each with its statuses.
pub(crate) fn path_parameters(pattern: &str) -> impl Iterator<Item = (Parameter, &'static [u16])> {
    let names = pattern.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    names.filter_map(move |name| {
        let fits = |(start, known, ..): &&PathParameter| pattern.starts_with(start) && *known == name;
        let (_, _, description, example, statuses) = PATH_PARAMETERS.iter().find(fits)?;
        let described = parameter(name, ParameterIn::Path, description, text()).example(example.map(Value::from));
        Some((described.required(Required::True).build(), *statuses))
    })
}

/// Describes a query parameter.
pub(crate) fn query(name: &str, description: &str, schema: ObjectBuilder) -> Parameter {
    parameter(name, ParameterIn::Query, description, schema).build()
}

fn parameter(name: &str, within: ParameterIn, description: &str, schema: ObjectBuilder) -> ParameterBuilder {
    let parameter = ParameterBuilder::new().name(name).parameter_in(within).required(Required::False);
    parameter.description(Some(description)).schema(Some(schema))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::ROUTES;

    #[test]
    fn every_parameter_of_a_path_is_described() {
        for route in ROUTES {
            let names = route.pattern.matches('{').count();
            assert_eq!(path_parameters(route.pattern).count(), names, "{}", route.pattern);
        }
    }
}
