//! The filters and sort orders of model lists and counts.

use std::sync::Arc;

use super::{CallableModels, CatalogueSnapshot, InvalidModalityFilter, Modality, ModalityFilter, ModalitySet, Model};
use crate::error::ErrorKind;
use crate::money::Price;

named_enum! {
    /// A parameter that filters models.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum FilterParameter {
        /// Text in the id, the canonical slug or the name.
        Text = "q",
        /// Input modalities, at least one of which the model accepts.
        InputModalities = "input_modalities",
        /// Output modalities, at least one of which the model has.
        OutputModalities = "output_modalities",
        /// Authors, one of which the model has.
        ModelAuthors = "model_authors",
        /// Slugs of providers, at least one of which has an endpoint for the model.
        Providers = "providers",
        /// The smallest context window in tokens.
        Context = "context",
        /// The highest price of input tokens in USD per million.
        MaxPrice = "max_price",
        /// The highest price of output tokens in USD per million.
        MaxOutputPrice = "max_output_price",
    }
}

named_enum! {
    /// An input modality that models can be filtered by.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum InputModality {
        /// `text`
        Text = "text",
        /// `image`
        Image = "image",
        /// `file`
        File = "file",
        /// `audio`
        Audio = "audio",
        /// `video`
        Video = "video",
    }
}

/// The filter of a list without an output modality.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultModality {
    /// Models with text output, as for the count.
    Text,
    /// Models that answer Decisions requests.
    Decisions,
}

/// A filter of models. All of its conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelFilter {
    outputs: ModalityFilter,
    conditions: Conditions,
}

/// The conditions besides the output modalities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Conditions {
    /// In lower case.
    text: Option<String>,
    inputs: Option<Vec<InputModality>>,
    /// In lower case, without the tilde of aliases.
    authors: Option<Vec<String>>,
    /// In lower case.
    providers: Option<Vec<String>>,
    context: Option<u64>,
    max_price: Option<Price>,
    max_output_price: Option<Price>,
}

/// The highest number of characters of a searched text.
const MAX_TEXT: usize = 256;
/// The highest number of elements of a list.
const MAX_ELEMENTS: usize = 100;

impl ModelFilter {
    /// Creates a filter by output modality only.
    pub fn of(default: DefaultModality) -> Self {
        let modality = match default {
            DefaultModality::Text => Modality::Text,
            DefaultModality::Decisions => Modality::Decisions,
        };
        ModalityFilter::AnyOf(ModalitySet::default().with(modality)).into()
    }

    /// Sets the condition of a parameter to a value as the caller wrote it.
    ///
    /// # Errors
    /// The value is invalid. An empty value or an empty element of a list is.
    pub fn set(&mut self, parameter: FilterParameter, value: &str) -> Result<(), InvalidModelFilter> {
        let conditions = &mut self.conditions;
        match parameter {
            FilterParameter::OutputModalities => self.outputs = value.parse()?,
            FilterParameter::Text => conditions.text = Some(parse_text(value)?),
            FilterParameter::InputModalities => conditions.inputs = Some(parse_inputs(value)?),
            FilterParameter::ModelAuthors => {
                let authors = parse_list(parameter, value)?;
                conditions.authors = Some(authors.iter().map(|author| plain_author(author).to_owned()).collect());
            }
            FilterParameter::Providers => conditions.providers = Some(parse_list(parameter, value)?),
            FilterParameter::Context => {
                let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                let tokens = value.parse().ok().filter(|_| is_number);
                conditions.context = Some(tokens.ok_or(InvalidModelFilter::Context)?);
            }
            FilterParameter::MaxPrice => conditions.max_price = Some(parse_price(parameter, value)?),
            FilterParameter::MaxOutputPrice => conditions.max_output_price = Some(parse_price(parameter, value)?),
        }
        Ok(())
    }

    /// Returns the output modalities if they are the only condition.
    pub(super) fn only_outputs(&self) -> Option<ModalityFilter> {
        (self.conditions == Conditions::default()).then_some(self.outputs)
    }

    /// Returns the indices in [`CatalogueSnapshot::rows`] of the rows that match, in order. Lists and counts use it, so
    /// that they agree.
    pub(super) fn select<'a>(
        &'a self,
        snapshot: &'a CatalogueSnapshot,
        callable: &'a dyn CallableModels,
    ) -> impl Iterator<Item = usize> + 'a {
        let matches_all = self.only_outputs().is_some();
        let holds =
            move |&index: &usize| matches_all || self.conditions.hold_for(&snapshot.rows()[index], snapshot, callable);
        snapshot.select(self.outputs).filter(holds)
    }
}

impl From<ModalityFilter> for ModelFilter {
    fn from(outputs: ModalityFilter) -> Self {
        Self { outputs, conditions: Conditions::default() }
    }
}

impl Conditions {
    fn hold_for(&self, row: &Arc<Model>, snapshot: &CatalogueSnapshot, callable: &dyn CallableModels) -> bool {
        let accepts = |inputs: &Vec<InputModality>| {
            let mut names = row.architecture.input_modalities.iter();
            names.any(|name| inputs.iter().any(|input| input.as_str().eq_ignore_ascii_case(name)))
        };
        let is_cheap = |price: Price, max: Option<Price>| {
            max.is_none_or(|max| row.pricing.is_known && price.is_within_per_million(max))
        };
        // A model without a known size has none.
        self.context.is_none_or(|least| row.context_length.unwrap_or(0) >= least)
            && is_cheap(row.pricing.prompt, self.max_price)
            && is_cheap(row.pricing.completion, self.max_output_price)
            && self.authors.as_ref().is_none_or(|authors| authors.iter().any(|a| a == plain_author(row.id.author())))
            && self.inputs.as_ref().is_none_or(accepts)
            && self.text.as_ref().is_none_or(|text| contains(row, text))
            && self.providers.as_ref().is_none_or(|providers| {
                snapshot.concrete(row).is_some_and(|model| callable.is_served_by(&model, providers))
            })
    }
}

