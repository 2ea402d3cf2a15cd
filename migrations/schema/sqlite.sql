CREATE TABLE "adjustments" (
  "process_id" text NOT NULL,
  "scope" text NOT NULL,
  "subject" text NOT NULL,
  "interval" text NOT NULL,
  "period_start" integer NOT NULL,
  "amount_pico" integer NOT NULL,
  PRIMARY KEY ("process_id", "scope", "subject", "interval", "period_start") );
CREATE INDEX "adjustments_counter" ON "adjustments" ("scope", "subject", "interval", "period_start");
CREATE TABLE "allowances" (
  "process_id" text NOT NULL,
  "scope" text NOT NULL,
  "subject" text NOT NULL,
  "interval" text NOT NULL,
  "period_start" integer NOT NULL,
  "amount_pico" integer NOT NULL,
  PRIMARY KEY ("process_id", "scope", "subject", "interval", "period_start") );
CREATE INDEX "allowances_counter" ON "allowances" ("scope", "subject", "interval", "period_start");
CREATE TABLE "api_keys" (
  "id" blob NOT NULL PRIMARY KEY CHECK (length(id) = 16),
  "hash" blob NOT NULL UNIQUE,
  "label" text NOT NULL,
  "name" text NOT NULL,
  "scope" text NOT NULL,
  "workspace_id" text,
  "management_access" text,
  "management_workspaces" text,
  "disabled" boolean NOT NULL,
  "deleted" boolean NOT NULL,
  "expires_at" integer,
  "limit_pico" integer,
  "limit_reset" text,
  "guardrail_id" text,
  "created_at" integer NOT NULL,
  "requests_per_minute" integer,
  "tokens_per_minute" integer,
  "guardrail_assigned_at" integer,
  "guardrail_assigned_by" text,
  "creator_user_id" text,
  "external_user" text,
  "updated_at" integer,
  "previous_hash" blob,
  "previous_expires_at" integer,
  "audit_hash" blob,
  FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id"),
  FOREIGN KEY ("guardrail_id") REFERENCES "guardrails" ("id"),
  CHECK (("scope" = 'management' AND "workspace_id" IS NULL AND "management_access" IN ('read', 'keys', 'write') AND "management_access" IS NOT NULL) OR ("scope" = 'inference' AND "workspace_id" IS NOT NULL AND "management_access" IS NULL AND "management_workspaces" IS NULL)) );
CREATE INDEX "api_keys_guardrail_id" ON "api_keys" ("guardrail_id", "guardrail_assigned_at", "id", "workspace_id", "deleted");
CREATE INDEX "api_keys_list" ON "api_keys" ("created_at", "id", "workspace_id", "deleted", "disabled", "expires_at");
CREATE INDEX "api_keys_name" ON "api_keys" ("name");
CREATE INDEX "api_keys_previous_hash" ON "api_keys" ("previous_hash") WHERE "previous_hash" IS NOT NULL;
CREATE INDEX "api_keys_workspace_id" ON "api_keys" ("workspace_id", "created_at", "id", "deleted", "disabled", "expires_at");
CREATE TABLE "audit_log" (
  "seq" integer NOT NULL PRIMARY KEY,
  "at" integer NOT NULL,
  "actor" text NOT NULL,
  "source" text,
  "action" text NOT NULL,
  "subject" text NOT NULL,
  "outcome" text NOT NULL,
  "details" text NOT NULL,
  "previous_hash" blob NOT NULL,
  "hash" blob NOT NULL,
  "version" integer NOT NULL DEFAULT 1,
  "state" blob );
CREATE INDEX "audit_log_at" ON "audit_log" ("at");
CREATE TABLE "audit_state" (
  "id" integer NOT NULL PRIMARY KEY,
  "newest_seq" integer NOT NULL,
  "removed_seq" integer NOT NULL,
  "removed_count" integer NOT NULL,
  "newest_hash" blob NOT NULL,
  "removed_hash" blob NOT NULL,
  "keys_sum" blob NOT NULL,
  "assignments_sum" blob NOT NULL,
  "guardrails_sum" blob NOT NULL,
  "workspaces_sum" blob NOT NULL );
CREATE TABLE "budget_alerts" (
  "scope" text NOT NULL,
  "subject" text NOT NULL,
  "interval" text NOT NULL,
  "period_start" integer NOT NULL,
  "is_credit" integer NOT NULL,
  "base_pico" integer NOT NULL,
  "limit_pico" integer NOT NULL,
  "threshold" integer NOT NULL,
  "workspace_id" text NOT NULL,
  "spent_pico" integer NOT NULL,
  "created_at" integer NOT NULL,
  "published_at" integer,
  PRIMARY KEY ("scope", "subject", "interval", "period_start", "is_credit", "base_pico", "limit_pico", "threshold") );
