//! The operator: the caller on a Unix socket, whom the operating system authenticates.

use std::os::unix::net::UnixListener;
use std::sync::Arc;

use actix_web::http::header::{HeaderMap, HeaderName};
use actix_web::{HttpMessage as _, HttpRequest};
use domain::api_key::Principal;
use domain::audit::Actor;
use domain::authority::Authority;
use domain::error::ErrorKind;
use http_server::PeerCredentials;

use crate::http::error::ApiError;

/// Returns the actor of a user of the operating system by its id; `None` for a user who is not the operator.
pub type OperatorActor = Arc<dyn Fn(u32) -> Option<Actor> + Send + Sync>;

/// A listening Unix socket for the operator.
pub struct OperatorSocket {
    /// The socket.
    pub listener: UnixListener,
    /// Recognises the operator.
    pub actor: OperatorActor,
}

/// The listener that a request came through.
#[derive(Clone)]
pub(crate) enum Door {
    /// The port: callers have keys.
    Port,
    /// The Unix socket: every caller is the operator, without a key.
    Operator(OperatorActor),
}

/// The user behind `sudo`, as the command claims.
const SUDO_USER: HeaderName = HeaderName::from_static("x-tollgate-sudo-user");
/// The longest recorded name, in characters.
const MAX_USER: usize = 64;

impl Door {
    /// Returns the operator; `None` on the port.
    ///
    /// # Errors
    /// 403 for a user of the operating system who is not the operator.
    pub(crate) fn operator(&self, request: &HttpRequest) -> Result<Option<Principal>, ApiError> {
        let Self::Operator(actor) = self else { return Ok(None) };
        let peer = request.extensions().get::<PeerCredentials>().copied();
        let Some(actor) = peer.and_then(|peer| actor(peer.user)) else {
            let message = "This socket serves the user of the server and root only";
            return Err(ApiError::from_kind(ErrorKind::Forbidden).message(message));
        };
        Ok(Some(Principal::Operator(Authority::operator(with_claim(actor, request.headers())))))
    }
}

/// Adds the claimed user to the source. Anyone can set a variable, so the name is bounded and marked as a claim.
fn with_claim(actor: Actor, headers: &HeaderMap) -> Actor {
    let Some(claim) = headers.get(SUDO_USER) else { return actor };
    let claim = String::from_utf8_lossy(claim.as_bytes());
    let of: String = claim.chars().filter(|sign| !sign.is_control()).take(MAX_USER).collect();
    let source = actor.source.unwrap_or_default();
    Actor { source: Some(format!("{source}, sudo of {of}")), ..actor }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use actix_web::test::TestRequest;

    use super::*;

    fn peer(user: u32) -> HttpRequest {
        let request = TestRequest::default().to_http_request();
        request.extensions_mut().insert(PeerCredentials { user, process: None });
        request
    }

    #[test]
    fn operator_is_the_accepted_user_of_the_socket() {
        let actor = |user| (user == 7).then(|| Actor { name: "user:seven".to_owned(), source: None });
        let door = Door::Operator(Arc::new(actor));
        let Ok(Some(Principal::Operator(by))) = door.operator(&peer(7)) else { panic!("no operator") };
        assert!(by.is_operator() && by.actor().name == "user:seven");
        for request in [peer(8), TestRequest::default().to_http_request()] {
            assert_eq!(door.operator(&request).unwrap_err().parts().status, 403);
        }
        assert!(matches!(Door::Port.operator(&peer(7)), Ok(None)));
    }

    #[test]
    fn claimed_user_is_bounded() {
        let actor = || Actor { name: "user:root".to_owned(), source: Some("node-1".to_owned()) };
        let source = |claim: &[u8]| {
            let value = HeaderValue::from_bytes(claim).unwrap();
            with_claim(actor(), &HeaderMap::from_iter([(SUDO_USER, value)])).source.unwrap()
        };
        assert_eq!(with_claim(actor(), &HeaderMap::new()), actor());
        assert_eq!(source(b"alice"), "node-1, sudo of alice");
        let long = source("é".repeat(1000).as_bytes());
        assert_eq!(long, format!("node-1, sudo of {}", "é".repeat(64)));
    }
}
