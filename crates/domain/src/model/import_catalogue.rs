//! Importing catalogue rows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{
    CatalogueChange, CatalogueSnapshot, CatalogueViolation, ImportCatalogueError, Model, ModelId, ModelRepository,
};
use crate::audit::AuditDraft;
use crate::authority::{Authority, Right};
use crate::change::{Change, MAX_ATTEMPTS};
use crate::json::ObjectWriter;
use crate::version::Version;

/// Imports catalogue rows in one transaction.
pub struct ImportCatalogue {
    models: Arc<dyn ModelRepository>,
    served: HashSet<ModelId>,
    sandbox: HashSet<ModelId>,
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
    /// Changed rows.
    pub updated: usize,
    /// Removed rows.
    pub removed: usize,
}

/// An import, done or previewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueImport {
    /// The version of the catalogue before it.
    pub version: Version,
    /// The counts of rows.
    pub report: ImportReport,
    /// The removed rows.
    pub removed: Vec<ModelId>,
    /// The number of models after it that an endpoint serves.
    pub callable_models: usize,
}

/// An import that is ready to be stored.
struct PlannedImport {
    change: CatalogueChange,
    counter: u64,
    audit: AuditDraft,
    result: CatalogueImport,
}

impl ImportCatalogue {
    /// Wires the port.
    pub fn new(models: Arc<dyn ModelRepository>) -> Self {
        Self { models, served: HashSet::new(), sandbox: HashSet::new() }
    }

    /// Sets the models that endpoints serve. [`ImportMode::Replace`] keeps their rows: an endpoint without an own price
    /// charges the catalogue's price, and must not become free because a file lacks the row. Those of the sandbox only
    /// count as callable.
    #[must_use]
    pub fn serving(
        mut self,
        models: impl IntoIterator<Item = ModelId>,
        sandbox: impl IntoIterator<Item = ModelId>,
    ) -> Self {
        self.served.extend(models);
        self.sandbox.extend(sandbox);
        self
    }

    /// Validates `rows` as [`Self::execute`] does, and stores nothing.
    ///
    /// # Errors
    /// The caller lacks the right, or accepts another version only; invalid rows; a store failure.
    pub async fn preview(
        &self,
        change: &Change<'_, CatalogueImport>,
        rows: Vec<Model>,
        mode: ImportMode,
    ) -> Result<CatalogueImport, ImportCatalogueError> {
        Ok(self.plan(change, rows, mode).await?.result)
    }

    /// Validates `rows` together with the kept rows, then stores them in one transaction, in which the catalogue still
    /// has the version of the result. Rows that are there already change nothing, not even the version.
    /// [`ImportMode::Replace`] needs the versions that the caller accepts: it removes the rows that a preview of that
    /// version named.
    ///
    /// A removed row whose canonical slug and variant return in a new row was renamed: its old id still resolves.
    ///
    /// # Errors
    /// As [`Self::preview`]; no version for a replacement; other imports changed the catalogue each time.
    pub async fn execute(
        &self,
        change: &Change<'_, CatalogueImport>,
        rows: Vec<Model>,
        mode: ImportMode,
    ) -> Result<CatalogueImport, ImportCatalogueError> {
        change.by().check(Right::Unrestricted)?;
        if mode == ImportMode::Replace && !change.is_conditional() {
            return Err(ImportCatalogueError::VersionRequired);
        }
        for _ in 0..MAX_ATTEMPTS {
            let planned = self.plan(change, rows.clone(), mode).await?;
            if planned.change == CatalogueChange::default() {
                return Ok(planned.result);
            }
            let audit = change.audited(planned.audit, &planned.result);
            if self.models.apply(&planned.change, planned.counter, &audit).await? {
                return Ok(planned.result);
            }
        }
        Err(ImportCatalogueError::Contended)
    }

    async fn plan(
        &self,
        change: &Change<'_, CatalogueImport>,
        rows: Vec<Model>,
        mode: ImportMode,
    ) -> Result<PlannedImport, ImportCatalogueError> {
        change.by().check(Right::Unrestricted)?;
        if rows.is_empty() {
            return Err(CatalogueViolation::Empty.into());
        }
        // A change between the two reads makes the version too old, and an import with it changes nothing.
        let counter = self.models.version().await?;
        let version = Version::from_counter(counter);
        change.check_version(version)?;
        let stored = self.models.list().await?;
        let (planned, report) = plan(&stored, rows, mode, &self.served)?;
        let audit = imported(change.by(), &report, &stored, &planned);
        let (removed, callable_models) = (planned.remove.clone(), self.count_callable(&stored, &planned));
        let result = CatalogueImport { version, report, removed, callable_models };
        Ok(PlannedImport { change: planned, counter, audit, result })
    }

    /// Counts the models after an import that an endpoint serves, with those whose row is only in the configuration.
    fn count_callable(&self, stored: &[Model], change: &CatalogueChange) -> usize {
        let replaced: HashSet<&ModelId> = change.upsert.iter().map(|row| &row.id).chain(&change.remove).collect();
        let rows = || stored.iter().filter(|row| !replaced.contains(&row.id)).chain(&change.upsert);
        let named: HashSet<&ModelId> = rows().flat_map(|row| [&row.id, &row.canonical_slug]).collect();
        let is_callable =
            |row: &&Model| serves(&self.served, row) || row.alias_target.is_none() && self.sandbox.contains(&row.id);
        rows().filter(is_callable).count() + self.served.iter().filter(|model| !named.contains(model)).count()
    }
}

