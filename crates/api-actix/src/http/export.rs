//! Exports: a whole list as a stream of lines, one at a time for a key.

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_DISPOSITION, X_CONTENT_TYPE_OPTIONS};
use bytes::Bytes;
use domain::error::StoreError;
use futures_util::stream;
use http_server::UntilWritten;
use serde::Serialize;

use super::call::Call;
use super::error::ApiError;
use super::export_places::ExportPlace;
use super::{download, parameters};

/// The media type of CSV.
pub(crate) const CSV: &str = "text/csv; charset=utf-8";
/// The media type of JSON lines.
pub(crate) const JSON_LINES: &str = "application/jsonl";
/// The names of the formats.
pub(crate) const FORMATS: [&str; 2] = ["csv", "jsonl"];
/// The memory that an export may take: the elements of one read, and their lines.
const MEMORY_BYTES: usize = 1 << 20;

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExportFormat {
    Csv,
    JsonLines,
}

impl ExportFormat {
    /// Reads the parameter `format`; `None` asks for a page. An export takes none of the parameters in `paging`.
    ///
    /// # Errors
    /// 400 for another format, and for a parameter of a page.
    pub(crate) fn read(query: &str, paging: &[&str]) -> Result<Option<Self>, ApiError> {
        let format = match parameters::value(query, "format")?.as_deref() {
            None => return Ok(None),
            Some("csv") => Self::Csv,
            Some("jsonl") => Self::JsonLines,
            Some(_) => return Err(ApiError::invalid("format must be csv or jsonl")),
        };
        for name in paging {
            if parameters::value(query, name)?.is_some() {
                return Err(ApiError::invalid(format!("{name}: an export is the whole list; leave it out")));
            }
        }
        Ok(Some(format))
    }
}

impl Call<'_> {
    /// Begins an export of the caller's key.
    ///
    /// # Errors
    /// 429 while another one of the key runs.
    pub(crate) fn begin_export(&self) -> Result<ExportPlace, ApiError> {
        self.gateway.exports.begin(self.owner()?)
    }
}

/// Creates the response with the lines that `next` returns until `None`, after `head`. They are read as the client takes
/// them. An error closes the connection without the end of the body, so that a truncated export is noticed.
///
/// # Errors
/// 429 or 503 if no memory is left for another export.
pub(crate) fn respond<S: 'static>(
    call: &Call<'_>,
    (format, name, place): (ExportFormat, &str, ExportPlace),
    head: String,
    mut state: S,
    next: impl AsyncFnMut(&mut S) -> Result<Option<String>, StoreError> + 'static,
) -> Result<HttpResponse, ApiError> {
    let mut memory = call.lease()?;
    memory.resize(MEMORY_BYTES)?;
    let request_id = call.request_id.clone();
    let mut next = next;
    let lines = async_lines(head, async move || {
        next(&mut state).await.inspect_err(|error| {
            let error: &(dyn std::error::Error + 'static) = error;
            tracing::warn!(request.id = %request_id, error, "export ended early");
        })
    });
    let (media_type, extension) = match format {
        ExportFormat::Csv => (CSV, "csv"),
        ExportFormat::JsonLines => (JSON_LINES, "jsonl"),
    };
    let mut response = HttpResponse::Ok()
        .content_type(media_type)
        .insert_header((CONTENT_DISPOSITION, download::disposition(&format!("{name}.{extension}"))))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .streaming(lines);
    response.extensions_mut().insert(UntilWritten::new((memory, place)));
    Ok(response)
}

/// Returns a value as a line of JSON.
pub(crate) fn json_line(value: &impl Serialize) -> String {
    // Views hold only strings, numbers and lists of them, so this never fails.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

/// Returns `head`, and then what `next` returns until `None`, without empty pieces.
fn async_lines(
    head: String,
    next: impl AsyncFnMut() -> Result<Option<String>, StoreError> + 'static,
) -> impl stream::Stream<Item = Result<Bytes, StoreError>> + 'static {
    stream::try_unfold((head, next), |(head, mut next)| async move {
        let mut piece = Some(head);
        while piece.as_ref().is_some_and(String::is_empty) {
            piece = next().await?;
        }
        Ok(piece.map(|piece| (Bytes::from(piece), (String::new(), next))))
    })
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt as _;

    use super::*;

    #[test]
    fn format_excludes_parameters_of_pages() {
        let read = |query| ExportFormat::read(query, &["cursor", "limit"]).map_err(|error| error.text().to_owned());
        assert_eq!((read(""), read("limit=1")), (Ok(None), Ok(None)));
        assert_eq!(read("format=csv"), Ok(Some(ExportFormat::Csv)));
        assert_eq!(read("a=1&format=jsonl"), Ok(Some(ExportFormat::JsonLines)));
        for query in ["format=", "format=CSV", "format=json"] {
            assert_eq!(read(query).unwrap_err(), "format must be csv or jsonl", "{query}");
        }
        assert!(read("format=csv&limit=1").unwrap_err().starts_with("limit: an export is the whole list"));
        assert!(read("format=csv&format=csv").unwrap_err().contains("more than once"));
    }

    #[actix_web::test]
    async fn lines_end_with_none_or_with_the_error() {
        let mut script = vec![Ok(None), Ok(Some("c".to_owned())), Ok(Some(String::new())), Ok(Some("b".to_owned()))];
        let lines = async_lines("a".to_owned(), async move || script.pop().unwrap());
        assert_eq!(lines.try_collect::<Vec<_>>().await.unwrap(), ["a", "b", "c"]);
        let mut lines = std::pin::pin!(async_lines(String::new(), async || Err(StoreError::unavailable("locked"))));
        assert!(lines.try_next().await.is_err());
    }
}