CREATE INDEX "budget_alerts_by_publication" ON "budget_alerts" ("published_at", "created_at");
CREATE TABLE "budget_processes" (
  "id" text NOT NULL PRIMARY KEY,
  "number" integer NOT NULL,
  "folded_sequence" integer NOT NULL,
  "state" text NOT NULL,
  "last_reply" text,
  "registered_at" integer NOT NULL,
  "seen_at" integer NOT NULL DEFAULT 0,
  "has_store_journal" boolean NOT NULL DEFAULT FALSE );
CREATE INDEX "budget_processes_adopted" ON "budget_processes" ("id") WHERE "state" = 'adopted';
CREATE INDEX "budget_processes_live" ON "budget_processes" ("state") WHERE "state" = 'live';
CREATE TABLE "change_feed" (
  "id" integer NOT NULL PRIMARY KEY,
  "catalogue" integer NOT NULL,
  "number" integer NOT NULL DEFAULT 0,
  "limits" integer NOT NULL DEFAULT 0,
  "declared_older_at" integer );
CREATE TABLE "changes" (
  "number" integer NOT NULL PRIMARY KEY,
  "mark" integer NOT NULL DEFAULT ((random())),
  "area" text NOT NULL,
  "subject" text,
  "created_at" integer NOT NULL );
CREATE TABLE "destination_pauses" (
  "destination_id" text NOT NULL PRIMARY KEY,
  "until" integer NOT NULL );
CREATE TABLE "destinations" (
  "id" text NOT NULL PRIMARY KEY,
  "workspace_id" text NOT NULL,
  "kind" text NOT NULL,
  "name" text NOT NULL,
  "config" text NOT NULL,
  "enabled" boolean NOT NULL,
  "created_at" integer NOT NULL,
  "updated_at" integer );
CREATE INDEX "destinations_workspace_id" ON "destinations" ("workspace_id", "created_at");
CREATE TABLE "documents" (
  "id" text NOT NULL PRIMARY KEY,
  "workspace_id" text NOT NULL,
  "state" text NOT NULL,
  "filename" text NOT NULL,
  "size_bytes" integer NOT NULL CHECK ("size_bytes" >= 0),
  "sha256" text,
  "media_type" text,
  "created_at" integer NOT NULL,
  "charged_bytes" integer NOT NULL DEFAULT 0 CHECK ("charged_bytes" >= 0),
  "process" text,
  FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id"),
  CHECK ("state" = 'pending' OR ("state" = 'ready' AND "sha256" IS NOT NULL AND "media_type" IS NOT NULL)) );
CREATE INDEX "documents_state" ON "documents" ("state", "created_at");
CREATE INDEX "documents_workspace_id" ON "documents" ("workspace_id", "state", "id");
CREATE TABLE "evidence" (
  "record_id" blob NOT NULL,
  "position" integer NOT NULL,
  "preset_id" blob NOT NULL,
  "group_id" blob NOT NULL,
  "decision" text NOT NULL,
  "probabilities" text,
  "created_at" integer NOT NULL,
  "label_version" integer,
  PRIMARY KEY ("record_id", "position") ) WITHOUT ROWID;
CREATE INDEX "evidence_labelled" ON "evidence" ("preset_id", "created_at") WHERE "label_version" IS NOT NULL;
CREATE INDEX "evidence_preset_id" ON "evidence" ("preset_id", "created_at");
CREATE TABLE "evidence_groups" (
  "id" blob NOT NULL PRIMARY KEY,
  "workspace_id" blob NOT NULL,
  "preset_id" blob NOT NULL,
  "preset_version" integer NOT NULL,
  "question" text NOT NULL,
  "model" text NOT NULL,
  "provider" text NOT NULL,
  "wire" text NOT NULL,
  "method" text NOT NULL );
CREATE TABLE "evidence_labels" (
  "record_id" blob NOT NULL,
  "position" integer NOT NULL,
  "version" integer NOT NULL,
  "value" text NOT NULL,
  "source" text NOT NULL,
  "created_by" text NOT NULL,
  "created_at" integer NOT NULL,
  PRIMARY KEY ("record_id", "position", "version") );
CREATE TABLE "guardrail_versions" (
  "guardrail_id" text NOT NULL,
  "version" integer NOT NULL,
  "name" text NOT NULL,
  "rules" text NOT NULL,
  "limit_pico" integer,
  "limit_reset" text,
  "changed_at" integer NOT NULL,
  "changed_by" text NOT NULL,
  PRIMARY KEY ("guardrail_id", "version") );
