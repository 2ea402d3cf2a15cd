//! Exports: a whole list as a stream of lines, one at a time for a key.

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_DISPOSITION, X_CONTENT_TYPE_OPTIONS};
use bytes::Bytes;
use domain::error::StoreError;
use domain::text::{escape, quote_formula};
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

/// A value of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CsvValue {
    /// A number or a constant, written unescaped.
    Plain(String),
    /// Text from clients; control characters are escaped.
    Text(String),
    /// A missing value.
    Empty,
}

impl CsvValue {
    /// Creates a value from an optional text.
    pub(crate) fn of(text: Option<&str>) -> Self {
        text.map_or(Self::Empty, |text| Self::Text(text.to_owned()))
    }

    /// Creates a value that needs no escape.
    pub(crate) fn plain(text: &str) -> Self {
        Self::Plain(text.to_owned())
    }

    /// Creates a value that needs no escape, if there is one.
    pub(crate) fn optional(value: Option<impl ToString>) -> Self {
        value.map_or(Self::Empty, |value| Self::Plain(value.to_string()))
    }

    fn escaped(&self) -> String {
        match self {
            Self::Text(text) => quoted(&escape(&quote_formula(text))),
            Self::Plain(text) => quoted(text),
            Self::Empty => String::new(),
        }
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Returns a record with its line end.
pub(crate) fn csv_line(cells: &[CsvValue]) -> String {
    cells.iter().map(CsvValue::escaped).collect::<Vec<_>>().join(",") + "\r\n"
}

/// A column of a record: its name and its value.
pub(crate) type Column<T> = (&'static str, fn(&T) -> CsvValue);

/// Returns the line of column names.
pub(crate) fn csv_head<T>(columns: &[Column<T>]) -> String {
    csv_line(&columns.iter().map(|(name, _)| CsvValue::plain(name)).collect::<Vec<_>>())
}

/// Returns the line of a record.
pub(crate) fn csv_record<T>(columns: &[Column<T>], record: &T) -> String {
    csv_line(&columns.iter().map(|(_, value)| value(record)).collect::<Vec<_>>())
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

    #[test]
    fn csv_line_quotes_special_characters() {
        let text = |text: &str| CsvValue::Text(text.to_owned());
        let line = csv_line(&[
            text("a"),
            text("b,c"),
            text("d\"e"),
            text("f\r\ng"),
            text("\u{1b}[2J\u{9b}\u{202e}"),
            text(""),
            CsvValue::Empty,
            text("é "),
        ]);
        assert_eq!(line, "a,\"b,c\",\"d\"\"e\",f\\u000d\\u000ag,\\u001b[2J\\u009b\\u202e,,,é \r\n");
    }

    #[test]
    fn csv_line_neutralises_formulas() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "=HYPERLINK(\"http://x\",\"y\")", " =1", "\u{a0}\u{ff1d}1"]
        {
            let line = csv_line(&[CsvValue::Text(text.to_owned())]);
            assert!(line.trim_start_matches('"').starts_with('\''), "{line:?}");
        }
        assert_eq!(csv_line(&[CsvValue::Text("\r=1".to_owned())]), "'\\u000d=1\r\n");
        assert_eq!(csv_line(&[CsvValue::Plain("-0.5".to_owned())]), "-0.5\r\n", "a number stays one");
    }
}
