//! Durable documents, their quota, and the claims that make retries safe.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::audit::AuditDraft;
use domain::error::StoreError;
use domain::file::{
    ClaimState, Document, DocumentPage, DocumentQuota, DocumentRepository, IdempotencyClaim, PendingDocument,
    Reservation, UnreadableDocument,
};
use domain::ids::{DocumentId, WorkspaceId};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect, Select,
};

use super::rows::commit_unmanaged_change;
use crate::convert::{key_column, millis, moment, parse, signed, unsigned};
use crate::entities::documents::{Column, Entity, Model};
use crate::entities::{idempotency_claims as claims, workspaces};
use crate::errors::{corrupt, store_error};
use crate::statements::chunks;

repository! {
    /// Stores documents in the database. The usage of a workspace is a counter in its row, updated in the transaction of a
    /// document, so that quota checks never sum documents.
    SeaOrmDocumentRepository
}

const PENDING: &str = "pending";
const READY: &str = "ready";

#[async_trait]
impl DocumentRepository for SeaOrmDocumentRepository {
    async fn claim_state(&self, claim: &IdempotencyClaim) -> Result<ClaimState, StoreError> {
        claim_state(self.database.readers()?, claim).await
    }

    async fn reserve<'a>(
        &self,
        document: &PendingDocument,
        quota: DocumentQuota,
        claim: Option<&'a IdempotencyClaim>,
    ) -> Result<Reservation, StoreError> {
        let transaction = self.database.begin().await?;
        if let Some(claim) = claim {
            let state = claim_state(&transaction, claim).await?;
            if state != ClaimState::Free {
                return Ok(Reservation::Claimed(state));
            }
        }
        if !take_quota(&transaction, document, quota).await? {
            let Some(usage) = usage(&transaction, document.workspace_id).await? else {
                return Ok(Reservation::UnknownWorkspace);
            };
            return Ok(if fits(document, quota, usage.bytes) {
                Reservation::TooManyDocuments { documents: usage.documents }
            } else {
                Reservation::QuotaExceeded { used_bytes: usage.bytes }
            });
        }
        Entity::insert(pending_row(document)?.into_active_model())
            .exec_without_returning(&transaction)
            .await
            .map_err(store_error)?;
        if let Some(claim) = claim {
            take_claim(&transaction, claim, document).await?;
        }
        transaction.commit().await?;
        Ok(Reservation::Reserved)
    }

    async fn mark_ready(
        &self,
        workspace_id: WorkspaceId,
        id: &DocumentId,
        sha256: &str,
        media_type: &str,
    ) -> Result<Option<Document>, StoreError> {
        let transaction = self.database.begin_durable().await?;
        // A claim on the document needs no change: it is complete when its document is ready.
        let updated = Entity::update_many()
            .col_expr(Column::State, Expr::value(READY))
            .col_expr(Column::Sha256, Expr::value(sha256))
            .col_expr(Column::MediaType, Expr::value(media_type))
            .filter(document_condition(workspace_id, id, PENDING))
            .exec_with_returning(&transaction)
            .await
            .map_err(store_error)?;
        let Some(document) = updated.into_iter().next().map(to_document).transpose()? else { return Ok(None) };
        transaction.commit().await?;
        // A row in a file that was removed in the meantime is not acknowledged.
        self.database.check_file()?;
        Ok(Some(document))
    }

    async fn abandon(&self, workspace_id: WorkspaceId, id: &DocumentId) -> Result<bool, StoreError> {
        let transaction = self.database.begin().await?;
        let gone = remove(&transaction, document_condition(workspace_id, id, PENDING)).await?;
        transaction.commit().await?;
        Ok(!gone.is_empty())
    }

    async fn list_pending(&self) -> Result<Vec<PendingDocument>, StoreError> {
        let rows = Entity::find().filter(Column::State.eq(PENDING)).all(self.database.readers()?);
        rows.await.map_err(store_error)?.into_iter().map(to_pending).collect()
    }

    async fn abandon_stale(&self, before: DateTime<Utc>) -> Result<Vec<PendingDocument>, StoreError> {
        let transaction = self.database.begin().await?;
        let stale = Column::State.eq(PENDING).and(Column::CreatedAt.lt(millis(before)));
        let gone = remove(&transaction, stale).await?;
        transaction.commit().await?;
        Ok(gone)
    }

    async fn find(&self, workspace_id: WorkspaceId, id: &DocumentId) -> Result<Option<Document>, StoreError> {
        let query = Entity::find().filter(document_condition(workspace_id, id, READY));
        let found = query.one(self.database.readers()?).await.map_err(store_error)?;
        found.map(to_document).transpose()
    }

    async fn list<'a>(
        &self,
        workspace_id: Option<WorkspaceId>,
        after: Option<&'a DocumentId>,
        limit: u64,
    ) -> Result<Vec<Document>, StoreError> {
        let mut query = Entity::find().filter(Column::State.eq(READY)).order_by_asc(Column::Id).limit(limit);
        if let Some(workspace_id) = workspace_id {
            query = query.filter(Column::WorkspaceId.eq(workspace_id.to_string()));
        }
        if let Some(after) = after {
            query = query.filter(Column::Id.gt(after.as_str()));
        }
        let rows = query.all(self.database.readers()?).await.map_err(store_error)?;
        rows.into_iter().map(to_document).collect()
    }

    async fn scan<'a>(&self, after: Option<&'a str>, limit: u64) -> Result<DocumentPage, StoreError> {
        let readers = self.database.readers()?;
        let mut ids = Entity::find().select_only().column(Column::Id).filter(Column::State.ne(PENDING));
        if let Some(after) = after {
            ids = ids.filter(Column::Id.gt(after));
        }
        let ids = ids.order_by_asc(Column::Id).limit(limit).into_tuple().all(readers);
        let ids: Vec<String> = ids.await.map_err(store_error)?;
        let (mut documents, mut unreadable) = (Vec::with_capacity(ids.len()), Vec::new());
        for piece in chunks(&ids) {
            match read(readers, piece).await {
                Ok(found) => documents.extend(found),
                Err(StoreError::Corrupt(_)) => read_each(readers, piece, &mut documents, &mut unreadable).await?,
                Err(error) => return Err(error),
            }
        }
        Ok(DocumentPage { documents, unreadable, last: ids.into_iter().next_back() })
    }

    async fn delete(
        &self,
        workspace_id: WorkspaceId,
        id: &DocumentId,
        audit: &AuditDraft,
    ) -> Result<Option<Document>, StoreError> {
        let transaction = self.database.begin_durable().await?;
        let found = Entity::find()
            .filter(document_condition(workspace_id, id, READY))
            .one(&transaction)
            .await
            .map_err(store_error)?;
        let Some(document) = found.map(to_document).transpose()? else { return Ok(None) };
        remove(&transaction, document_condition(workspace_id, id, READY)).await?;
        commit_unmanaged_change(transaction, self.database.now(), &[], audit).await?;
        // The bytes are deleted next: the row must be gone for good.
        self.database.check_file()?;
        Ok(Some(document))
    }

    async fn find_unknown(&self, ids: &[DocumentId]) -> Result<Vec<DocumentId>, StoreError> {
        let mut unknown = Vec::new();
        for piece in chunks(ids) {
            let known: Vec<String> = Entity::find()
                .select_only()
                .column(Column::Id)
                .filter(Column::Id.is_in(piece.iter().map(DocumentId::as_str)))
                .into_tuple()
                .all(self.database.readers()?)
                .await
                .map_err(store_error)?;
            let known: std::collections::HashSet<&str> = known.iter().map(String::as_str).collect();
            unknown.extend(piece.iter().filter(|id| !known.contains(id.as_str())).cloned());
        }
        Ok(unknown)
    }

    async fn find_own_workspaces(&self, ids: &[WorkspaceId]) -> Result<Vec<WorkspaceId>, StoreError> {
        let mut own = Vec::new();
        for piece in chunks(ids) {
            // The row of a deleted workspace stays.
            let rows: Vec<String> = workspaces::Entity::find()
                .select_only()
                .column(workspaces::Column::Id)
                .filter(workspaces::Column::Id.is_in(piece.iter().map(ToString::to_string)))
                .into_tuple()
                .all(self.database.readers()?)
                .await
                .map_err(store_error)?;
            own.extend(piece.iter().filter(|id| rows.contains(&id.to_string())));
        }
        Ok(own)
    }

    async fn used_bytes(&self, workspace_id: WorkspaceId) -> Result<u64, StoreError> {
        Ok(usage(self.database.readers()?, workspace_id).await?.map_or(0, |usage| usage.bytes))
    }

    async fn delete_claims(&self, before: DateTime<Utc>) -> Result<u64, StoreError> {
        let transaction = self.database.begin().await?;
        let old = claims::Column::CreatedAt.lt(millis(before));
        let forgotten = claims::Entity::delete_many().filter(old).exec(&transaction).await.map_err(store_error)?;
        transaction.commit().await?;
        Ok(forgotten.rows_affected)
    }
}

