//! All configuration keys.

use super::nearest::nearest;

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A string; an environment variable needs no quotes.
    Text,
    /// A whole number, zero or more.
    Number,
    /// `true` or `false`.
    Switch,
    /// An array of strings; in an environment variable also a comma-separated list.
    Texts,
}

/// A table of the file, or an array of tables.
#[derive(Debug)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
    /// True for an array of tables.
    pub repeated: bool,
    /// Its keys.
    pub keys: &'static [(&'static str, Kind)],
}

use Kind::{Number, Switch, Text, Texts};

/// The whole schema.
pub const SECTIONS: [Section; 18] = [
    Section {
        name: "server",
        repeated: false,
        keys: &[
            ("listen", Text),
            ("base_path", Text),
            ("wire_names", Text),
            ("workers", Number),
            ("trusted_proxies", Texts),
            ("request_header_timeout_ms", Number),
            ("keep_alive_ms", Number),
            ("write_timeout_ms", Number),
            ("linger_ms", Number),
            ("linger_bytes", Number),
            ("send_buffer_bytes", Number),
            ("max_connections_per_worker", Number),
            ("drain_ms", Number),
            ("shutdown_timeout_ms", Number),
            ("metrics_listen", Text),
            ("metrics_max_connections", Number),
        ],
    },
    Section {
        name: "storage",
        repeated: false,
        keys: &[
            ("url", Text),
            ("synchronous", Text),
            ("busy_timeout_ms", Number),
            ("read_connections", Number),
            ("max_database_bytes", Number),
            ("encryption_key_env", Text),
            ("encryption_key_file", Text),
        ],
    },
    Section {
        name: "journal",
        repeated: false,
        keys: &[
            ("path", Text),
            ("sync", Text),
            ("max_bytes", Number),
            ("retention_ms", Number),
            ("process_lost_after_ms", Number),
        ],
    },
    Section { name: "keys", repeated: false, keys: &[("max_stale_ms", Number)] },
    Section { name: "blobs", repeated: false, keys: &[("url", Text), ("quiet_period_ms", Number)] },
    Section {
        name: "limits",
        repeated: false,
        keys: &[
            ("max_json_bytes", Number),
            ("max_trace_bytes", Number),
            ("max_file_bytes", Number),
            ("workspace_quota_bytes", Number),
            ("workspace_max_documents", Number),
            ("min_charged_file_bytes", Number),
            ("workspace_record_bytes_per_day", Number),
            ("requests_per_minute", Number),
            ("tokens_per_minute", Number),
            ("workspace_requests_per_minute", Number),
            ("workspace_tokens_per_minute", Number),
            ("max_in_flight", Number),
            ("max_in_flight_per_key", Number),
            ("max_in_flight_per_workspace", Number),
            ("body_memory_bytes", Number),
            ("body_memory_bytes_per_workspace", Number),
            ("scan_threads", Number),
            ("scan_queue_per_workspace", Number),
            ("budget_wait_ms", Number),
            ("body_timeout_ms", Number),
            ("request_timeout_ms", Number),
        ],
    },
    Section { name: "sandbox", repeated: false, keys: &[("enabled", Switch), ("errors", Switch)] },
    Section { name: "log", repeated: false, keys: &[("format", Text), ("filter", Text), ("buffer_bytes", Number)] },
    Section {
        name: "providers",
        repeated: true,
        keys: &[
            ("slug", Text),
            ("name", Text),
            ("wire", Text),
            ("base_url", Text),
            ("path", Text),
            ("model_location", Text),
            ("response_wrapper", Text),
            ("api_key_env", Text),
            ("api_key_file", Text),
            ("auth_header", Text),
            ("auth_scheme", Text),
            ("headers", Texts),
            ("connect_timeout_ms", Number),
            ("attempt_timeout_ms", Number),
            ("max_response_bytes", Number),
            ("max_header_bytes", Number),
            ("ca_file", Text),
            ("http2_prior_knowledge", Switch),
            ("http2_ping_interval_ms", Number),
            ("http2_ping_timeout_ms", Number),
            ("confidence", Text),
            ("probability_decimals", Number),
            ("image_transport", Text),
            ("question_types", Texts),
            ("max_questions", Number),
            ("max_options", Number),
            ("max_levels", Number),
            ("max_body_bytes", Number),
            ("max_input_tokens", Number),
            ("zdr", Switch),
            ("data_collection", Text),
        ],
    },
    Section {
        name: "endpoints",
        repeated: true,
        keys: &[
            ("model", Text),
            ("provider", Text),
            ("upstream_model", Text),
            ("input_usd_per_million_tokens", Text),
            ("output_usd_per_million_tokens", Text),
            ("prompt_overhead_tokens", Number),
            ("confidence", Text),
            ("probability_decimals", Number),
            ("image_transport", Text),
            ("question_types", Texts),
            ("max_questions", Number),
            ("max_options", Number),
            ("max_levels", Number),
            ("max_body_bytes", Number),
            ("max_input_tokens", Number),
            ("zdr", Switch),
            ("data_collection", Text),
            ("quantization", Text),
            ("method", Text),
            ("temperature", Text),
            ("min_label_probability", Text),
            ("top_logprobs", Number),
        ],
    },
    Section {
        name: "models",
        repeated: true,
        keys: &[("model", Text), ("hedge", Switch), ("hedge_after_ms", Number), ("single_flight", Text)],
    },
    Section {
        name: "money",
        repeated: false,
        keys: &[
            ("unreported_usage", Text),
            ("max_tokens_per_byte", Text),
            ("unpriced_models", Text),
            ("default_usd_per_token", Text),
        ],
    },
    Section {
        name: "retention",
        repeated: false,
        keys: &[("usage_days", Number), ("audit_days", Number), ("dead_letter_days", Number)],
    },
    Section {
        name: "broadcast",
        repeated: false,
        keys: &[
            ("timeout_ms", Number),
            ("max_attempts", Number),
            ("retry_initial_delay_ms", Number),
            ("retry_max_delay_ms", Number),
        ],
    },
    Section { name: "egress", repeated: false, keys: &[("allow_private_addresses", Switch)] },
    Section {
        name: "telemetry",
        repeated: false,
        keys: &[("otlp_url", Text), ("otlp_headers", Texts), ("otlp_headers_env", Text), ("otlp_privacy_mode", Switch)],
    },
    Section { name: "routing", repeated: false, keys: &[("seed", Number), ("max_concurrent_subrequests", Number)] },
    Section {
        name: "throttling",
        repeated: false,
        keys: &[
            ("window_ms", Number),
            ("accept_multiplier", Text),
            ("min_requests", Number),
            ("timeout_weight", Number),
            ("max_backoff_ms", Number),
            ("auth_backoff_ms", Number),
            ("probe_interval_ms", Number),
            ("max_workspaces", Number),
            ("pause_tolerance_ms", Number),
        ],
    },
];

/// Returns the section of that name.
pub fn section(name: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.name == name)
}

/// Returns the most similar known `section.key`, from the same section if it is known.
pub fn nearest_key(section_name: &str, key: &str) -> String {
    let wanted = format!("{section_name}.{key}");
    let known: Vec<String> = SECTIONS
        .iter()
        .filter(|candidate| section(section_name).is_none_or(|own| own.name == candidate.name))
        .flat_map(|candidate| candidate.keys.iter().map(|(key, _)| format!("{}.{key}", candidate.name)))
        .collect();
    nearest(&wanted, known.iter().map(String::as_str)).unwrap_or_default().to_owned()
}

/// Returns the most similar known section.
pub fn nearest_section(name: &str) -> &'static str {
    nearest(name, SECTIONS.iter().map(|section| section.name)).unwrap_or_default()
}
