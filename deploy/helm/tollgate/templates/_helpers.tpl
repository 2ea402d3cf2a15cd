{{/* The name of all objects of a release. */}}
{{- define "tollgate.name" -}}
{{- if contains "tollgate" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-tollgate" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "tollgate.selector" -}}
app.kubernetes.io/name: tollgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tollgate.labels" -}}
{{ include "tollgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "tollgate.migrationLabels" -}}
app.kubernetes.io/name: tollgate-migrate
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "tollgate.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The environment of servers and of the migration: the stores, then variables of the operator. */}}
{{- define "tollgate.env" -}}
- name: TOLLGATE__STORAGE__URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.existingSecret }}
      key: {{ .Values.database.key }}
{{- with .Values.blobs.endpoint }}
- name: TOLLGATE__BLOBS__ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- with .Values.rateLimits.url }}
- name: TOLLGATE__RATE_LIMITS__URL
  value: {{ . | quote }}
{{- end }}
- name: RUST_LOG
  value: {{ .Values.logFilter | quote }}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The largest number of replicas. */}}
{{- define "tollgate.maxReplicas" -}}
{{- if .Values.autoscaling.enabled }}{{ .Values.autoscaling.maxReplicas }}{{ else }}{{ .Values.replicas }}{{ end }}
{{- end }}

{{/* The port of a URL. */}}
{{- define "tollgate.port" -}}
{{- $host := (urlParse .url).host }}
{{- if regexMatch ":[0-9]+$" $host }}{{ regexFind "[0-9]+$" $host }}{{ else }}{{ .default }}{{ end }}
{{- end }}

{{/* The ports of the stores and providers, separated by spaces. */}}
{{- define "tollgate.outboundPorts" -}}
{{- $ports := list (toString .Values.database.port) }}
{{- with .Values.blobs }}
{{- if .url }}
{{- $default := hasPrefix "http://" .endpoint | ternary "80" "443" }}
{{- $ports = append $ports (include "tollgate.port" (dict "url" .endpoint "default" $default)) }}
{{- end }}
{{- end }}
{{- with .Values.rateLimits.url }}
{{- $ports = append $ports (include "tollgate.port" (dict "url" . "default" "6379")) }}
{{- end }}
{{- range .Values.networkPolicy.providerPorts }}
{{- $ports = append $ports (toString .) }}
{{- end }}
{{- $ports | uniq | join " " }}
{{- end }}

{{/* The mounts and volumes of `secretFiles`. */}}
{{- define "tollgate.secretMounts" -}}
{{- range .Values.secretFiles }}
- {name: secret-{{ . }}, mountPath: /etc/tollgate-secrets/{{ . }}, readOnly: true}
{{- end }}
{{- end }}

{{- define "tollgate.secretVolumes" -}}
{{- range .Values.secretFiles }}
- name: secret-{{ . }}
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- end }}
