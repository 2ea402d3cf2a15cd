//! The tables, as created by the migrations.

/// Defines the entity of a table in a module: the columns of its primary key, the other columns, and a relation.
macro_rules! entity {
    (
        $(#[doc = $doc:literal])*
        $module:ident $table:tt [$($key:ident: $kind:ty),+] { $($columns:tt)* }
        $($relation:ident $column:tt $related:ident)?
    ) => {
        $(#[doc = $doc])*
        pub(crate) mod $module {
            use sea_orm::entity::prelude::*;

            #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
            #[sea_orm(table_name = $table)]
            pub struct Model {
                $(#[sea_orm(primary_key, auto_increment = false)] pub $key: $kind,)+
                $($columns)*
            }

            #[derive(Copy, Clone, Debug, EnumIter)]
            pub enum Relation {
                $($relation)?
            }

            impl RelationTrait for Relation {
                fn def(&self) -> RelationDef {
                    match *self {
                        $(Self::$relation => {
                            let related = Entity::belongs_to(super::$related::Entity).from(Column::$column);
                            related.to(super::$related::Column::Id).into()
                        })?
                    }
                }
            }

            $(impl Related<super::$related::Entity> for Entity {
                fn to() -> RelationDef {
                    Relation::$relation.def()
                }
            })?

            impl ActiveModelBehavior for ActiveModel {}
        }
    };
}

entity! {
    /// API keys, including deleted ones.
    api_keys "api_keys" [id: Vec<u8>] {
        #[sea_orm(unique)]
        pub hash: Vec<u8>,
        pub label: String,
        pub name: String,
        pub scope: String,
        pub workspace_id: Option<String>,
        pub management_access: Option<String>,
        /// A JSON array of workspace ids; `None` is all workspaces.
        pub management_workspaces: Option<String>,
        pub disabled: bool,
        pub deleted: bool,
        pub expires_at: Option<i64>,
        pub limit_pico: Option<i64>,
        pub limit_reset: Option<String>,
        pub guardrail_id: Option<String>,
        pub created_at: i64,
        pub requests_per_minute: Option<i64>,
        pub tokens_per_minute: Option<i64>,
        pub guardrail_assigned_at: Option<i64>,
        pub guardrail_assigned_by: Option<String>,
        pub creator_user_id: Option<String>,
        pub external_user: Option<String>,
        pub updated_at: Option<i64>,
        /// The hash of the secret before the last rotation, while it is valid.
        pub previous_hash: Option<Vec<u8>>,
        pub previous_expires_at: Option<i64>,
        /// The hash of the managed columns after the last change.
        pub audit_hash: Option<Vec<u8>>,
    }
    Workspace WorkspaceId workspaces
}

entity! {
    /// The audit log: changes with their actors.
    audit_log "audit_log" [seq: i64] {
        pub at: i64,
        pub actor: String,
        pub source: Option<String>,
        pub action: String,
        pub subject: String,
        pub outcome: String,
        pub details: String,
        pub previous_hash: Vec<u8>,
        pub hash: Vec<u8>,
        /// The version of the hash format.
        pub version: i64,
        /// The digest of the managed rows after the change.
        pub state: Option<Vec<u8>>,
    }
}

entity! {
    /// The beginning and the end of the audit log, and the sums of the rows that it accounts for.
    audit_state "audit_state" [id: i32] {
        pub newest_seq: i64,
        pub newest_hash: Vec<u8>,
        pub removed_seq: i64,
        pub removed_hash: Vec<u8>,
        pub removed_count: i64,
        pub keys_sum: Vec<u8>,
        pub assignments_sum: Vec<u8>,
        pub guardrails_sum: Vec<u8>,
        pub workspaces_sum: Vec<u8>,
    }
}

entity! {
    /// The processes that draw allowances.
    budget_processes "budget_processes" [id: String] {
        /// The number of its last draw or return.
        pub number: i64,
        /// The number of its last folded journal entry.
        pub folded_sequence: i64,
        pub state: String,
        /// The reply to the last call if it was a draw.
        pub last_reply: Option<String>,
        pub registered_at: i64,
        /// The time of its last answer to recalls; initially `registered_at`.
        pub seen_at: i64,
        /// True if its journal is in the store.
        pub has_store_journal: bool,
    }
}

entity! {
    /// One row: the numbers of the newest changes.
    change_feed "change_feed" [id: i32] {
        /// The newest change.
        pub number: i64,
        /// The newest change of the catalogue.
        pub catalogue: i64,
        /// The newest change of limits.
        pub limits: i64,
        /// The time at which a process found that the store is older than itself.
        pub declared_older_at: Option<i64>,
    }
}

entity! {
    /// A row per change of the change feed.
    changes "changes" [number: i64] {
        pub mark: i64,
        pub area: String,
        pub subject: Option<String>,
        pub created_at: i64,
    }
}

entity! {
    /// Destinations of broadcast traces.
    destinations "destinations" [id: String] {
        pub workspace_id: String,
        pub kind: String,
        pub name: String,
        pub config: String,
        pub enabled: bool,
        pub created_at: i64,
        pub updated_at: Option<i64>,
    }
}

entity! {
    /// Durable files, including pending ones.
    documents "documents" [id: String] {
        pub workspace_id: String,
        pub state: String,
        pub filename: String,
        pub size_bytes: i64,
        pub sha256: Option<String>,
        pub media_type: Option<String>,
        pub created_at: i64,
        /// The bytes charged against the quota.
        pub charged_bytes: i64,
        /// The process that promotes a pending document.
        pub process: Option<String>,
    }
}

entity! {
    /// Every version of every guardrail.
    guardrail_versions "guardrail_versions" [guardrail_id: String, version: i64] {
        pub name: String,
        pub rules: String,
        pub limit_pico: Option<i64>,
        pub limit_reset: Option<String>,
        pub changed_at: i64,
        pub changed_by: String,
    }
}

entity! {
    /// Named sets of rules.
    guardrails "guardrails" [id: String] {
        pub workspace_id: String,
        pub name: String,
        pub created_at: i64,
        pub updated_at: Option<i64>,
        pub limit_pico: Option<i64>,
        pub limit_reset: Option<String>,
        pub version: i64,
        pub rules: String,
        /// The hash of the managed columns after the last change.
        pub audit_hash: Option<Vec<u8>>,
    }
}

entity! {
    /// Idempotency claims: the call that created each document.
    idempotency_claims "idempotency_claims" [api_key: Vec<u8>, operation: String, idempotency_key: String] {
        pub subject: String,
        pub document_id: String,
        pub created_at: i64,
    }
    Document DocumentId documents
}

entity! {
    /// Requests with an idempotency key, with their responses.
    idempotent_requests "idempotent_requests" [caller: String, route: String, request_key: String] {
        pub fingerprint: Vec<u8>,
        pub status: Option<i64>,
        pub body: Option<String>,
        pub version: Option<String>,
        /// The id of the record whose secret the response contained; the response is not stored.
        pub secret_of: Option<String>,
        pub created_at: i64,
    }
}

entity! {
    /// The entries of journals in the store.
    journal_entries "journal_entries" [process_id: String, sequence: i64] {
        pub kind: i32,
        #[sea_orm(column_type = "Blob")]
        pub payload: Vec<u8>,
    }
}

entity! {
    /// Rows of the catalogue.
    models "models" [id: String] {
        pub position: i64,
        pub content: String,
    }
}

entity! {
    /// Every version of every preset.
    preset_versions "preset_versions" [preset_id: String, version: i64] {
        /// JSON: the models and the questions.
        pub config: String,
        pub created_by: String,
        pub created_at: i64,
    }
}

entity! {
    /// Named sets of questions.
    presets "presets" [id: String] {
        pub workspace_id: String,
        /// Unique in the workspace.
        pub slug: String,
        pub name: String,
        pub status: String,
        pub status_updated_at: Option<i64>,
        pub designated_version: i64,
        pub newest_version: i64,
        pub created_by: String,
        pub created_at: i64,
        pub updated_at: i64,
    }
}

entity! {
    /// The paused providers.
    provider_pauses "provider_pauses" [provider: String] {
        pub paused_at: i64,
    }
}

entity! {
    /// Pending and failed deliveries.
    outbox "outbox" [id: String] {
        pub destination_id: String,
        pub payload: String,
        pub state: String,
        pub attempts: i64,
        pub next_at: i64,
        pub last_error: Option<String>,
        pub created_at: i64,
    }
}

entity! {
    /// The times until which destinations receive no messages.
    destination_pauses "destination_pauses" [destination_id: String] {
        pub until: i64,
    }
}

entity! {
    /// The bytes of usage records that each workspace wrote on the day of its last one.
    record_bytes "record_bytes" [workspace_id: String] {
        /// The start of the day in Unix milliseconds.
        pub day: i64,
        pub bytes: i64,
    }
}

entity! {
    /// The number of rejected requests per key, status, reason and hour.
    rejections "rejections" [api_key: Vec<u8>, hour: i64, status: i32, reason: String] {
        pub workspace_id: Option<Vec<u8>>,
        pub requests: i64,
    }
}

entity! {
    /// Spent and allotted amounts by account and period.
    spend_counters "spend_counters" [scope: String, subject: String, interval: String, period_start: i64] {
        pub spent_pico: i64,
        /// The sum of its allowances.
        pub allotted_pico: i64,
        /// The time at which a process last lacked allowance that others hold.
        pub recalled_at: Option<i64>,
        /// The start of the recall that `recalled_at` renewed.
        pub recall_began_at: Option<i64>,
    }
}

entity! {
    /// At most one row: an unfinished copy of another store into this one.
    store_copies "store_copies" [id: i32] {
        /// The identity of the source.
        pub source_id: String,
        /// A digest of the source's state at the start of the copy.
        pub fingerprint: String,
        /// JSON: the current table and the key of its last copied row.
        pub position: String,
        pub started_at: i64,
    }
}

entity! {
    /// One row: the identity of the store.
    store_identity "store_identity" [id: i32] {
        pub store_id: String,
        pub configured_endpoints: Option<i64>,
    }
}

entity! {
    /// The ledger. Ids are bytes; null represents the usual value.
    usage_records "usage_records" [id: Vec<u8>] {
        pub workspace_id: Vec<u8>,
        pub api_key: Vec<u8>,
        pub request_id: Vec<u8>,
        /// Null if equal to `model`.
        pub requested_model: Option<String>,
        pub model: String,
        pub provider: String,
        pub outcome: String,
        pub input_tokens: i64,
        pub output_tokens: i64,
        /// Null if `reported`.
        pub usage_source: Option<String>,
        pub cost_pico: i64,
        pub prompt_price: String,
        pub completion_price: String,
        pub attempts: String,
        pub session_id: Option<String>,
        pub trace: Option<String>,
        pub user: Option<String>,
        pub created_at: i64,
        pub latency_us: i64,
        /// Null if the record bears the whole cost.
        pub share_index: Option<i64>,
        pub share_of: Option<i64>,
        /// 16 bytes each.
        pub guardrails: Option<Vec<u8>>,
        pub charged_at: i64,
        pub findings: Option<String>,
        /// 4 or 16 bytes; null if unknown or not recorded.
        pub client_address: Option<Vec<u8>>,
        /// Null if the request named no preset.
        pub preset_id: Option<Vec<u8>>,
        pub preset_version: Option<i64>,
        /// JSON; null without stages.
        pub outcomes: Option<String>,
    }
}

entity! {
    /// The tenants.
    workspaces "workspaces" [id: String] {
        pub name: String,
        /// Unique among the workspaces that are not deleted.
        pub slug: String,
        pub description: Option<String>,
        pub owner_id: Option<String>,
        pub is_default: bool,
        pub suspended: bool,
        pub credit_pico: Option<i64>,
        pub storage_used_bytes: i64,
        pub created_at: i64,
        /// The total spend at the start of the credit.
        pub credit_base_pico: Option<i64>,
        pub budget_daily_pico: Option<i64>,
        pub budget_weekly_pico: Option<i64>,
        pub budget_monthly_pico: Option<i64>,
        pub budget_lifetime_pico: Option<i64>,
        pub requests_per_minute: Option<i64>,
        pub tokens_per_minute: Option<i64>,
        pub default_guardrail_id: Option<String>,
        /// The number of documents, including pending ones.
        pub document_count: i64,
        pub updated_at: Option<i64>,
        /// The time at which the workspace got credit after having none.
        pub credit_began_at: Option<i64>,
        /// Charges before that time that were folded after it. They are added to the base of the credit.
        pub credit_late_pico: i64,
        /// The time of the deletion. The row stays for usage records, counters and deleted keys.
        pub deleted_at: Option<i64>,
        /// The hash of the managed columns after the last change.
        pub audit_hash: Option<Vec<u8>>,
    }
}
