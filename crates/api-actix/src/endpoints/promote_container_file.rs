//! `POST /containers/{container_id}/files/{file_id}/promote`: copies a container file into the workspace documents.

use std::pin::pin;

use domain::error::ErrorKind;
use domain::file::PromoteError;
use domain::repetition::IdempotencyKey;
use domain::usage::RejectionReason;
use futures_util::future::{Either, join, select};
use tokio_util::sync::CancellationToken;

use crate::endpoints::container_files;
use crate::endpoints::files::shapes::{Shape, file_schema};
use crate::endpoints::prelude::*;
use crate::http::conditions::idempotency_key;
use crate::http::detach::box_in_place;
use crate::http::route_parameters::Header;

pub(crate) const ROUTE: Route =
    Route::any_key(Post, "/containers/{container_id}/files/{file_id}/promote", tags::FILES, handler!(handle))
        .any_query()
        .operation("promoteContainerFile", "Promote a container file into workspace documents")
        .description(
            "Copies the file from the container's sandbox prefix into the workspace's durable document storage. \
             Counts against the workspace's storage quota. The shape of the answer follows the headers \
             `anthropic-version`, `User-Agent` and `X-Stainless-*`.",
        )
        .answer(file_schema, "The new document")
        .headers(&[Header::new(
            "Idempotency-Key",
            "A retry with the same key within 24 hours returns the first document.",
            255,
            &[400],
        )]);

impl From<PromoteError> for ApiError {
    fn from(error: PromoteError) -> Self {
        let plain = Self::from_kind(error.kind());
        match error {
            PromoteError::ContainerId(_)
            | PromoteError::FileId(_)
            | PromoteError::IdempotencyKey(_)
            | PromoteError::IdempotencyKeyReused
            | PromoteError::HardLinked { .. } => plain.message(error.to_string()),
            PromoteError::NotFound => plain,
            PromoteError::TooLarge { file_bytes, max_bytes } => {
                plain.metadata("file_bytes", file_bytes).metadata("max_file_bytes", max_bytes)
            }
            PromoteError::QuotaExceeded { quota_bytes, used_bytes, file_bytes, charged_bytes } => plain
                .reason(RejectionReason::StorageQuotaExceeded)
                .message("The workspace's storage quota does not allow this file")
                .metadata("quota_bytes", quota_bytes)
                .metadata("used_bytes", used_bytes)
                .metadata("file_bytes", file_bytes)
                .metadata("charged_bytes", charged_bytes),
            PromoteError::TooManyDocuments { max_documents, documents } => plain
                .reason(RejectionReason::StorageQuotaExceeded)
                .message(error.to_string())
                .metadata("max_documents", max_documents)
                .metadata("documents", documents),
            PromoteError::SourceChanged => {
                plain.reason(RejectionReason::SourceChanged).metadata("reason", error.to_string())
            }
            PromoteError::StillInProgress => {
                plain.reason(RejectionReason::PromotionInProgress).metadata("reason", error.to_string())
            }
            PromoteError::Store(store) => store.into(),
        }
    }
}

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
    let key = caller.inference()?.clone();
    let headers = call.request.headers();
    let (container_id, file_id) = (container_files::container_id(call)?, container_files::file_id(call)?);
    let idempotency_key = idempotency_key(headers)?;
    let promote = Arc::clone(&call.gateway.services.promote);
    let (stopping, disconnected) = (call.gateway.stopping.clone(), CancellationToken::new());
    let left = disconnected.clone();
    let work = box_in_place(|| async move {
        let key_text = idempotency_key.as_ref().map(IdempotencyKey::as_str);
        let wait_ends = async {
            select(pin!(left.cancelled()), pin!(stopping.cancelled())).await;
        };
        let promoted = promote.execute(&key, &container_id, &file_id, key_text, wait_ends);
        let abandoned = join(left.cancelled(), stopping.cancelled());
        // `abandoned` is polled first: timers and connections of a thread that has stopped must not be polled again.
        match select(pin!(abandoned), pin!(promoted)).await {
            Either::Left(_) => Err(ApiError::from_kind(ErrorKind::Unavailable)
                .caused_by("the server stops, and the client of the promotion has disconnected")),
            Either::Right((promoted, _)) => Ok::<_, ApiError>(promoted?),
        }
    });
    // A started copy is finished or undone, even if the client disconnects; only a stop abandons it then.
    let document = call.run_detachable(work, disconnected).await?;
    Ok(Shape::of(call).file(&document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promote_error_names_sizes_when_size_is_exceeded() {
        let error = ApiError::from(PromoteError::TooLarge { file_bytes: 11, max_bytes: 10 });
        assert_eq!((error.status().as_u16(), error.parts().metadata["max_file_bytes"].clone()), (413, 10.into()));
        let error = ApiError::from(PromoteError::QuotaExceeded {
            quota_bytes: 9,
            used_bytes: 5,
            file_bytes: 6,
            charged_bytes: 7,
        });
        assert_eq!(error.status().as_u16(), 403);
        assert_eq!(error.parts().metadata["used_bytes"], 5);
        assert_eq!(error.parts().metadata["charged_bytes"], 7);
        let error = ApiError::from(PromoteError::TooManyDocuments { max_documents: 3, documents: 4 });
        assert_eq!((error.status().as_u16(), error.parts().metadata["max_documents"].clone()), (403, 3.into()));
        assert_eq!(error.text(), "the workspace has 4 documents and may have 3");
        let error = ApiError::from(PromoteError::HardLinked { links: 2 });
        assert_eq!(error.status().as_u16(), 400);
        assert!(error.text().contains("2 hard links"), "{}", error.text());
        assert_eq!(ApiError::from(PromoteError::SourceChanged).status().as_u16(), 503);
        assert_eq!(ApiError::from(PromoteError::NotFound).text(), "Resource not found");
    }
}
