//! Cases of [`Catalogue`].

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use async_trait::async_trait;

use crate::model::{Catalogue, CatalogueSnapshot, Model, Pricing};
use crate::money::Price;

suite! {
    /// Every case of the port's contract.
    catalogue_cases as catalogue_contract over Catalogues {
        snapshot_contains_rows_in_order,
        snapshot_resolves_its_rows,
        unchanged_catalogue_returns_the_same_snapshot,
        replaced_rows_are_in_the_next_snapshot,
        held_snapshot_does_not_change,
        concurrent_readers_see_whole_snapshots,
    }
}

/// An empty catalogue, and the owner of its rows.
pub struct Catalogues {
    /// The catalogue.
    pub catalogue: Arc<dyn Catalogue>,
    /// The owner of the rows.
    pub source: Arc<dyn CatalogueSource>,
    /// Values that must live as long as the catalogue.
    pub keep: Box<dyn Any + Send + Sync>,
}

/// The owner of the rows of a catalogue.
#[async_trait]
pub trait CatalogueSource: Send + Sync {
    /// Replaces all rows. The next snapshot contains them.
    async fn replace(&self, rows: Vec<Model>);
}

impl Catalogues {
    async fn replace(&self, ids: &[&str]) {
        let row = |id: &&str| Model::minimal(id.parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO));
        self.source.replace(ids.iter().map(row).collect()).await;
    }
}

fn ids(snapshot: &CatalogueSnapshot) -> Vec<&str> {
    snapshot.rows().iter().map(|row| row.id.as_str()).collect()
}

async fn snapshot_contains_rows_in_order(subject: &Catalogues) {
    assert_eq!(ids(&subject.catalogue.snapshot()), [""; 0]);
    subject.replace(&["b/two", "a/one", "c/three"]).await;
    assert_eq!(ids(&subject.catalogue.snapshot()), ["b/two", "a/one", "c/three"]);
}

async fn snapshot_resolves_its_rows(subject: &Catalogues) {
    subject.replace(&["a/one"]).await;
    let snapshot = subject.catalogue.snapshot();
    assert_eq!(snapshot.resolve("A/One").unwrap().model.id.as_str(), "a/one");
    assert!(snapshot.resolve("a/two").is_none());
}

/// A snapshot that is built for each reader costs milliseconds, and prepared responses are keyed by it.
async fn unchanged_catalogue_returns_the_same_snapshot(subject: &Catalogues) {
    subject.replace(&["a/one"]).await;
    let first = subject.catalogue.snapshot();
    assert!(Arc::ptr_eq(&first, &subject.catalogue.snapshot()));
}

async fn replaced_rows_are_in_the_next_snapshot(subject: &Catalogues) {
    subject.replace(&["a/one", "a/two"]).await;
    subject.replace(&["a/two", "a/three"]).await;
    let snapshot = subject.catalogue.snapshot();
    assert_eq!(ids(&snapshot), ["a/two", "a/three"]);
    assert!(snapshot.resolve("a/one").is_none(), "a removed row is not resolved");
}

async fn held_snapshot_does_not_change(subject: &Catalogues) {
    subject.replace(&["a/one"]).await;
    let held = subject.catalogue.snapshot();
    subject.replace(&["a/two"]).await;
    assert_eq!(ids(&held), ["a/one"]);
    assert!(held.resolve("a/one").is_some() && held.resolve("a/two").is_none());
    assert!(!Arc::ptr_eq(&held, &subject.catalogue.snapshot()));
}

async fn concurrent_readers_see_whole_snapshots(subject: &Catalogues) {
    let generations = [["a/one", "b/one"], ["a/two", "b/two"]];
    subject.replace(&generations[0]).await;
    let stop = Arc::new(AtomicBool::new(false));
    let reader = {
        let (catalogue, stop) = (Arc::clone(&subject.catalogue), Arc::clone(&stop));
        let read = move || {
            while !stop.load(Ordering::Relaxed) {
                let snapshot = catalogue.snapshot();
                let found = ids(&snapshot);
                assert!(generations.iter().any(|whole| found == whole), "{found:?} mixes two catalogues");
                assert!(found.iter().all(|id| snapshot.resolve(id).is_some()), "{found:?}");
            }
        };
        thread::Builder::new().spawn(read).unwrap()
    };
    for round in 1..200 {
        subject.replace(&generations[round % 2]).await;
    }
    stop.store(true, Ordering::Relaxed);
    reader.join().unwrap();
}