CREATE TABLE "guardrails" (
  "id" text NOT NULL PRIMARY KEY,
  "workspace_id" text NOT NULL,
  "name" text NOT NULL,
  "created_at" integer NOT NULL,
  "updated_at" integer,
  "limit_pico" integer,
  "limit_reset" text,
  "version" integer NOT NULL DEFAULT 1,
  "rules" text NOT NULL DEFAULT '{}',
  "audit_hash" blob,
  FOREIGN KEY ("workspace_id") REFERENCES "workspaces" ("id") );
CREATE INDEX "guardrails_workspace_id" ON "guardrails" ("workspace_id", "created_at");
CREATE TABLE "idempotency_claims" (
  "api_key" blob NOT NULL,
  "operation" text NOT NULL,
  "idempotency_key" text NOT NULL,
  "subject" text NOT NULL,
  "document_id" text NOT NULL,
  "created_at" integer NOT NULL,
  PRIMARY KEY ("api_key", "operation", "idempotency_key"),
  FOREIGN KEY ("document_id") REFERENCES "documents" ("id") ON DELETE CASCADE );
CREATE INDEX "idempotency_claims_created_at" ON "idempotency_claims" ("created_at");
CREATE INDEX "idempotency_claims_document_id" ON "idempotency_claims" ("document_id");
CREATE TABLE "idempotent_requests" (
  "caller" text NOT NULL,
  "route" text NOT NULL,
  "request_key" text NOT NULL,
  "fingerprint" blob NOT NULL,
  "status" integer,
  "body" text,
  "version" text,
  "secret_of" text,
  "created_at" integer NOT NULL,
  PRIMARY KEY ("caller", "route", "request_key") );
CREATE INDEX "idempotent_requests_created_at" ON "idempotent_requests" ("created_at");
CREATE TABLE "incompatible_migrations" (
  "name" text NOT NULL PRIMARY KEY,
  "reason" text NOT NULL );
CREATE TABLE "journal_entries" (
  "process_id" text NOT NULL,
  "sequence" integer NOT NULL,
  "kind" integer NOT NULL,
  "payload" blob NOT NULL,
  PRIMARY KEY ("process_id", "sequence") );
CREATE TABLE "models" (
  "id" text NOT NULL PRIMARY KEY,
  "position" integer NOT NULL,
  "content" text NOT NULL );
CREATE INDEX "models_position" ON "models" ("position");
CREATE TABLE "outbox" (
  "id" text NOT NULL PRIMARY KEY,
  "destination_id" text NOT NULL,
  "payload" text NOT NULL,
  "state" text NOT NULL,
  "attempts" integer NOT NULL,
  "next_at" integer NOT NULL,
  "last_error" text,
  "created_at" integer NOT NULL );
CREATE INDEX "outbox_destination_id" ON "outbox" ("destination_id", "state", "next_at");
CREATE INDEX "outbox_due" ON "outbox" ("state", "next_at");
CREATE TABLE "preset_versions" (
  "preset_id" text NOT NULL,
  "version" integer NOT NULL,
  "config" text NOT NULL,
  "created_by" text NOT NULL,
  "created_at" integer NOT NULL,
  PRIMARY KEY ("preset_id", "version") );
CREATE TABLE "presets" (
  "id" text NOT NULL PRIMARY KEY,
  "workspace_id" text NOT NULL,
  "slug" text NOT NULL,
  "name" text NOT NULL,
  "status" text NOT NULL,
  "status_updated_at" integer,
  "designated_version" integer NOT NULL,
  "newest_version" integer NOT NULL,
  "created_by" text NOT NULL,
  "created_at" integer NOT NULL,
  "updated_at" integer NOT NULL );
CREATE INDEX "presets_updated_at" ON "presets" ("updated_at");
CREATE UNIQUE INDEX "presets_workspace_id" ON "presets" ("workspace_id", "slug");
CREATE TABLE "provider_pauses" (
  "provider" text NOT NULL PRIMARY KEY,
  "paused_at" integer NOT NULL );
CREATE TABLE "record_bytes" (
  "workspace_id" text NOT NULL PRIMARY KEY,
  "day" integer NOT NULL,
  "bytes" integer NOT NULL );
CREATE TABLE "rejections" (
  "api_key" blob NOT NULL,
  "hour" integer NOT NULL,
  "status" integer NOT NULL,
  "reason" text NOT NULL,
  "workspace_id" blob,
  "requests" integer NOT NULL,
  PRIMARY KEY ("api_key", "hour", "status", "reason") );
