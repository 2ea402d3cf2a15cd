//! Changes that callers who are known asked for and did not get, for the audit log.

use actix_web::http::Method;
use domain::api_key::Principal;
use domain::audit::DeniedChange;

use super::edge::Call;
use super::error::ApiError;
use super::routes::{Operation, Target};

/// Tells of a refusal, where it is one of a change to what is managed. What failed on this side is none.
pub(crate) fn record(call: &Call<'_>, caller: &Principal, error: &ApiError) {
    let Some(refusals) = &call.gateway.services.refusals else { return };
    let status = error.view().status;
    let Some(method) = method_of_change(call.request.method()) else { return };
    if status.is_client_error() && call.route.target.is_managed() {
        let route = format!("{method} {}", call.route.pattern);
        refusals.record(DeniedChange { actor: call.actor_of(caller.id()), route, status: status.as_u16() });
    }
}

/// Methods that change something, by names of ours: a caller may make up any other.
fn method_of_change(method: &Method) -> Option<&'static str> {
    match *method {
        Method::GET | Method::HEAD | Method::OPTIONS => None,
        Method::POST => Some("POST"),
        Method::PUT => Some("PUT"),
        Method::PATCH => Some("PATCH"),
        Method::DELETE => Some("DELETE"),
        _ => Some("other"),
    }
}

impl Target {
    /// True where it is management that can be asked for: what models answer and files hold is none.
    fn is_managed(self) -> bool {
        !matches!(
            self,
            Self::Open(_)
                | Self::Operation(
                    Operation::PromoteContainerFile
                        | Operation::SubmitDecision(_)
                        | Operation::GetModel
                        | Operation::CountModels
                        | Operation::ListModels(_)
                        | Operation::ListModelEndpoints
                        | Operation::ListProviders
                        | Operation::GetGeneration
                )
        )
    }
}
