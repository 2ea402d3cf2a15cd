//! Importing catalogue rows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{
    CatalogueChange, CatalogueSnapshot, CatalogueViolation, ImportCatalogueError, Model, ModelId, ModelRepository,
};
use crate::audit::AuditDraft;
use crate::authority::{Authority, Right};
use crate::error::StoreError;
use crate::json::Json;

/// Imports catalogue rows in one transaction.
pub struct ImportCatalogue {
    models: Arc<dyn ModelRepository>,
    served: HashSet<ModelId>,
}

/// The treatment of rows that are not in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportMode {
    /// Keeps them.
    Merge,
    /// Removes them, except for models that an endpoint serves.
    Replace,
}

/// The result of an import, in rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImportReport {
    /// New rows.
    pub imported: usize,
    /// Rows with known ids, changed or not.
    pub updated: usize,
    /// Removed rows.
    pub removed: usize,
}

/// The result that an import would have.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportPreview {
    /// The version of the catalogue that it is about.
    pub version: u64,
    /// The counts of rows.
    pub report: ImportReport,
    /// The rows that the import would remove.
    pub removed: Vec<ModelId>,
    /// All rows after the import.
    pub rows: Vec<Model>,
}

/// The most attempts of an import under concurrent imports.
const ATTEMPTS: usize = 5;

impl ImportCatalogue {
    /// Wires the port.
    pub fn new(models: Arc<dyn ModelRepository>) -> Self {
        Self { models, served: HashSet::new() }
    }

    /// Sets the models that endpoints serve. [`ImportMode::Replace`] keeps their rows: an endpoint without an own price
    /// charges the catalogue's price, and must not become free because a file lacks the row.
    #[must_use]
    pub fn serving(mut self, models: impl IntoIterator<Item = ModelId>) -> Self {
        self.served.extend(models);
        self
    }

    /// Validates `rows` as [`Self::execute`] does, and stores nothing.
    pub async fn preview(
        &self,
        by: &Authority,
        rows: Vec<Model>,
        mode: ImportMode,
    ) -> Result<ImportPreview, ImportCatalogueError> {
        by.check(Right::Unrestricted)?;
        if rows.is_empty() {
            return Err(CatalogueViolation::Empty.into());
        }
        // A change between the two reads makes the version too old, and an import with it changes nothing.
        let version = self.models.version().await?;
        let stored = self.models.list().await?;
        let (change, report) = plan(&stored, rows, mode, &self.served)?;
        let replaced: HashSet<&ModelId> = change.upsert.iter().map(|row| &row.id).chain(&change.remove).collect();
        let kept = stored.iter().filter(|row| !replaced.contains(&row.id));
        let rows = kept.chain(&change.upsert).cloned().collect();
        Ok(ImportPreview { version, report, removed: change.remove, rows })
    }

    /// Validates `rows` together with the kept rows, then stores them in one transaction.
    ///
    /// A removed row whose canonical slug and variant return in a new row was renamed: its old id still resolves.
    pub async fn execute(
        &self,
        by: &Authority,
        rows: Vec<Model>,
        mode: ImportMode,
    ) -> Result<ImportReport, ImportCatalogueError> {
        by.check(Right::Unrestricted)?;
        if rows.is_empty() {
            return Err(CatalogueViolation::Empty.into());
        }
        for _ in 0..ATTEMPTS {
            let version = self.models.version().await?;
            if let Some(report) = self.apply(by, rows.clone(), mode, version).await? {
                return Ok(report);
            }
        }
        Err(StoreError::unavailable("the catalogue was changed concurrently by other imports").into())
    }

    /// Imports rows as [`Self::execute`] does, if the catalogue still has the version of a preview: the import then
    /// removes the rows that the preview named.
    ///
    /// # Errors
    /// [`ImportCatalogueError::Changed`] if it has another version; nothing is stored then.
    pub async fn execute_previewed(
        &self,
        by: &Authority,
        rows: Vec<Model>,
        mode: ImportMode,
        version: u64,
    ) -> Result<ImportReport, ImportCatalogueError> {
        by.check(Right::Unrestricted)?;
        if rows.is_empty() {
            return Err(CatalogueViolation::Empty.into());
        }
        self.apply(by, rows, mode, version).await?.ok_or(ImportCatalogueError::Changed)
    }

