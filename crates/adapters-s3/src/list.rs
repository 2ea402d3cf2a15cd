//! Listing of objects.

use chrono::SubsecRound as _;
use domain::container::{BlobKey, BlobMeta};
use domain::error::StoreError;
use object_store::ObjectMeta;
use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListStore as _};

use crate::failure::unavailable;
use crate::names::Names;

/// The largest page of the service.
const MAX_PAGE: usize = 1_000;

/// Returns up to `limit` objects in bytewise order, which is the order of the service.
pub(crate) async fn list(
    store: &AmazonS3,
    names: &Names,
    prefix: &str,
    after: Option<&BlobKey>,
    limit: usize,
) -> Result<Vec<BlobMeta>, StoreError> {
    let prefix = names.below(prefix);
    let offset = after.map(|key| names.below(key.as_str()));
    let (mut found, mut page_token) = (Vec::new(), None);
    while found.len() < limit {
        let options = PaginatedListOptions {
            offset: offset.clone(),
            max_keys: Some((limit - found.len()).min(MAX_PAGE)),
            page_token,
            ..PaginatedListOptions::default()
        };
        let page = store.list_paginated(Some(&prefix), options).await;
        let page = page.map_err(|error| unavailable("list objects", &error))?;
        found.extend(page.result.objects.iter().filter_map(|object| meta(names, object)));
        page_token = page.page_token;
        if page_token.is_none() {
            break;
        }
    }
    found.truncate(limit);
    Ok(found)
}

/// Returns the metadata of an object of this store. Listings have fractions of a second, other answers have none.
pub(crate) fn meta(names: &Names, object: &ObjectMeta) -> Option<BlobMeta> {
    let key = names.key(&object.location)?;
    Some(BlobMeta { key, size_bytes: object.size, modified_at: object.last_modified.trunc_subsecs(0), links: 1 })
}
