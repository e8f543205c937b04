{{- define "hopline.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "hopline.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "hopline.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "hopline.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that never change: a Deployment's selector is immutable. Arguments: root, component. */}}
{{- define "hopline.selector" -}}
app.kubernetes.io/name: {{ include "hopline.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "hopline.labels" -}}
{{ include "hopline.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{/* Arguments: image (registry, repository, tag, digest), tag: the default. */}}
{{- define "hopline.image" -}}
{{- $name := .image.repository -}}
{{- if .image.registry -}}{{- $name = printf "%s/%s" .image.registry .image.repository -}}{{- end -}}
{{- if .image.digest -}}{{- printf "%s@%s" $name .image.digest -}}{{- else -}}{{- printf "%s:%s" $name (default .tag .image.tag) -}}{{- end -}}
{{- end -}}

{{- define "hopline.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{- define "hopline.podSecurityContext" -}}
runAsNonRoot: true
{{- with .Values.pods.uid }}
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
{{- end }}
seccompProfile: { type: RuntimeDefault }
{{- end -}}
