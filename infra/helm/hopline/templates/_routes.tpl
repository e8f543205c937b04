{{- /*
The Ingress resource and the HTTPRoute of one Service.
root, component; service: its name and theirs; port: of the Service; podTls: the pods serve HTTPS; at: path of the values in messages;
httpIngress, gateway: the values themselves.
*/}}
{{- define "hopline.httpRoutes" -}}
{{- if and .httpIngress.enabled .gateway.enabled }}
{{- fail (printf "%shttpIngress.enabled and %sgateway.enabled: choose one" .at .at) }}
{{- end }}
{{- $service := .service }}
{{- $labels := dict "root" .root "component" .component }}
{{- $podTls := .podTls }}
{{- with .httpIngress }}
{{- if .enabled }}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: {{ $service }}
  labels: {{- include "hopline.labels" $labels | nindent 4 }}
  {{- /* Streams last as long as their tasks; the heartbeat every 15 s keeps them from idling. */}}
  {{- $nginx := "nginx.ingress.kubernetes.io/proxy-" }}
  {{- $streaming := dict (print $nginx "buffering") "off" (print $nginx "read-timeout") "3600" (print $nginx "send-timeout") "3600" }}
  {{- if $podTls }}{{ $_ := set $streaming "nginx.ingress.kubernetes.io/backend-protocol" "HTTPS" }}{{ end }}
  annotations: {{- mergeOverwrite $streaming (default (dict) .annotations) | toYaml | nindent 4 }}
spec:
  {{- with .className }}
  ingressClassName: {{ . | quote }}
  {{- end }}
  {{- if .tlsSecret }}
  tls: [{ secretName: {{ .tlsSecret | quote }}, hosts: {{ prepend .furtherHosts .host | toJson }} }]
  {{- end }}
  rules:
    {{- range prepend .furtherHosts .host }}
    - host: {{ . | quote }}
      http:
        paths:
          - { path: /, pathType: Prefix, backend: { service: { name: {{ $service }}, port: { name: http } } } }
    {{- end }}
{{- end }}
{{- end }}
{{- if .gateway.enabled }}
{{- if not .gateway.parentRefs }}{{ fail (printf "%sgateway.parentRefs is required: the Gateway whose listener takes the route" .at) }}{{ end }}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: {{ $service }}
  labels: {{- include "hopline.labels" $labels | nindent 4 }}
spec:
  parentRefs: {{- toYaml .gateway.parentRefs | nindent 4 }}
  {{- with .gateway.hostnames }}
  hostnames: {{- toYaml . | nindent 4 }}
  {{- end }}
  rules:
    - backendRefs: [{ name: {{ $service }}, port: {{ .port }} }]
      {{- with .gateway.requestTimeout }}
      # 0s: none. Envoy cuts a response after 15 s otherwise.
      timeouts: { request: {{ . | quote }} }
      {{- end }}
{{- end }}
{{- end -}}

{{- /* Host names of the routes, as JSON: the service answers under them. */}}
{{- define "hopline.routeHosts" -}}
{{- $hosts := list -}}
{{- if .httpIngress.enabled -}}{{- $hosts = concat $hosts (list .httpIngress.host) (include "hopline.exactHosts" .httpIngress.furtherHosts | fromJsonArray) -}}{{- end -}}
{{- if .gateway.enabled -}}{{- $hosts = concat $hosts (include "hopline.exactHosts" .gateway.hostnames | fromJsonArray) -}}{{- end -}}
{{- toJson $hosts -}}
{{- end -}}

{{- /* Without those that have a wildcard, as JSON. */}}
{{- define "hopline.exactHosts" -}}
{{- $hosts := list -}}
{{- range . -}}{{- if not (contains "*" .) -}}{{- $hosts = append $hosts . -}}{{- end -}}{{- end -}}
{{- toJson $hosts -}}
{{- end -}}