/// Returns true if an endpoint of these models serves the row.
fn serves(models: &HashSet<ModelId>, row: &Model) -> bool {
    let by_slug = || row.id.variant().is_none() && models.contains(&row.canonical_slug);
    // The target of an alias may be removed, so an alias is never served itself.
    row.alias_target.is_none() && (models.contains(&row.id) || by_slug())
}

/// The most rows that an audit entry names.
const MAX_NAMED_ROWS: usize = 50;

/// Returns the audit entry of an import: the counts of rows, and the rows that were removed or changed prices.
fn imported(by: &Authority, report: &ImportReport, stored: &[Model], change: &CatalogueChange) -> AuditDraft {
    let known: HashMap<&ModelId, &Model> = stored.iter().map(|row| (&row.id, row)).collect();
    let prices = |row: &Model| {
        let prices = ObjectWriter::new().text("prompt", row.pricing.prompt.to_string());
        prices.text("completion", row.pricing.completion.to_string()).end()
    };
    let repriced = change.upsert.iter().filter_map(|row| {
        let before = known.get(&row.id).map_or_else(|| "null".to_owned(), |before| prices(before));
        let after = prices(row);
        let id = ObjectWriter::new().text("id", row.id.as_str());
        (before != after).then(|| id.json("before", &before).json("after", &after).end())
    });
    let repriced: Vec<String> = repriced.take(MAX_NAMED_ROWS).collect();
    let details = ObjectWriter::new()
        .shown("imported", report.imported)
        .shown("updated", report.updated)
        .shown("removed", report.removed)
        .json("prices", &format!("[{}]", repriced.join(",")))
        .texts("gone", change.remove.iter().take(MAX_NAMED_ROWS).map(ModelId::as_str))
        .finish();
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
    let stays = |row: &Model| mode == ImportMode::Merge || serves(served, row);
    let (staying, going): (Vec<&Model>, Vec<&Model>) =
        stored.iter().filter(|row| !incoming.contains(&row.id)).partition(|row| stays(row));
    let remove: Vec<ModelId> = going.iter().map(|row| row.id.clone()).collect();
    keep_former_names(&mut rows, &known, &remove);

    let result: Vec<Model> = staying.into_iter().chain(&rows).cloned().collect();
    CatalogueSnapshot::check(&result)?;

    rows.retain(|row| known.get(&row.id) != Some(&row));
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
    use crate::error::ErrorKind;
    use crate::model::{MockModelRepository, Pricing};
    use crate::money::Price;
    use crate::version::IfMatch;

    fn row(id: &str, canonical: &str) -> Model {
        let pricing = Pricing::per_token(Price::ZERO, Price::ZERO);
        Model { canonical_slug: canonical.parse().unwrap(), ..Model::minimal(id.parse().unwrap(), pricing) }
    }

    #[test]
    fn merge_adds_and_updates_by_id() {
        let stored = [row("a/b", "a/b"), row("a/same", "a/same")];
        let renamed = Model { name: "else".to_owned(), ..row("a/b", "a/b") };
        let rows = vec![renamed.clone(), row("a/same", "a/same"), row("a/c", "a/c")];
        let (change, report) = plan(&stored, rows, ImportMode::Merge, &HashSet::new()).unwrap();
        assert_eq!(report, ImportReport { imported: 1, updated: 1, removed: 0 });
        assert_eq!(change, CatalogueChange { upsert: vec![renamed, row("a/c", "a/c")], remove: Vec::new() });
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
        let changed = Model { name: "else".to_owned(), ..row("a/new", "a/new") };
        let (change, _) = plan(&[stored], vec![changed], ImportMode::Merge, &HashSet::new()).unwrap();
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
                r#"{"imported":1,"updated":1,"removed":1,"prices":["#,
                r#"{"id":"a/dearer","before":{"prompt":"1","completion":"0"},"after":{"prompt":"2.50","completion":"0"}},"#,
                r#"{"id":"a/new","before":null,"after":{"prompt":"3","completion":"0"}}],"gone":["a/gone"]}"#,
            )
        );
        let many: Vec<Model> = (0..200).map(|number| priced(&format!("a/m{number}"), "1")).collect();
        let (change, report) = plan(&[], many, ImportMode::Merge, &HashSet::new()).unwrap();
        let draft = imported(&Authority::system(), &report, &[], &change);
        assert_eq!(draft.details.text().matches("\"id\"").count(), MAX_NAMED_ROWS, "an entry stays small");
    }

    /// Runs an import for the operator, who accepts any version, or the given one.
    async fn run(
        import: &ImportCatalogue,
        mode: ImportMode,
        version: Option<Version>,
        rows: Vec<Model>,
    ) -> Result<CatalogueImport, ImportCatalogueError> {
        let accepted = version.map_or(IfMatch::Any, |version| IfMatch::Versions(vec![version]));
        import.execute(&Change::conditional(&Authority::system(), Some(accepted)), rows, mode).await
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
        let done = run(&import, ImportMode::Merge, None, vec![row("a/b", "a/b")]).await.unwrap();
        assert_eq!((done.report.imported, done.version), (1, Version::from_counter(2)));
    }

    #[tokio::test]
    async fn import_of_what_is_there_changes_nothing() {
        let mut models = MockModelRepository::new();
        models.expect_version().returning(|| Ok(7));
        models.expect_list().returning(|| Ok(vec![row("a/b", "a/b")]));
        models.expect_apply().never();
        let import = ImportCatalogue::new(Arc::new(models));
        for mode in [ImportMode::Merge, ImportMode::Replace] {
            let done = run(&import, mode, None, vec![row("a/b", "a/b")]).await.unwrap();
            assert_eq!((done.report, done.version), (ImportReport::default(), Version::from_counter(7)));
        }
    }

    #[tokio::test]
    async fn import_that_others_overtake_each_time_is_a_conflict() {
        let mut models = MockModelRepository::new();
        models.expect_version().times(MAX_ATTEMPTS).returning(|| Ok(1));
        models.expect_list().times(MAX_ATTEMPTS).returning(|| Ok(Vec::new()));
        models.expect_apply().times(MAX_ATTEMPTS).returning(|_, _, _| Ok(false));
        let import = ImportCatalogue::new(Arc::new(models));
        let overtaken = run(&import, ImportMode::Merge, None, vec![row("a/b", "a/b")]).await.unwrap_err();
        assert_eq!(overtaken.kind(), ErrorKind::Conflict);
    }

    #[tokio::test]
    async fn preview_reports_result_and_stores_nothing() {
        let mut models = MockModelRepository::new();
        models.expect_version().returning(|| Ok(7));
        models.expect_list().returning(|| Ok(vec![row("a/kept", "a/kept"), row("a/gone", "a/gone")]));
        models.expect_apply().never();
        let served = ["a/kept", "a/configured"].map(|id| id.parse().unwrap());
        let import = ImportCatalogue::new(Arc::new(models)).serving(served, ["sandbox/x".parse().unwrap()]);
        let by = Authority::system();
        let change = Change::plain(&by);
        let rows = || vec![row("a/new", "a/new"), row("sandbox/x", "sandbox/x")];
        let replaced = import.preview(&change, rows(), ImportMode::Replace).await.unwrap();
        assert_eq!(replaced.report, ImportReport { imported: 2, updated: 0, removed: 1 });
        let seven = Version::from_counter(7);
        assert_eq!((replaced.version, replaced.removed), (seven, vec!["a/gone".parse().unwrap()]));
        assert_eq!(replaced.callable_models, 3, "a kept row, one of the sandbox, one of the configuration only");
        let merged = import.preview(&change, rows(), ImportMode::Merge).await.unwrap();
        assert_eq!((merged.removed.len(), merged.callable_models), (0, 3));
        assert!(import.preview(&change, Vec::new(), ImportMode::Merge).await.is_err());
        let other = Change::conditional(&by, Some(IfMatch::Versions(vec![Version::from_counter(8)])));
        let rejected = import.preview(&other, rows(), ImportMode::Merge).await.unwrap_err();
        assert_eq!(rejected.kind(), ErrorKind::PreconditionFailed);
    }

    #[tokio::test]
    async fn replacement_of_another_version_changes_nothing() {
        let mut models = MockModelRepository::new();
        let versions = std::sync::Mutex::new([7, 8, 8].into_iter());
        models.expect_version().returning(move || Ok(versions.lock().unwrap().next().unwrap()));
        models.expect_list().returning(|| Ok(vec![row("a/gone", "a/gone")]));
        // Another import takes effect between the check and the first application.
        models.expect_apply().times(2).returning(|_, version, _| Ok(version == 8));
        let import = ImportCatalogue::new(Arc::new(models));
        let rows = || vec![row("a/new", "a/new")];
        let by = Authority::system();
        let plain = import.execute(&Change::plain(&by), rows(), ImportMode::Replace).await.unwrap_err();
        assert_eq!(plain.kind(), ErrorKind::PreconditionRequired);
        let replace =
            async |counter| run(&import, ImportMode::Replace, Some(Version::from_counter(counter)), rows()).await;
        assert_eq!(replace(7).await.unwrap_err().kind(), ErrorKind::PreconditionFailed);
        assert_eq!(replace(8).await.unwrap().report.removed, 1);
    }

    #[tokio::test]
    async fn invalid_file_changes_nothing() {
        let mut models = MockModelRepository::new();
        models.expect_version().returning(|| Ok(0));
        models.expect_list().returning(|| Ok(Vec::new()));
        models.expect_apply().never();
        let import = ImportCatalogue::new(Arc::new(models));
        for rows in [Vec::new(), vec![row("a/b", "a/b"), row("a/b", "a/b")]] {
            let error = run(&import, ImportMode::Merge, None, rows).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        }
    }
}
