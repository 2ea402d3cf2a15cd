//! The endpoints, a file for one or for a few of a kind: route, description, handler, error mapping, view and tests.

pub(crate) mod assign_keys_to_guardrail;
pub(crate) mod audit;
pub(crate) mod container_files;
pub(crate) mod destinations;
pub(crate) mod docs;
pub(crate) mod evidence;
pub(crate) mod files;
pub(crate) mod get_generation;
pub(crate) mod get_own_key;
pub(crate) mod guardrails;
pub(crate) mod health;
pub(crate) mod import_catalogue;
pub(crate) mod keys;
pub(crate) mod list_model_endpoints;
pub(crate) mod list_models;
pub(crate) mod list_providers;
mod model_filters;
pub(crate) mod presets;
pub(crate) mod promote_container_file;
pub(crate) mod status;
pub(crate) mod submit_decision;
pub(crate) mod test_provider;
pub(crate) mod usage;
pub(crate) mod workspaces;

/// The names that most endpoints need.
mod prelude {
    pub(super) use std::sync::Arc;
    pub(super) use std::time::Duration;

    pub(super) use actix_web::HttpResponse;
    pub(super) use actix_web::http::StatusCode;
    pub(super) use actix_web::web::Payload;
    pub(super) use domain::api_key::Principal;
    pub(super) use domain::authority::{Authority, Right};
    pub(super) use domain::change::Change;
    pub(super) use domain::json::Json;
    pub(super) use serde::Serialize;
    pub(super) use serde_json::json;
    pub(super) use serde_json::value::RawValue;
    pub(super) use utoipa::ToSchema;

    pub(super) use crate::http::body::JsonBody;
    pub(super) use crate::http::call::Call;
    pub(super) use crate::http::change::RecordResponse;
    pub(super) use crate::http::error::{ApiError, api_error};
    pub(super) use crate::http::export::{self, ExportFormat};
    pub(super) use crate::http::members::located;
    pub(super) use crate::http::operation::{BodySchema, Operation, tags};
    pub(super) use crate::http::page::{DEFAULT_LIMIT, ElementSize, MAX_LIMIT, PageRange};
    pub(super) use crate::http::parameters;
    pub(super) use crate::http::response::{
        CursorPage, Data, DateTime, Decimal, Deleted, FilterAction, Object, Page, ResetInterval, TaggedBody, Uuid,
        opaque, raw, time, usd,
    };
    pub(super) use crate::http::route_parameters::{
        CURSOR, CURSOR_LIMIT, DEFAULT_WORKSPACE, FILES_WORKSPACE, FORMAT, FULL_LIMIT, IDEMPOTENCY_KEY, IF_MATCH,
        IF_NONE_MATCH, LIMIT, OFFSET, PRESET_WORKSPACE, Query, WORKSPACE, flag, number, text,
    };
    pub(super) use crate::http::routes::Method::{Delete, Get, Patch, Post, Put};
    pub(super) use crate::http::routes::{OpenHandler, Outcome, Route, handler};
}
