//! Conversion of JSON to a model.

use domain::json::{Json, JsonKind};
use domain::model::{AliasTarget, Architecture, Model, ModelId, Pricing, TopProvider};
use domain::money::Price;

use super::{ALWAYS, NO_TOKENIZER};

/// Reads a file: `{"data":[…]}` or a bare array.
///
/// # Errors
/// The first invalid row, with its index, id and member.
pub fn read_rows(text: &str) -> Result<Vec<Model>, RowError> {
    let file = Json::parse(text.trim_start_matches('\u{feff}')).map_err(|_| RowError::NotJson)?;
    let rows = match file.kind() {
        JsonKind::Array => file.elements(),
        _ => file.members().and_then(|members| {
            members.into_iter().find(|(name, _)| name == "data").and_then(|(_, rows)| rows.elements())
        }),
    };
    rows.ok_or(RowError::NoRows)?
        .iter()
        .enumerate()
        .map(|(index, row)| {
            model(row).map(without_fillers).map_err(|fault| {
                let id = row.members().and_then(|members| {
                    members.into_iter().find(|(name, _)| name == "id").and_then(|(_, id)| id.as_string())
                });
                fault.of_row(index, id.map(|id| id.chars().take(256).collect()))
            })
        })
        .collect()
}

/// Reads one row.
///
/// # Errors
/// The invalid member.
pub fn read_row(text: &str) -> Result<Model, RowError> {
    model(&Json::parse(text).map_err(|_| RowError::NotJson)?)
}

fn model(row: &Json) -> Result<Model, RowError> {
    let mut row = Members::of(row, "")?;
    let id: ModelId = id(row.take("id"), "id")?.ok_or_else(|| RowError::member("id", "is required"))?;
    let canonical_slug = id_or(row.take("canonical_slug"), "canonical_slug", &id)?;
    let architecture =
        architecture(&row.take("architecture").ok_or_else(|| RowError::member("architecture", "is required"))?)?;
    let pricing = pricing(&row.take("pricing").ok_or_else(|| RowError::member("pricing", "is required"))?)?;
    // Regenerated wherever a row is shown.
    for name in ["links", "object", "owned_by"] {
        row.take(name);
    }
    Ok(Model {
        canonical_slug,
        name: string(row.take("name"), "name")?.unwrap_or_else(|| id.as_str().to_owned()),
        description: string(row.take("description"), "description")?.unwrap_or_default(),
        created: integer(row.take("created"), "created")?.unwrap_or_default(),
        context_length: count(row.take("context_length"), "context_length")?,
        architecture,
        pricing,
        top_provider: row.take("top_provider").map(|json| top_provider(&json)).transpose()?.unwrap_or_default(),
        supported_parameters: strings(row.take("supported_parameters"), "supported_parameters")?,
        alias_target: row.take("alias_target").map(|json| alias_target(&json)).transpose()?,
        renamed_from: renamed_from(row.take("renamed_from"))?,
        further: row.rest(),
        id,
    })
}

/// Drops what every shown row has in place of nothing, so that a row that is sent back is the same row.
fn without_fillers(mut row: Model) -> Model {
    row.further.retain(|(name, json)| json.kind() != JsonKind::Null || !ALWAYS.contains(&name.as_str()));
    row.architecture.tokenizer = row.architecture.tokenizer.filter(|name| name != NO_TOKENIZER);
    row
}

fn architecture(json: &Json) -> Result<Architecture, RowError> {
    let mut members = Members::of(json, "architecture")?;
    let output_modalities = strings(members.take("output_modalities"), "architecture.output_modalities")?;
    if output_modalities.is_empty() {
        return Err(RowError::member("architecture.output_modalities", "must name at least one modality"));
    }
    Ok(Architecture {
        modality: string(members.take("modality"), "architecture.modality")?,
        input_modalities: strings(members.take("input_modalities"), "architecture.input_modalities")?,
        output_modalities,
        tokenizer: string(members.take("tokenizer"), "architecture.tokenizer")?,
        instruct_type: string(members.take("instruct_type"), "architecture.instruct_type")?,
    })
}

fn pricing(json: &Json) -> Result<Pricing, RowError> {
    let mut members = Members::of(json, "pricing")?;
    let mut named = |name: &str| price(members.take(name), name);
    // A forgotten price would make a model free under every limit.
    let required = |name: &str, price: Option<Price>| {
        price.ok_or_else(|| RowError::member(format!("pricing.{name}"), "is required; \"0\" makes the model free"))
    };
    let (prompt, completion) = (required("prompt", named("prompt")?)?, required("completion", named("completion")?)?);
    let (image, request) = (named("image")?.unwrap_or(Price::ZERO), named("request")?.unwrap_or(Price::ZERO));
    let overrides = members.take("overrides").map(|overrides| overrides.detached());
    if overrides.as_ref().is_some_and(|json| json.kind() != JsonKind::Array) {
        return Err(RowError::member("pricing.overrides", "must be an array"));
    }
    let further = members
        .rest()
        .into_iter()
        .filter_map(|(name, json)| price(Some(json), &name).map(|price| price.map(|price| (name, price))).transpose())
        .collect::<Result<_, _>>()?;
    Ok(Pricing { prompt, completion, image, request, further, overrides, is_known: true })
}

