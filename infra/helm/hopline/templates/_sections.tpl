{{/*
Refuses values whose defaults a null has removed: in a file of values, a line is null if all its members are comments. Helm renders the template of its
test first, so this message replaces an error about a nil pointer.
*/}}
{{- define "hopline.requireSections" -}}
{{- range $path := list
  "image" "pods" "ingress" "ingress.service" "ingress.grpc" "relay" "relay.autoscaling" "supervisor" "notifier" "tls" "tls.issuerRef" "tls.reload" "console" "auth" "secretsKey" "nats" "nats.image" "nats.storage" "nats.metrics" "backup"
  "httpIngress" "gateway" "networkPolicy" "podMonitor" "prometheusRule" "dashboards"
-}}
{{- $value := $.Values -}}
{{- range splitList "." $path -}}{{- if kindIs "map" $value -}}{{- $value = get $value . -}}{{- end -}}{{- end -}}
{{- if not (kindIs "map" $value) -}}{{- fail (printf "%s: null removes the defaults of the chart, and so does a line whose members are all comments: leave it out" $path) -}}{{- end -}}
{{- end -}}
{{- end -}}