CREATE INDEX "rejections_by_hour" ON "rejections" ("hour");
CREATE TABLE "seaql_migrations" (
  "version" varchar NOT NULL PRIMARY KEY,
  "applied_at" integer NOT NULL );
CREATE TABLE "spend_counters" (
  "scope" text NOT NULL,
  "subject" text NOT NULL,
  "interval" text NOT NULL,
  "period_start" integer NOT NULL,
  "spent_pico" integer NOT NULL,
  "allotted_pico" integer NOT NULL DEFAULT 0,
  "recalled_at" integer,
  "recall_began_at" integer,
  PRIMARY KEY ("scope", "subject", "interval", "period_start") );
CREATE INDEX "spend_counters_period" ON "spend_counters" ("period_start");
CREATE INDEX "spend_counters_recalled_at" ON "spend_counters" ("recalled_at") WHERE "recalled_at" IS NOT NULL;
CREATE TABLE "store_copies" (
  "id" integer NOT NULL PRIMARY KEY,
  "source_id" text NOT NULL,
  "fingerprint" text NOT NULL,
  "position" text NOT NULL,
  "started_at" integer NOT NULL );
CREATE TABLE "store_identity" (
  "id" integer NOT NULL PRIMARY KEY,
  "store_id" text NOT NULL,
  "configured_endpoints" integer );
CREATE TABLE "usage_records" (
  "id" blob NOT NULL,
  "workspace_id" blob NOT NULL,
  "api_key" blob NOT NULL,
  "request_id" blob NOT NULL,
  "requested_model" text,
  "model" text NOT NULL,
  "provider" text NOT NULL,
  "outcome" text NOT NULL,
  "input_tokens" integer NOT NULL,
  "output_tokens" integer NOT NULL,
  "usage_source" text,
  "cost_pico" integer NOT NULL,
  "prompt_price" text NOT NULL,
  "completion_price" text NOT NULL,
  "attempts" text NOT NULL,
  "session_id" text,
  "trace" text,
  "user" text,
  "created_at" integer NOT NULL,
  "latency_us" integer NOT NULL,
  "share_index" integer,
  "share_of" integer,
  "guardrails" blob,
  "charged_at" integer NOT NULL,
  "findings" text,
  "client_address" blob,
  "preset_id" blob,
  "preset_version" integer,
  "outcomes" text,
  PRIMARY KEY ("id") );
CREATE INDEX "usage_records_charged_at" ON "usage_records" ("charged_at");
CREATE INDEX "usage_records_key" ON "usage_records" ("api_key", "charged_at");
CREATE INDEX "usage_records_workspace_id" ON "usage_records" ("workspace_id", "charged_at");
CREATE TABLE "usage_sums" (
  "day" integer NOT NULL,
  "workspace_id" blob NOT NULL,
  "api_key" blob NOT NULL,
  "model" text NOT NULL,
  "provider" text NOT NULL,
  "requests" integer NOT NULL,
  "input_tokens" integer NOT NULL,
  "output_tokens" integer NOT NULL,
  "cost_pico" integer NOT NULL,
  PRIMARY KEY ("day", "workspace_id", "api_key", "model", "provider") );
CREATE INDEX "usage_sums_key" ON "usage_sums" ("api_key", "day");
CREATE INDEX "usage_sums_workspace_id" ON "usage_sums" ("workspace_id", "day");
CREATE TABLE "workspaces" (
  "id" text NOT NULL PRIMARY KEY,
  "name" text NOT NULL,
  "slug" text NOT NULL,
  "description" text,
  "owner_id" text,
  "is_default" boolean NOT NULL,
  "suspended" boolean NOT NULL,
  "credit_pico" integer,
  "storage_used_bytes" integer NOT NULL CHECK ("storage_used_bytes" >= 0),
  "created_at" integer NOT NULL,
  "credit_base_pico" integer,
  "budget_daily_pico" integer,
  "budget_weekly_pico" integer,
  "budget_monthly_pico" integer,
  "budget_lifetime_pico" integer,
  "requests_per_minute" integer,
  "tokens_per_minute" integer,
  "default_guardrail_id" text,
  "document_count" integer NOT NULL DEFAULT 0 CHECK ("document_count" >= 0),
  "updated_at" integer,
  "audit_hash" blob,
  "credit_began_at" integer,
  "credit_late_pico" integer NOT NULL DEFAULT 0,
  "deleted_at" integer );
CREATE INDEX "workspaces_created_at" ON "workspaces" ("created_at");
CREATE UNIQUE INDEX "workspaces_default" ON "workspaces" ("is_default") WHERE "is_default";
CREATE UNIQUE INDEX "workspaces_slug" ON "workspaces" ("slug") WHERE "deleted_at" IS NULL;
