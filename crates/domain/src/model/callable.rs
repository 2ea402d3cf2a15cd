//! Models that can be called: an endpoint serves them.

use std::sync::Arc;

use super::{Catalogue, CatalogueSnapshot, FindCallableModelError, Model, NEAREST, ResolvedModel};

/// Knows the models with an endpoint. [`crate::routing::EndpointDirectory`] implements it.
pub trait CallableModels: Send + Sync {
    /// Returns true if a Decisions request for this concrete row reaches an endpoint.
    fn is_callable(&self, model: &Model) -> bool;

    /// Returns true if one of the providers has an endpoint for this concrete row.
    fn is_served_by(&self, model: &Model, providers: &[String]) -> bool;
}

/// The models that a list or a look-up shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// Models with an endpoint.
    Callable,
    /// All models of the catalogue.
    All,
}

/// Finds a model by any name that a Decisions request may use.
pub struct FindCallableModel {
    catalogue: Arc<dyn Catalogue>,
    callable: Arc<dyn CallableModels>,
}

impl FindCallableModel {
    /// Wires the catalogue and the models with an endpoint.
    pub fn new(catalogue: Arc<dyn Catalogue>, callable: Arc<dyn CallableModels>) -> Self {
        Self { catalogue, callable }
    }

    /// Returns the model and its snapshot.
    ///
    /// # Errors
    /// No visible model has this name.
    pub fn execute(
        &self,
        name: &str,
        visibility: Visibility,
    ) -> Result<(Arc<CatalogueSnapshot>, ResolvedModel), FindCallableModelError> {
        let snapshot = self.catalogue.snapshot();
        let found = snapshot.resolve_any(name);
        match found {
            Some(found) if visibility == Visibility::All || self.callable.is_callable(&found.model) => {
                Ok((snapshot, found))
            }
            Some(_) => {
                Err(FindCallableModelError::NotCallable { nearest: snapshot.closest(name, NEAREST, self.keep()) })
            }
            None => Err(FindCallableModelError::Unknown { nearest: snapshot.nearest(name, NEAREST, self.keep()) }),
        }
    }

    fn keep(&self) -> impl Fn(&Model) -> bool {
        |model| self.callable.is_callable(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Pricing;
    use crate::money::Price;
    use crate::routing::{Endpoint, EndpointDirectory, Wire};
    use crate::testing::MemoryCatalogue;

    fn find() -> FindCallableModel {
        let row = |id: &str| Model::minimal(id.parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO));
        let rows = ["acme/judge", "acme/judge-old", "acme/writer"].map(row).to_vec();
        let endpoint = Endpoint::new("acme/judge".parse().unwrap(), "p".parse().unwrap(), Wire::SystemOne, "m");
        FindCallableModel::new(Arc::new(MemoryCatalogue::new(rows)), Arc::new(EndpointDirectory::new(vec![endpoint])))
    }

    #[test]
    fn execute_finds_callable_model_by_any_name() {
        for name in ["acme/judge", "Acme/Judge", "judge", "acme/judge:nitro"] {
            let (_, found) = find().execute(name, Visibility::Callable).unwrap();
            assert_eq!(found.model.id.as_str(), "acme/judge", "{name}");
        }
        assert_eq!(find().execute("acme/writer", Visibility::All).unwrap().1.model.id.as_str(), "acme/writer");
    }

    #[test]
    fn execute_names_nearest_callable_models() {
        let error = |name: &str, visibility| find().execute(name, visibility).unwrap_err();
        let near = vec!["acme/judge".to_owned()];
        let idle = error("acme/judge-old", Visibility::Callable);
        assert_eq!(idle, FindCallableModelError::NotCallable { nearest: near.clone() });
        let far = error("acme/writer", Visibility::Callable);
        assert_eq!(far, FindCallableModelError::NotCallable { nearest: near.clone() }, "the distance does not matter");
        assert_eq!(error("acme/jugde", Visibility::All), FindCallableModelError::Unknown { nearest: near });
        let unlike = error("zzzzzzzzzzzzzzzzzzzzzzzzz", Visibility::Callable);
        assert_eq!(unlike, FindCallableModelError::Unknown { nearest: Vec::new() });
    }
}