/// Reads documents that are not pending, in the order of their ids.
async fn read(connection: &impl ConnectionTrait, ids: &[String]) -> Result<Vec<Document>, StoreError> {
    let of = Entity::find().filter(Column::Id.is_in(ids.iter().map(String::as_str)).and(Column::State.ne(PENDING)));
    let rows = of.order_by_asc(Column::Id).all(connection).await.map_err(store_error)?;
    rows.into_iter().map(to_document).collect()
}

/// Reads documents one by one, because one of their rows cannot be read.
async fn read_each(
    connection: &impl ConnectionTrait,
    ids: &[String],
    documents: &mut Vec<Document>,
    unreadable: &mut Vec<UnreadableDocument>,
) -> Result<(), StoreError> {
    for id in ids {
        match read(connection, std::slice::from_ref(id)).await {
            Ok(found) => documents.extend(found),
            Err(StoreError::Corrupt(problem)) => unreadable.push(UnreadableDocument { id: id.clone(), problem }),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn document_condition(workspace_id: WorkspaceId, id: &DocumentId, state: &str) -> Expr {
    Column::Id.eq(id.as_str()).and(Column::WorkspaceId.eq(workspace_id.to_string())).and(Column::State.eq(state))
}

fn find_claim(claim: &IdempotencyClaim) -> Select<claims::Entity> {
    claims::Entity::find_by_id((key_column(claim.api_key), claim.operation.to_owned(), claim.key.as_str().to_owned()))
}

async fn claim_state(connection: &impl ConnectionTrait, claim: &IdempotencyClaim) -> Result<ClaimState, StoreError> {
    let found = find_claim(claim).find_also_related(Entity).one(connection).await.map_err(store_error)?;
    let Some((made, document)) = found else { return Ok(ClaimState::Free) };
    if made.created_at < millis(claim.not_before) {
        return Ok(ClaimState::Free);
    }
    if made.subject != claim.subject {
        return Ok(ClaimState::Reused);
    }
    let document = document.ok_or_else(|| corrupt("idempotency_claims.document_id", &made.document_id))?;
    if document.state == PENDING { Ok(ClaimState::InProgress) } else { to_document(document).map(ClaimState::Done) }
}

/// Takes a free claim; replaces an expired one.
async fn take_claim(
    transaction: &impl ConnectionTrait,
    claim: &IdempotencyClaim,
    document: &PendingDocument,
) -> Result<(), StoreError> {
    let row = claims::Model {
        api_key: key_column(claim.api_key),
        operation: claim.operation.to_owned(),
        idempotency_key: claim.key.as_str().to_owned(),
        subject: claim.subject.clone(),
        document_id: document.id.as_str().to_owned(),
        created_at: millis(document.created_at),
    };
    let key = (row.api_key.clone(), row.operation.clone(), row.idempotency_key.clone());
    claims::Entity::delete_by_id(key).exec(transaction).await.map_err(store_error)?;
    let row = row.into_active_model();
    claims::Entity::insert(row).exec_without_returning(transaction).await.map_err(store_error)?;
    Ok(())
}

/// Reserves quota; returns false if it is exceeded or the workspace does not exist.
async fn take_quota(
    transaction: &impl ConnectionTrait,
    document: &PendingDocument,
    quota: DocumentQuota,
) -> Result<bool, StoreError> {
    let Some(room_before) = quota.bytes.checked_sub(document.charged_bytes) else { return Ok(false) };
    let charged = signed(document.charged_bytes, "documents.charged_bytes", &document.id)?;
    // The counter must not overflow its column even if the quota allows it.
    let room_before = Ord::min(i64::try_from(room_before).unwrap_or(i64::MAX), i64::MAX - charged);
    let taken = workspaces::Entity::update_many()
        .col_expr(workspaces::Column::StorageUsedBytes, Expr::col(workspaces::Column::StorageUsedBytes).add(charged))
        .col_expr(workspaces::Column::DocumentCount, Expr::col(workspaces::Column::DocumentCount).add(1))
        .filter(workspaces::Column::Id.eq(document.workspace_id.to_string()))
        .filter(workspaces::Column::DeletedAt.is_null())
        .filter(workspaces::Column::StorageUsedBytes.lte(room_before))
        .filter(workspaces::Column::DocumentCount.lt(i64::try_from(quota.documents).unwrap_or(i64::MAX)))
        .exec(transaction)
        .await
        .map_err(store_error)?;
    Ok(taken.rows_affected == 1)
}

/// Returns true if the document fits into the quota.
fn fits(document: &PendingDocument, quota: DocumentQuota, used_bytes: u64) -> bool {
    let sum = used_bytes.checked_add(document.charged_bytes);
    sum.is_some_and(|sum| sum <= quota.bytes && i64::try_from(sum).is_ok())
}

/// The document counters of a workspace, including pending documents.
struct DocumentUsage {
    bytes: u64,
    documents: u64,
}

async fn usage(connection: &impl ConnectionTrait, id: WorkspaceId) -> Result<Option<DocumentUsage>, StoreError> {
    let found: Option<(i64, i64)> = workspaces::Entity::find_by_id(id.to_string())
        .select_only()
        .columns([workspaces::Column::StorageUsedBytes, workspaces::Column::DocumentCount])
        .filter(workspaces::Column::DeletedAt.is_null())
        .into_tuple()
        .one(connection)
        .await
        .map_err(store_error)?;
    let Some((bytes, documents)) = found else { return Ok(None) };
    Ok(Some(DocumentUsage {
        bytes: unsigned(bytes, "workspaces.storage_used_bytes", id)?,
        documents: unsigned(documents, "workspaces.document_count", id)?,
    }))
}

/// Removes documents with their claims and releases their quota.
async fn remove(transaction: &impl ConnectionTrait, which: Expr) -> Result<Vec<PendingDocument>, StoreError> {
    let removed = Entity::delete_many().filter(which).exec_with_returning(transaction).await.map_err(store_error)?;
    for row in &removed {
        workspaces::Entity::update_many()
            .col_expr(
                workspaces::Column::StorageUsedBytes,
                Expr::col(workspaces::Column::StorageUsedBytes).sub(row.charged_bytes),
            )
            .col_expr(workspaces::Column::DocumentCount, Expr::col(workspaces::Column::DocumentCount).sub(1))
            .filter(workspaces::Column::Id.eq(row.workspace_id.as_str()))
            .exec(transaction)
            .await
            .map_err(store_error)?;
    }
    removed.into_iter().map(to_pending).collect()
}

fn pending_row(document: &PendingDocument) -> Result<Model, StoreError> {
    Ok(Model {
        id: document.id.as_str().to_owned(),
        workspace_id: document.workspace_id.to_string(),
        state: PENDING.to_owned(),
        filename: document.filename.clone(),
        size_bytes: signed(document.size_bytes, "documents.size_bytes", &document.id)?,
        charged_bytes: signed(document.charged_bytes, "documents.charged_bytes", &document.id)?,
        sha256: None,
        media_type: None,
        created_at: millis(document.created_at),
        process: document.process.map(|process| process.to_string()),
    })
}

fn to_pending(row: Model) -> Result<PendingDocument, StoreError> {
    let id: DocumentId = parse(&row.id, "documents.id", &row.id)?;
    Ok(PendingDocument {
        workspace_id: parse(&row.workspace_id, "documents.workspace_id", &id)?,
        filename: row.filename,
        size_bytes: unsigned(row.size_bytes, "documents.size_bytes", &id)?,
        charged_bytes: unsigned(row.charged_bytes, "documents.charged_bytes", &id)?,
        process: row.process.map(|process| parse(&process, "documents.process", &id)).transpose()?,
        created_at: moment(row.created_at, "documents.created_at", &id)?,
        id,
    })
}

fn to_document(mut row: Model) -> Result<Document, StoreError> {
    let (READY, Some(sha256), Some(media_type)) = (row.state.as_str(), row.sha256.take(), row.media_type.take()) else {
        return Err(corrupt("documents.state", &row.id));
    };
    let PendingDocument { id, workspace_id, filename, size_bytes, created_at, .. } = to_pending(row)?;
    Ok(Document { id, workspace_id, filename, media_type, size_bytes, sha256, created_at })
}