    /// Stores the rows if the catalogue has this version. Returns `None`, and stores nothing, otherwise.
    async fn apply(
        &self,
        by: &Authority,
        rows: Vec<Model>,
        mode: ImportMode,
        version: u64,
    ) -> Result<Option<ImportReport>, ImportCatalogueError> {
        let stored = self.models.list().await?;
        let (change, report) = plan(&stored, rows, mode, &self.served)?;
        let is_applied = self.models.apply(&change, version, &imported(by, &report, &stored, &change)).await?;
        Ok(is_applied.then_some(report))
    }
}

/// The most rows that an audit entry names.
const MAX_NAMED_ROWS: usize = 50;

/// Returns the audit entry of an import: the counts of rows, and the rows that were removed or changed prices.
fn imported(by: &Authority, report: &ImportReport, stored: &[Model], change: &CatalogueChange) -> AuditDraft {
    let counts = [report.imported, report.updated, report.removed].map(|count| count.to_string());
    let [imported, updated, removed] = &counts;
    let known: HashMap<&ModelId, &Model> = stored.iter().map(|row| (&row.id, row)).collect();
    let prices = |row: &Model| {
        let [prompt, completion] = [&row.pricing.prompt, &row.pricing.completion].map(ToString::to_string);
        Json::object([("prompt", Json::string(&prompt).text()), ("completion", Json::string(&completion).text())])
    };
    let repriced = change.upsert.iter().filter_map(|row| {
        let before = known.get(&row.id).map_or_else(|| Json::from(serde_json::Value::Null), |before| prices(before));
        let after = prices(row);
        let id = Json::string(row.id.as_str());
        (before != after).then(|| Json::object([("id", id.text()), ("before", before.text()), ("after", after.text())]))
    });
    let repriced: Vec<Json> = repriced.take(MAX_NAMED_ROWS).collect();
    let gone: Vec<Json> = change.remove.iter().take(MAX_NAMED_ROWS).map(|id| Json::string(id.as_str())).collect();
    let (repriced, gone) = (Json::array(repriced.iter().map(Json::text)), Json::array(gone.iter().map(Json::text)));
    let details = Json::object([
        ("imported", imported.as_str()),
        ("updated", updated),
        ("removed", removed),
        ("prices", repriced.text()),
        ("gone", gone.text()),
    ]);
    AuditDraft::done(by.actor(), "catalogue.import", "catalogue", details)
}

fn plan(
    stored: &[Model],
    mut rows: Vec<Model>,
    mode: ImportMode,
    served: &HashSet<ModelId>,
) -> Result<(CatalogueChange, ImportReport), CatalogueViolation> {
    let incoming: HashSet<ModelId> = rows.iter().map(|row| row.id.clone()).collect();
    if incoming.len() != rows.len() {
        CatalogueSnapshot::check(&rows)?;
    }
    let known: HashMap<&ModelId, &Model> = stored.iter().map(|row| (&row.id, row)).collect();
    // The target of an alias may be removed, so aliases are removed too.
    let stays = |row: &Model| {
        mode == ImportMode::Merge
            || served.contains(&row.id) && row.alias_target.is_none()
            || served.contains(&row.canonical_slug) && row.alias_target.is_none() && row.id.variant().is_none()
    };
    let (staying, going): (Vec<&Model>, Vec<&Model>) =
        stored.iter().filter(|row| !incoming.contains(&row.id)).partition(|row| stays(row));
    let remove: Vec<ModelId> = going.iter().map(|row| row.id.clone()).collect();
    keep_former_names(&mut rows, &known, &remove);

    let result: Vec<Model> = staying.into_iter().chain(&rows).cloned().collect();
    CatalogueSnapshot::check(&result)?;

    let updated = rows.iter().filter(|row| known.contains_key(&row.id)).count();
    let report = ImportReport { imported: rows.len() - updated, updated, removed: remove.len() };
    Ok((CatalogueChange { upsert: rows, remove }, report))
}

