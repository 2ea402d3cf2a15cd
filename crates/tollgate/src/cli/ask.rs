//! `tollgate ask`

use std::path::PathBuf;

use clap::Args;

/// A Decisions request to the running server.
#[derive(Debug, Args)]
pub struct AskArgs {
    /// The model
    pub model: String,
    /// Question, as TEXT or NAME=TEXT; may be repeated. Yes or no, unless --options or --levels is given
    #[arg(long, value_name = "QUESTION", required_unless_present = "from")]
    pub question: Vec<String>,
    /// Options of the questions, comma-separated
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["levels", "from"])]
    pub options: Vec<String>,
    /// Levels of the questions from the lowest to the highest, comma-separated
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "from")]
    pub levels: Vec<String>,
    /// Text that the questions refer to
    #[arg(long, value_name = "TEXT", conflicts_with = "from", required_unless_present_any = ["state_file", "from"])]
    pub state: Option<String>,
    /// File with the text that the questions refer to; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["state", "from"])]
    pub state_file: Option<String>,
    /// Body of the request as JSON, without the model; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "question")]
    pub from: Option<String>,
    /// File with the API key [default: the environment variable `TOLLGATE_KEY`]
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}
