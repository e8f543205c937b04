{{/* Names of Services have no dots, and at most 63 characters with their suffixes. */}}
{{- define "hopline.trimmed" -}}
{{- . | replace "." "-" | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "hopline.name" -}}
{{- include "hopline.trimmed" (default .Chart.Name .Values.nameOverride) -}}
{{- end -}}

{{/* Address of the runbook for alerts and dashboards: that of the version in the repository that the release names. */}}
{{- define "hopline.runbook" -}}
{{- if .Values.runbookUrl -}}
{{ .Values.runbookUrl }}
{{- else if .Chart.Home -}}
{{ printf "%s/blob/v%s/infra/RUNBOOK.md" (trimSuffix "/" .Chart.Home) .Chart.AppVersion }}
{{- else -}}
infra/RUNBOOK.md
{{- end -}}
{{- end }}

{{- define "hopline.fullname" -}}
{{- $name := "" -}}
{{- if .Values.fullnameOverride -}}
{{- $name = include "hopline.trimmed" .Values.fullnameOverride -}}
{{- else if contains (include "hopline.name" .) .Release.Name -}}
{{- $name = include "hopline.trimmed" .Release.Name -}}
{{- else -}}
{{- $name = include "hopline.trimmed" (printf "%s-%s" .Release.Name (include "hopline.name" .)) -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]" $name) -}}{{- fail (printf "the name %q, with which the names of all objects begin, does not begin with a lower-case letter, and Kubernetes refuses such a Service: set fullnameOverride" $name) -}}{{- end -}}
{{- $name -}}
{{- end -}}

{{/*
The job of the metrics: one for each cluster, because dashboards and rules aggregate by it. HoplineProcessDown matches its beginning. Agents of the chart
hopline-agent belong to the cluster of `hoplineNamespace`.
*/}}
{{- define "hopline.job" -}}
hopline/{{ default .Release.Namespace .Values.hoplineNamespace }}/{{ include "hopline.fullname" . }}
{{- end -}}

{{/* Arguments: root; name; port; selector (of the pods). */}}
{{- define "hopline.podMonitor" -}}
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: {{ .name | quote }}
  labels: {{- include "hopline.labelsAnd" (dict "root" .root "component" "monitor" "more" .root.Values.podMonitor.labels) | nindent 4 }}
spec:
  selector: {{- .selector | toYaml | nindent 4 }}
  podMetricsEndpoints:
    - port: {{ .port }}
      path: /metrics
      interval: {{ .root.Values.podMonitor.interval }}
      relabelings:
        - { targetLabel: job, replacement: {{ include "hopline.job" .root | quote }} }
{{- end -}}

{{/* Labels that never change: a Deployment's selector is immutable. Quoted: a release may be called 1e5 or on. Arguments: root, component. */}}
{{- define "hopline.selector" -}}
app.kubernetes.io/name: {{ include "hopline.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of an object. No version: each release would change every object. Arguments: root, component. */}}
{{- define "hopline.labels" -}}
{{- $own := include "hopline.selector" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- merge $own (default (dict) .root.Values.commonLabels) | toYaml -}}
{{- end -}}

{{/* The labels and those of a value, which replace none. Arguments: root, component, more. */}}
{{- define "hopline.labelsAnd" -}}
{{- merge (include "hopline.labels" . | fromYaml) (default (dict) .more) | toYaml -}}
{{- end -}}

{{/*
Labels of a pod: those that select it, and those of the values, which replace none. No version: it would restart every pod, NATS
included, at a release that changes nothing else. Arguments: root, component, more.
*/}}
{{- define "hopline.podLabels" -}}
{{- merge (include "hopline.selector" . | fromYaml) (default (dict) .more) (default (dict) .root.Values.commonLabels) | toYaml -}}
{{- end -}}

{{/* HOPLINE_PREFIX as text: a number of a values file is floating point. */}}
{{- define "hopline.prefix" -}}
{{- $prefix := dig "HOPLINE_PREFIX" "" (default (dict) .Values.settings) -}}
{{- ternary $prefix (toJson $prefix) (kindIs "string" $prefix) -}}
{{- end -}}

{{/*
Arguments: image (registry, repository, tag, digest); own: that of one service; tag: the default. A repository of its own is another
image, and a tag or digest of its own another version: nothing else of `image` describes it then.
*/}}
{{- define "hopline.image" -}}
{{- $own := default (dict) .own -}}
{{- $image := $own -}}
{{- if not $own.repository -}}
{{- $version := ternary $own .image (not (empty (or $own.tag $own.digest))) -}}
{{- $registry := default .image.registry $own.registry -}}
{{- $image = dict "registry" $registry "repository" .image.repository "tag" $version.tag "digest" $version.digest -}}
{{- end -}}
{{- $name := $image.repository -}}
{{- if $image.registry -}}{{- $name = printf "%s/%s" $image.registry $name -}}{{- end -}}
{{- if $image.digest -}}{{- printf "%s@%s" $name $image.digest -}}{{- else -}}{{- printf "%s:%s" $name (default .tag $image.tag) -}}{{- end -}}
{{- end -}}