fn price(json: Option<Json>, name: &str) -> Result<Option<Price>, RowError> {
    let Some(json) = json.filter(|json| json.kind() != JsonKind::Null) else { return Ok(None) };
    let text = match json.kind() {
        JsonKind::String => json.as_string(),
        JsonKind::Number => Some(json.text().to_owned()),
        _ => None,
    };
    text.and_then(|text| text.parse().ok()).map(Some).ok_or_else(|| {
        RowError::member(
            format!("pricing.{name}"),
            "must be a decimal number with at most 14 digits before and 24 after the point",
        )
    })
}

fn top_provider(json: &Json) -> Result<TopProvider, RowError> {
    let mut members = Members::of(json, "top_provider")?;
    let is_moderated = match members.take("is_moderated") {
        None => false,
        Some(json) if json.kind() == JsonKind::Bool => json.text() == "true",
        Some(_) => return Err(RowError::member("top_provider.is_moderated", "must be a boolean")),
    };
    Ok(TopProvider {
        context_length: count(members.take("context_length"), "top_provider.context_length")?,
        is_moderated,
        max_completion_tokens: count(members.take("max_completion_tokens"), "top_provider.max_completion_tokens")?,
    })
}

fn alias_target(json: &Json) -> Result<AliasTarget, RowError> {
    let mut members = Members::of(json, "alias_target")?;
    let slug = id(members.take("slug"), "alias_target.slug")?
        .ok_or_else(|| RowError::member("alias_target.slug", "is required"))?;
    let name = string(members.take("name"), "alias_target.name")?.unwrap_or_else(|| slug.as_str().to_owned());
    Ok(AliasTarget { name, slug })
}

fn renamed_from(json: Option<Json>) -> Result<Vec<ModelId>, RowError> {
    strings(json, "renamed_from")?
        .iter()
        .map(|text| {
            text.parse()
                .map_err(|fault: domain::model::InvalidModelId| RowError::member("renamed_from", fault.to_string()))
        })
        .collect()
}

fn id(json: Option<Json>, path: &str) -> Result<Option<ModelId>, RowError> {
    string(json, path)?
        .map(|text| {
            text.parse().map_err(|_| {
                RowError::member(
                    path,
                    "must be author/slug with an optional :variant, made of letters, digits and - . _ ~",
                )
            })
        })
        .transpose()
}

fn id_or(json: Option<Json>, path: &str, fallback: &ModelId) -> Result<ModelId, RowError> {
    Ok(id(json, path)?.unwrap_or_else(|| fallback.clone()))
}

fn string(json: Option<Json>, path: &str) -> Result<Option<String>, RowError> {
    json.map(|json| json.as_string().ok_or_else(|| RowError::member(path, "must be a string"))).transpose()
}

fn strings(json: Option<Json>, path: &str) -> Result<Vec<String>, RowError> {
    let Some(json) = json else { return Ok(Vec::new()) };
    json.elements()
        .and_then(|elements| elements.iter().map(Json::as_string).collect())
        .ok_or_else(|| RowError::member(path, "must be an array of strings"))
}

fn integer(json: Option<Json>, path: &str) -> Result<Option<i64>, RowError> {
    json.map(|json| json.text().parse().map_err(|_| RowError::member(path, "must be an integer"))).transpose()
}

fn count(json: Option<Json>, path: &str) -> Result<Option<u64>, RowError> {
    json.map(|json| {
        // Limited to the integer range of a database column.
        json.text()
            .parse()
            .ok()
            .filter(|&count| i64::try_from(count).is_ok())
            .ok_or_else(|| RowError::member(path, "must be an integer that is not negative"))
    })
    .transpose()
}

/// The remaining members of an object.
struct Members(Vec<(String, Json)>);

impl Members {
    fn of(json: &Json, path: &str) -> Result<Self, RowError> {
        let members = json.members().ok_or_else(|| RowError::member(path, "must be an object"))?;
        let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        if let Some([name, ..]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let dot = if path.is_empty() { "" } else { "." };
            return Err(RowError::member(format!("{path}{dot}{name}"), "is in the object more than once"));
        }
        Ok(Self(members))
    }

    /// Removes and returns a member; null counts as absent.
    fn take(&mut self, name: &str) -> Option<Json> {
        let at = self.0.iter().position(|(member, _)| member == name)?;
        let (_, json) = self.0.remove(at);
        (json.kind() != JsonKind::Null).then_some(json)
    }

    /// Returns the remaining members as copies, so that the model does not keep the source text alive.
    fn rest(self) -> Vec<(String, Json)> {
        self.0.into_iter().map(|(name, json)| (name, json.detached())).collect()
    }
}

/// An unreadable row, or an unreadable file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// The text is not JSON.
    #[error("the rows are not valid JSON")]
    NotJson,
    /// Neither an array nor an object with an array `data`.
    #[error("the rows must be a JSON array of models or an object with such an array under \"data\"")]
    NoRows,
    /// A row is invalid.
    #[error(
        "row {index}{}: {}",
        id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default(),
        format!("{path} {message}").trim_start()
    )]
    Row {
        /// The index in the file, from 0.
        index: usize,
        /// The id, if it is readable.
        id: Option<String>,
        /// The JSON path of the invalid member, such as `pricing.prompt`.
        path: String,
        /// The error.
        message: String,
    },
}

impl RowError {
    fn member(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Row { index: 0, id: None, path: path.into(), message: message.into() }
    }

    fn of_row(self, at: usize, name: Option<String>) -> Self {
        match self {
            Self::Row { path, message, .. } => Self::Row { index: at, id: name, path, message },
            other => other,
        }
    }
}
