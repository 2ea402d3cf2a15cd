//! The routes, and their status for each kind of key.

/// The rule is: a missing right is 403; then a resource or a named workspace that does not exist for the caller is 404;
/// an inference key that names another key or workspace in a filter is 400.
///
/// Statuses by caller: an inference key of the workspace, keys with access `read` and `keys` to it, one with `write` to
/// another workspace, one with `write` to it, an unrestricted key; then no key, an inference key of another workspace, one
/// of a suspended workspace, keys with `read` and `keys` to another workspace, and one with `read` to all.
pub type Statuses = [u16; 12];

pub const INFERENCE: usize = 0;
pub const NO_KEY: usize = 6;
pub const OF_ANOTHER: usize = 7;
pub const OF_SUSPENDED: usize = 8;

/// Returns the statuses of the first six callers, and of the others: without a key every route is 401, and 403 with that
/// of a suspended workspace.
const fn of(first: [u16; 6], [inference, read, keys, read_all]: [u16; 4]) -> Statuses {
    let [own, own_read, own_keys, other_write, own_write, all] = first;
    [own, own_read, own_keys, other_write, own_write, all, 401, inference, 403, read, keys, read_all]
}

const READ: Statuses = of([403, 200, 200, 404, 200, 200], [403, 404, 404, 200]);
const WRITE: Statuses = of([403, 403, 403, 404, 200, 200], [403; 4]);
const CREATE: Statuses = of([403, 403, 403, 404, 201, 201], [403; 4]);
const CHANGE_KEY: Statuses = of([403, 403, 200, 404, 200, 200], [403, 403, 404, 403]);
/// Records of a workspace that its inference keys read, too. A workspace that is not the inference key's is 400.
const RECORDS: Statuses = of([200, 200, 200, 404, 200, 200], [400, 404, 404, 200]);
/// Records of one inference key.
const OF_ANOTHER_KEY: Statuses = of([400, 200, 200, 404, 200, 200], [400, 404, 404, 200]);
/// A list that a key of another workspace reads without the resources of this one.
const LIST: Statuses = of([403, 200, 200, 200, 200, 200], [403, 200, 200, 200]);
const READ_ALL: Statuses = of([403, 403, 403, 403, 403, 200], [403, 403, 403, 200]);
const UNRESTRICTED: Statuses = of([403, 403, 403, 403, 403, 200], [403; 4]);
/// The last caller finds nothing, because the one before it deleted it.
const DELETE: Statuses = of([403, 403, 403, 404, 200, 404], [403; 4]);
/// A new record that only an unrestricted key creates.
const NEW: Statuses = of([403, 403, 403, 403, 403, 201], [403; 4]);
/// A change that only an unrestricted key may make, which is invalid.
const INVALID: Statuses = of([403, 403, 403, 403, 403, 400], [403; 4]);
const ANY_KEY: Statuses = of([200; 6], [200; 4]);
/// Content of the workspace.
const CONTENT: Statuses = of([200, 403, 403, 403, 403, 403], [404, 403, 403, 403]);
/// A call of a model, or a list of the caller's own content.
const OWN: Statuses = of([200, 403, 403, 403, 403, 403], [200, 403, 403, 403]);