fn keep_former_names(rows: &mut [Model], known: &HashMap<&ModelId, &Model>, remove: &[ModelId]) {
    for row in rows {
        if let Some(before) = known.get(&row.id) {
            add_names(row, before.renamed_from.clone());
        }
        let renamed: Vec<&Model> = remove
            .iter()
            .filter_map(|id| known.get(id).copied())
            .filter(|gone| {
                gone.alias_target.is_none()
                    && row.alias_target.is_none()
                    && gone.canonical_slug == row.canonical_slug
                    && gone.id.variant() == row.id.variant()
            })
            .collect();
        for gone in renamed {
            add_names(row, gone.renamed_from.iter().cloned().chain([gone.id.clone()]));
        }
    }
}

fn add_names(row: &mut Model, names: impl IntoIterator<Item = ModelId>) {
    for name in names {
        if name != row.id && !row.renamed_from.contains(&name) {
            row.renamed_from.push(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{MockModelRepository, Pricing};
    use crate::money::Price;

    fn row(id: &str, canonical: &str) -> Model {
        let pricing = Pricing::per_token(Price::ZERO, Price::ZERO);
        Model { canonical_slug: canonical.parse().unwrap(), ..Model::minimal(id.parse().unwrap(), pricing) }
    }

    #[test]
    fn merge_adds_and_updates_by_id() {
        let (change, report) =
            plan(&[row("a/b", "a/b")], vec![row("a/b", "a/b"), row("a/c", "a/c")], ImportMode::Merge, &HashSet::new())
                .unwrap();
        assert_eq!(report, ImportReport { imported: 1, updated: 1, removed: 0 });
        assert!(change.remove.is_empty());
    }

    #[test]
    fn replace_keeps_only_rows_of_the_file_and_former_names() {
        let stored = [row("a/old", "a/x-20260101"), row("a/gone", "a/gone")];
        let (change, report) =
            plan(&stored, vec![row("a/new", "a/x-20260101")], ImportMode::Replace, &HashSet::new()).unwrap();
        assert_eq!(report, ImportReport { imported: 1, updated: 0, removed: 2 });
        assert_eq!(change.upsert[0].renamed_from, ["a/old".parse().unwrap()]);
    }

    #[test]
    fn replace_keeps_rows_of_served_models_with_prices() {
        let mut alias = row("~a/x-latest", "~a/x-latest");
        alias.alias_target = Some(crate::model::AliasTarget { name: String::new(), slug: "a/gone".parse().unwrap() });
        let stored =
            [row("a/paid", "a/paid-20260101"), row("a/dated", "a/dated-20260101"), row("a/gone", "a/gone"), alias];
        let served = ["a/paid", "a/dated-20260101", "~a/x-latest"].map(|id| id.parse().unwrap());
        let (change, report) = plan(&stored, vec![row("b/new", "b/new")], ImportMode::Replace, &served.into()).unwrap();
        assert_eq!(report, ImportReport { imported: 1, updated: 0, removed: 2 });
        assert_eq!(change.remove, ["a/gone", "~a/x-latest"].map(|id| id.parse().unwrap()));
    }

    #[test]
    fn former_names_survive_the_next_import() {
        let mut stored = row("a/new", "a/new");
        stored.renamed_from = vec!["a/old".parse().unwrap()];
        let (change, _) = plan(&[stored], vec![row("a/new", "a/new")], ImportMode::Merge, &HashSet::new()).unwrap();
        assert_eq!(change.upsert[0].renamed_from.len(), 1);
    }

    #[test]
    fn audit_entry_names_removed_rows_and_changed_prices() {
        let priced = |id: &str, price: &str| Model {
            pricing: Pricing::per_token(price.parse().unwrap(), Price::ZERO),
            ..row(id, id)
        };
        let stored = [priced("a/same", "1"), priced("a/dearer", "1"), row("a/gone", "a/gone")];
        let rows = vec![priced("a/same", "1"), priced("a/dearer", "2.50"), priced("a/new", "3")];
        let (change, report) = plan(&stored, rows, ImportMode::Replace, &HashSet::new()).unwrap();
        let draft = imported(&Authority::system(), &report, &stored, &change);
        assert_eq!(
            draft.details.text(),
            concat!(
                r#"{"imported":1,"updated":2,"removed":1,"prices":["#,
                r#"{"id":"a/dearer","before":{"prompt":"1","completion":"0"},"after":{"prompt":"2.50","completion":"0"}},"#,
                r#"{"id":"a/new","before":null,"after":{"prompt":"3","completion":"0"}}],"gone":["a/gone"]}"#,
            )
        );
        let many: Vec<Model> = (0..200).map(|number| priced(&format!("a/m{number}"), "1")).collect();
        let (change, report) = plan(&[], many, ImportMode::Merge, &HashSet::new()).unwrap();
        let draft = imported(&Authority::system(), &report, &[], &change);
        assert_eq!(draft.details.text().matches("\"id\"").count(), MAX_NAMED_ROWS, "an entry stays small");
    }

    #[tokio::test]
    async fn import_retries_after_concurrent_import() {
        let mut models = MockModelRepository::new();
        let mut version = 0;
        models.expect_version().times(2).returning(move || {
            version += 1;
            Ok(version)
        });
        models.expect_list().times(2).returning(|| Ok(Vec::new()));
        models.expect_apply().times(2).returning(|_, version, _| Ok(version == 2));
        let import = ImportCatalogue::new(Arc::new(models));
        assert_eq!(
            import.execute(&Authority::system(), vec![row("a/b", "a/b")], ImportMode::Merge).await.unwrap().imported,
            1
        );
    }

    #[tokio::test]
    async fn preview_reports_result_and_stores_nothing() {
        let mut models = MockModelRepository::new();
        models.expect_version().returning(|| Ok(7));
        models.expect_list().returning(|| Ok(vec![row("a/kept", "a/kept"), row("a/gone", "a/gone")]));
        models.expect_apply().never();
        let import = ImportCatalogue::new(Arc::new(models)).serving(["a/kept".parse().unwrap()]);
        let rows = || vec![row("a/new", "a/new")];
        let ids = |rows: &[Model]| rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>();
        let replaced = import.preview(&Authority::system(), rows(), ImportMode::Replace).await.unwrap();
        assert_eq!(replaced.report, ImportReport { imported: 1, updated: 0, removed: 1 });
        assert_eq!((replaced.version, replaced.removed), (7, vec!["a/gone".parse().unwrap()]));
        assert_eq!(ids(&replaced.rows), ["a/kept", "a/new"]);
        let merged = import.preview(&Authority::system(), rows(), ImportMode::Merge).await.unwrap();
        assert_eq!((merged.removed.len(), ids(&merged.rows).len()), (0, 3));
        assert!(import.preview(&Authority::system(), Vec::new(), ImportMode::Merge).await.is_err());
    }

    #[tokio::test]
    async fn previewed_import_changes_nothing_after_another_import() {
        let mut models = MockModelRepository::new();
        models.expect_version().returning(|| Ok(7));
        models.expect_list().returning(|| Ok(vec![row("a/gone", "a/gone")]));
        // Another import has added a row since the preview, and this one would remove it, too.
        models.expect_apply().times(2).returning(|_, version, _| Ok(version == 8));
        let import = ImportCatalogue::new(Arc::new(models));
        let rows = || vec![row("a/new", "a/new")];
        let preview = import.preview(&Authority::system(), rows(), ImportMode::Replace).await.unwrap();
        let execute =
            async |version| import.execute_previewed(&Authority::system(), rows(), ImportMode::Replace, version).await;
        let rejected = execute(preview.version).await.unwrap_err();
        assert!(matches!(rejected, ImportCatalogueError::Changed), "{rejected}");
        assert_eq!(execute(8).await.unwrap().removed, 1);
    }

    #[tokio::test]
    async fn invalid_file_changes_nothing() {
        let mut models = MockModelRepository::new();
        models.expect_version().returning(|| Ok(0));
        models.expect_list().returning(|| Ok(Vec::new()));
        models.expect_apply().never();
        let import = ImportCatalogue::new(Arc::new(models));
        assert!(import.execute(&Authority::system(), Vec::new(), ImportMode::Merge).await.is_err());
        assert!(
            import
                .execute(&Authority::system(), vec![row("a/b", "a/b"), row("a/b", "a/b")], ImportMode::Merge)
                .await
                .is_err()
        );
    }
}
