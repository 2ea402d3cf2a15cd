//! The commands: each parses its arguments, runs one use case and prints the result.

mod add_provider;
mod api;
mod ask;
mod audit;
mod backup;
mod catalogue;
mod container;
mod context;
mod demo;
mod destination;
mod doctor;
mod door;
mod endpoint;
mod eval;
mod generate;
mod guardrail;
mod key;
mod labels;
mod preset;
mod provider_preset;
mod records;
mod run;
mod serve;
mod server_client;
mod servers;
mod status;
mod store;
mod transfer;
mod usage;
mod workspace;

pub use context::Context;
pub use run::main;

/// The names that most commands need.
mod prelude {
    pub(super) use std::path::{Path, PathBuf};
    pub(super) use std::process::ExitCode;
    pub(super) use std::sync::Arc;
    pub(super) use std::time::Duration;

    pub(super) use anyhow::{Context as _, anyhow, bail, ensure};
    pub(super) use domain::json::Json;
    pub(super) use domain::money::Usd;
    pub(super) use http::Method;
    pub(super) use serde::Serialize;

    pub(super) use super::Context;
    pub(super) use super::api::{
        Api, edit, elements, merged, null, number, object, segment, text_at, with_query, word,
    };
    pub(super) use crate::config::Config;
    pub(super) use crate::output::{Column, List, Progress, counted, escape, indent, note, pointer, table, with_next};
    pub(super) use crate::wiring::{Schema, Stores};
}