/// The routes below the base path, with a body and the expected statuses. `{key}`, `{guardrail}`, `{preset}`,
/// `{destination}`, `{workspace}`, `{generation}`, `{document}`, `{container}` and `{file}` stand for objects of the
/// workspace, `{provider}` and `{period}` for the sandbox and a day, `{author}`, `{slug}` and `{model}` for its model.
pub const ROUTES: &[(&str, &str, &str, Statuses)] = &[
    ("GET", "/key", "", ANY_KEY),
    ("GET", "/models", "", ANY_KEY),
    ("GET", "/models/count", "", ANY_KEY),
    ("GET", "/models/user", "", ANY_KEY),
    ("GET", "/models/{model}", "", ANY_KEY),
    ("GET", "/models/{author}/{slug}/endpoints", "", ANY_KEY),
    ("GET", "/model/{author}/{slug}", "", ANY_KEY),
    ("GET", "/endpoints/zdr", "", ANY_KEY),
    ("GET", "/providers", "", ANY_KEY),
    ("POST", "/systemone", QUESTION, OWN),
    ("POST", "/decisions", QUESTION, OWN),
    ("POST", "/api/alpha/decisions", QUESTION, OWN),
    ("GET", "/generation?id={generation}", "", of([200, 200, 200, 404, 200, 200], [404, 404, 404, 200])),
    (
        "POST",
        "/generation/feedback",
        r#"{"generation_id":"{generation}","category":"other"}"#,
        of([200, 403, 403, 404, 200, 200], [404, 403, 403, 403]),
    ),
    // A label of another workspace is rejected by itself.
    ("POST", "/labels", r#"{"labels":[]}"#, of([403, 403, 403, 200, 200, 200], [403; 4])),
    ("GET", "/generations?workspace_id={workspace}", "", RECORDS),
    ("GET", "/generations?workspace_id=own", "", RECORDS),
    ("GET", "/generations?key={key}", "", OF_ANOTHER_KEY),
    ("GET", "/usage?group_by=key&workspace_id={workspace}", "", RECORDS),
    ("GET", "/usage?group_by=key&key={key}", "", OF_ANOTHER_KEY),
    ("GET", "/usage/rejections?workspace_id=own", "", RECORDS),
    ("GET", "/usage/rejections?key={key}", "", OF_ANOTHER_KEY),
    ("GET", "/activity?workspace_id={workspace}", "", RECORDS),
    ("GET", "/activity?api_key_hash={key}", "", OF_ANOTHER_KEY),
    ("GET", "/guardrails?workspace_id={workspace}", "", READ),
    ("POST", "/guardrails", r#"{"name":"n","workspace_id":"{workspace}"}"#, CREATE),
    ("GET", "/guardrails/{guardrail}", "", READ),
    ("PATCH", "/guardrails/{guardrail}", r#"{"name":"n"}"#, WRITE),
    ("GET", "/guardrails/{guardrail}/assignments/keys", "", READ),
    ("GET", "/guardrails/assignments/keys", "", LIST),
    ("GET", "/guardrails/assignments/keys?workspace_id={workspace}", "", READ),
    ("POST", "/guardrails/{guardrail}/assignments/keys", r#"{"key_hashes":["{key}"]}"#, WRITE),
    ("POST", "/guardrails/{guardrail}/assignments/keys/remove", r#"{"key_hashes":["{key}"]}"#, WRITE),
    (
        "POST",
        "/guardrails/{guardrail}/explain",
        r#"{"body":{"model":"sandbox/decider","state":"s","questions":{"q":{"type":"noul","instructions":"Is it?"}}}}"#,
        READ,
    ),
    ("GET", "/guardrails/{guardrail}/versions", "", READ),
    ("GET", "/guardrails/{guardrail}/versions/{version}", "", READ),
    ("POST", "/guardrails/{guardrail}/versions/{version}/restore", "", WRITE),
    ("DELETE", "/guardrails/{guardrail}", "", DELETE),
    (
        "POST",
        "/presets/{preset}/decisions?workspace_id={workspace}",
        r#"{"model":"sandbox/decider","questions":{"q":{"type":"noul","instructions":"Is it?"}}}"#,
        WRITE,
    ),
    ("PATCH", "/presets/{preset}?workspace_id={workspace}", r#"{"name":"n"}"#, WRITE),
    (
        "GET",
        "/labels?generation_id={generation}&question=refund",
        "",
        of([200, 200, 200, 404, 200, 200], [404, 404, 404, 200]),
    ),
    ("GET", "/evidence?preset={preset}&workspace_id={workspace}", "", RECORDS),
    // An inference key reads the presets of its workspace.
    ("GET", "/presets?workspace_id={workspace}", "", RECORDS),
    ("GET", "/presets/{preset}?workspace_id={workspace}", "", RECORDS),
    ("GET", "/presets/{preset}/versions?workspace_id={workspace}", "", RECORDS),
    ("GET", "/presets/{preset}/versions/{version}?workspace_id={workspace}", "", RECORDS),
    ("GET", "/observability/destinations?workspace_id={workspace}", "", READ),
    // An invalid record is 400.
    (
        "POST",
        "/observability/destinations",
        r#"{"name":"n","workspace_id":"{workspace}"}"#,
        of([403, 403, 403, 404, 400, 400], [403; 4]),
    ),
    ("GET", "/observability/destinations/{destination}", "", READ),
    ("PATCH", "/observability/destinations/{destination}", r#"{"name":"n"}"#, WRITE),
    ("POST", "/observability/destinations/{destination}/test", "", WRITE),
    ("POST", "/observability/destinations/{destination}/retry", "", WRITE),
    ("DELETE", "/observability/destinations/{destination}", "", DELETE),
    ("PUT", "/containers/{container}/files?path=a&workspace_id={workspace}", "1", WRITE),
    ("GET", "/files?workspace_id={workspace}", "", RECORDS),
    ("GET", "/files?workspace_id=own", "", RECORDS),
    ("GET", "/files/{document}?workspace_id={workspace}", "", RECORDS),
    ("GET", "/files/{document}", "", of([200, 200, 200, 404, 200, 404], [404, 404, 404, 404])),
    ("GET", "/files/{document}/content", "", CONTENT),
    ("GET", "/containers/{container}/files", "", OWN),
    ("GET", "/containers/{container}/files/{file}", "", CONTENT),
    ("GET", "/containers/{container}/files/{file}/content", "", CONTENT),
    ("POST", "/containers/{container}/files/{file}/promote", "", CONTENT),
    ("DELETE", "/containers/{container}/files/{file}", "", CONTENT),
    // The others find nothing, because the inference key deleted it.
    (
        "DELETE",
        "/files/{document}?workspace_id={workspace}",
        "",
        of([200, 403, 403, 404, 404, 404], [400, 403, 403, 403]),
    ),
    ("GET", "/keys?workspace_id={workspace}", "", READ),
    (
        "POST",
        "/keys",
        r#"{"name":"n","workspace_id":"{workspace}"}"#,
        of([403, 403, 201, 404, 201, 201], [403, 403, 404, 403]),
    ),
    ("POST", "/keys", r#"{"name":"n","management":{"access":"read"}}"#, NEW),
    ("GET", "/keys/{key}", "", READ),
    ("PATCH", "/keys/{key}", r#"{"name":"n"}"#, CHANGE_KEY),
    ("POST", "/keys/{key}/rotate", "", CHANGE_KEY),
    ("GET", "/audit", "", READ_ALL),
    ("GET", "/status", "", READ_ALL),
    ("GET", "/status?model=sandbox/decider", "", READ_ALL),
    ("GET", "/status?model=acme/none", "", of([403, 403, 403, 403, 403, 404], [403, 403, 403, 404])),
    ("POST", "/providers/{provider}/test", "", UNRESTRICTED),
    ("PATCH", "/providers/{provider}", r#"{"paused":false}"#, UNRESTRICTED),
    ("POST", "/catalogue/imports?dry_run=true", r#"[{"id":"a/b"}]"#, INVALID),
    ("GET", "/workspaces", "", LIST),
    ("POST", "/workspaces", r#"{"name":"n"}"#, NEW),
    ("GET", "/workspaces/{workspace}", "", READ),
    ("PATCH", "/workspaces/{workspace}", r#"{"description":"d"}"#, UNRESTRICTED),
    ("PUT", "/workspaces/{workspace}/budgets/{period}", r#"{"limit_usd":1000}"#, UNRESTRICTED),
    ("GET", "/workspaces/{workspace}/budgets", "", READ),
    ("PATCH", "/workspaces/{workspace}/budgets", r#"{"lifetime":2000}"#, UNRESTRICTED),
    ("GET", "/workspaces/{workspace}/budgets/{period}", "", READ),
    ("DELETE", "/workspaces/{workspace}/budgets/{period}", "", UNRESTRICTED),
    ("POST", "/workspaces/{workspace}/credits", r#"{"add_usd":1000}"#, UNRESTRICTED),
    ("GET", "/credits?workspace_id={workspace}", "", READ),
    ("DELETE", "/workspaces/{workspace}/credits", "", UNRESTRICTED),
    // The workspace has contents.
    ("DELETE", "/workspaces/{workspace}", "", INVALID),
    // The last callers find nothing, because the first of them deleted it.
    ("DELETE", "/keys/{key}", "", of([403, 403, 200, 404, 404, 404], [403, 403, 404, 403])),
];

/// A request for a decision.
const QUESTION: &str =
    r#"{"model":"sandbox/decider","state":"s","questions":{"q":{"type":"noul","instructions":"Is it urgent?"}}}"#;