/// Returns true if the id, the canonical slug or the name contains this lower-case text.
fn contains(row: &Model, text: &str) -> bool {
    row.id.as_str().contains(text)
        || row.canonical_slug.as_str().contains(text)
        || row.name.to_lowercase().contains(text)
}

fn plain_author(author: &str) -> &str {
    author.strip_prefix('~').unwrap_or(author)
}

fn parse_text(value: &str) -> Result<String, InvalidModelFilter> {
    if value.trim().is_empty() || value.chars().count() > MAX_TEXT {
        return Err(InvalidModelFilter::Text);
    }
    Ok(value.trim().to_lowercase())
}

/// Parses a comma-separated list into lower-case elements. Spaces around an element are ignored.
fn parse_list(parameter: FilterParameter, value: &str) -> Result<Vec<String>, InvalidModelFilter> {
    let elements: Vec<String> =
        value.split(',').take(MAX_ELEMENTS + 1).map(|element| element.trim().to_ascii_lowercase()).collect();
    if elements.len() > MAX_ELEMENTS || elements.iter().any(String::is_empty) {
        return Err(InvalidModelFilter::List(parameter));
    }
    Ok(elements)
}

fn parse_inputs(value: &str) -> Result<Vec<InputModality>, InvalidModelFilter> {
    let elements = parse_list(FilterParameter::InputModalities, value)?;
    let known = |name: &String| {
        InputModality::from_name(name).ok_or_else(|| InvalidModelFilter::Input(name.chars().take(64).collect()))
    };
    elements.iter().map(known).collect()
}

fn parse_price(parameter: FilterParameter, value: &str) -> Result<Price, InvalidModelFilter> {
    let price = value.parse::<Price>().ok().filter(|price| !price.is_variable());
    price.ok_or(InvalidModelFilter::Price(parameter))
}

named_enum! {
    /// The order of a list of models. Models with equal figures are in the order of their ids.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ModelSort {
        /// The newest first.
        Newest = "newest",
        /// The largest context window first.
        ContextHighToLow = "context-high-to-low",
        /// The lowest price of input tokens first; of equal ones, the lowest price of output tokens.
        PricingLowToHigh = "pricing-low-to-high",
        /// The reverse of [`Self::PricingLowToHigh`], except that models without a fixed price are the last of both.
        PricingHighToLow = "pricing-high-to-low",
    }
}

impl ModelSort {
    /// Sorts indices of rows.
    pub(super) fn sort(self, snapshot: &CatalogueSnapshot, indices: &mut [usize]) {
        let rows = snapshot.rows();
        indices.sort_by(|&a, &b| {
            let (a, b) = (&rows[a], &rows[b]);
            let order = match self {
                Self::Newest => b.created.cmp(&a.created),
                Self::ContextHighToLow => b.context_length.unwrap_or(0).cmp(&a.context_length.unwrap_or(0)),
                Self::PricingLowToHigh | Self::PricingHighToLow => match (fixed_prices(a), fixed_prices(b)) {
                    (Some(a), Some(b)) if self == Self::PricingLowToHigh => a.cmp(&b),
                    (Some(a), Some(b)) => b.cmp(&a),
                    (a, b) => a.is_none().cmp(&b.is_none()),
                },
            };
            order.then_with(|| a.id.cmp(&b.id))
        });
    }
}

/// Returns the prices of input and output tokens; `None` if they are unknown or vary.
fn fixed_prices(row: &Model) -> Option<(Price, Price)> {
    let pricing = &row.pricing;
    (pricing.is_known && !pricing.is_variable()).then_some((pricing.prompt, pricing.completion))
}

impl std::str::FromStr for ModelSort {
    type Err = InvalidModelSort;

    fn from_str(text: &str) -> Result<Self, InvalidModelSort> {
        Self::from_name(text).ok_or_else(|| InvalidModelSort(text.chars().take(64).collect()))
    }
}

/// The text is not a sort order. Holds it, cut to 64 characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "sort {0:?} is not supported. Valid values are: newest, context-high-to-low, pricing-low-to-high, pricing-high-to-low"
)]
pub struct InvalidModelSort(pub String);

/// A value of a filter of models is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidModelFilter {
    /// The output modalities.
    #[error(transparent)]
    Outputs(#[from] InvalidModalityFilter),
    /// An input modality. Holds it, cut to 64 characters.
    #[error("Invalid input_modalities value: {0:?}. Valid values are: text, image, file, audio, video")]
    Input(String),
    /// The searched text is empty or too long.
    #[error("q must have 1 to {MAX_TEXT} characters")]
    Text,
    /// A list is too long, or has an empty element.
    #[error("{} must be a comma-separated list of 1 to {MAX_ELEMENTS} elements, none of them empty", .0.as_str())]
    List(FilterParameter),
    /// The context window is no number.
    #[error("context must be a whole number of tokens, at most {}", u64::MAX)]
    Context,
    /// The price is no number, negative, or has too many digits.
    #[error(
        "{} must be a decimal number of USD per million tokens, 0 or more, with at most 14 digits before and 24 after the point",
        .0.as_str()
    )]
    Price(FilterParameter),
}

impl InvalidModelFilter {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidRequest
    }
}

#[cfg(test)]
mod tests;
