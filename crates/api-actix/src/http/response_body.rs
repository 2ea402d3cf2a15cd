//! The envelopes of response bodies.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

/// One record: `{"data":…}`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Data<T> {
    pub(crate) data: T,
}

/// A page of records: `{"data":[…],"total_count":…}`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    pub(crate) data: Vec<T>,
    /// The total number of records, including those on other pages.
    pub(crate) total_count: u64,
}

/// Confirms a deletion.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Deleted {
    deleted: bool,
}

impl<T: Serialize + ToSchema> Data<T> {
    /// Creates the response with one record.
    pub(crate) fn respond(status: StatusCode, data: T) -> HttpResponse {
        HttpResponse::build(status).json(Self { data })
    }
}

impl<T: Serialize + ToSchema> Page<T> {
    /// Creates the response with a page of records.
    pub(crate) fn respond(data: Vec<T>, total_count: u64) -> HttpResponse {
        HttpResponse::Ok().json(Self { data, total_count })
    }
}

impl Deleted {
    /// Creates the response to a deletion.
    pub(crate) fn respond() -> HttpResponse {
        HttpResponse::Ok().json(Self { deleted: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::body::to_bytes;

    async fn written(response: HttpResponse) -> String {
        String::from_utf8(to_bytes(response.into_body()).await.unwrap().to_vec()).unwrap()
    }

    #[actix_web::test]
    async fn envelopes_have_their_members_in_order() {
        assert_eq!(written(Data::respond(StatusCode::CREATED, 7)).await, r#"{"data":7}"#);
        assert_eq!(written(Page::respond(vec!["a"], 9)).await, r#"{"data":["a"],"total_count":9}"#);
        assert_eq!(written(Deleted::respond()).await, r#"{"deleted":true}"#);
    }
}
