//! Denied management changes of authenticated callers, for the audit log.

use actix_web::http::Method;
use domain::api_key::Principal;
use domain::audit::DeniedChange;

use super::call::Call;
use super::error::ApiError;
use super::routes::Route;

/// Records a denied management change. Server errors are not recorded.
pub(crate) fn record(call: &Call<'_>, route: &Route, caller: &Principal, error: &ApiError) {
    let Some(denied_changes) = &call.gateway.services.denied_changes else { return };
    let status = error.view().status;
    let Some(method) = change_method(call.request.method()) else { return };
    if status.is_client_error() && route.audited {
        let route = format!("{method} {}", route.pattern);
        denied_changes.record(DeniedChange { actor: call.actor_of(caller.id()), route, status: status.as_u16() });
    }
}

/// Returns the name of a method that changes data. Unknown methods are text of the caller and are not recorded.
fn change_method(method: &Method) -> Option<&'static str> {
    match *method {
        Method::GET | Method::HEAD | Method::OPTIONS => None,
        Method::POST => Some("POST"),
        Method::PUT => Some("PUT"),
        Method::PATCH => Some("PATCH"),
        Method::DELETE => Some("DELETE"),
        _ => Some("other"),
    }
}
