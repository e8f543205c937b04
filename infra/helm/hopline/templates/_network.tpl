{{/*
The NetworkPolicy of one kind of pods, both directions. Lists of rules are JSON.
Arguments: root; component; ingress, egress (rules beyond those of every pod); scraped (the port that a scraper reaches); settings, env (of the
component, for the address of telemetry).
*/}}
{{- define "hopline.networkPolicy" -}}
{{- $root := .root -}}
{{- $labels := dict "root" $root "component" .component -}}
{{- $values := $root.Values.networkPolicy -}}
{{- $ingress := default (list) .ingress -}}
{{- if and .scraped $values.scrapeFrom -}}
{{- $ingress = append $ingress (dict "from" $values.scrapeFrom "ports" (list (dict "port" .scraped))) -}}
{{- end -}}
{{- /* Services of DNS listen on 53, and those of OpenShift on 5353. */ -}}
{{- $dns := list -}}
{{- range $port := list 53 5353 -}}{{- range $protocol := list "UDP" "TCP" -}}{{- $dns = append $dns (dict "protocol" $protocol "port" $port) -}}{{- end -}}{{- end -}}
{{- $egress := list (dict "ports" $dns) -}}
{{- $egress = concat $egress (include "hopline.telemetryEgress" . | fromJsonArray) -}}
{{- with $values.egressTo -}}{{- $egress = append $egress (dict "to" .) -}}{{- end -}}
{{- $egress = concat $egress (default (list) .egress) -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ printf "%s-%s" (include "hopline.fullname" $root) .component }}
  labels: {{- include "hopline.labels" $labels | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- include "hopline.selector" $labels | nindent 6 }}
  policyTypes: [Ingress, Egress]
  {{- /* A pod without rules is reached only by its node, from which the probes come. */}}
  {{- with $ingress }}
  ingress: {{- toYaml . | nindent 4 }}
  {{- end }}
  egress: {{- toYaml $egress | nindent 4 }}
{{- end -}}

{{/* Host and port of a URL, as JSON; the port of its scheme by default. Argument: the URL. */}}
{{- define "hopline.hostAndPort" -}}
{{- $scheme := regexFind "^[a-zA-Z][a-zA-Z0-9+.-]*://" . | lower -}}
{{- $authority := regexFind "^[^/?#]*" (trimPrefix (regexFind "^[a-zA-Z][a-zA-Z0-9+.-]*://" .) .) | regexFind "[^@]*$" -}}
{{- $port := regexFind ":[0-9]+$" $authority -}}
{{- $host := trimSuffix $port $authority | trimPrefix "[" | trimSuffix "]" | lower | trimSuffix "." -}}
{{- $byScheme := dict "http://" 80 "ws://" 80 "https://" 443 "wss://" 443 -}}
{{- toJson (dict "host" $host "port" (default (get $byScheme $scheme | default 4222) (trimPrefix ":" $port | int))) -}}
{{- end -}}

{{/*
Rules for a server that a URL names, as JSON. The pods behind a Service may have another port than it, so the whole namespace of a Service is
reached. A name of two labels may be a Service in a namespace, or a public name.
Arguments: url; anywhere (whether the port is reached at every address if the URL may name a server outside the cluster).
*/}}
{{- define "hopline.egressOfUrl" -}}
{{- $server := include "hopline.hostAndPort" .url | fromJson -}}
{{- $ports := list (dict "port" (int $server.port)) -}}
{{- $rules := list -}}
{{- $isService := false -}}
{{- $v4 := regexMatch "^[0-9]+[.][0-9]+[.][0-9]+[.][0-9]+$" $server.host -}}
{{- if contains "$(" $server.host -}}
{{- /* Only Kubernetes knows the variable: the address of the node, for example. */ -}}
{{- $isService = true -}}
{{- $rules = append $rules (dict "ports" $ports) -}}
{{- else if or $v4 (contains ":" $server.host) -}}
{{- $isService = true -}}
{{- $rules = append $rules (dict "to" (list (dict "ipBlock" (dict "cidr" (printf "%s/%s" $server.host (ternary "32" "128" $v4))))) "ports" $ports) -}}
{{- else if eq $server.host "localhost" -}}
{{- $isService = true -}}
{{- else if not (contains "." $server.host) -}}
{{- $isService = true -}}
{{- $rules = append $rules (dict "to" (list (dict "podSelector" dict))) -}}
{{- else if regexMatch "^[^.]+[.][^.]+([.]svc([.].*)?)?$" $server.host -}}
{{- $isService = contains ".svc" $server.host -}}
{{- $namespace := index (splitList "." $server.host) 1 -}}
{{- $rules = append $rules (dict "to" (list (dict "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" $namespace))))) -}}
{{- end -}}
{{- if and .anywhere (not $isService) -}}{{- $rules = append $rules (dict "ports" $ports) -}}{{- end -}}
{{- toJson $rules -}}
{{- end -}}

{{/* Rules for the servers of OTLP that settings and variables name, as JSON. Arguments: root; settings; env. */}}
{{- define "hopline.telemetryEgress" -}}
{{- $given := merge (dict) (default (dict) .settings) (default (dict) .root.Values.settings) -}}
{{- range concat (default (list) .root.Values.env) (default (list) .env) -}}{{- if .value -}}{{- $_ := set $given .name .value -}}{{- end -}}{{- end -}}
{{- $rules := list -}}
{{- range $name, $value := $given -}}
{{- if and (regexMatch "^OTEL_EXPORTER_OTLP_([A-Z]+_)?ENDPOINT$" $name) (toString $value) -}}
{{- /* A Service of OTLP has the port of its pods, so only that port is reached. */ -}}
{{- $ports := list (dict "port" (int (include "hopline.hostAndPort" (toString $value) | fromJson).port)) -}}
{{- range include "hopline.egressOfUrl" (dict "url" (toString $value) "anywhere" true) | fromJsonArray -}}{{- $rules = append $rules (set . "ports" $ports) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson (uniq $rules) -}}
{{- end -}}

{{/* Rules for NATS, as JSON. Argument: root. */}}
{{- define "hopline.natsEgress" -}}
{{- $nats := .Values.nats -}}
{{- if $nats.enabled -}}
{{- $pods := include "hopline.selector" (dict "root" . "component" "nats") | fromYaml -}}
{{- toJson (list (dict "to" (list (dict "podSelector" (dict "matchLabels" $pods))) "ports" (list (dict "port" 4222)))) -}}
{{- else if $nats.isOfHopline -}}
{{- $pods := dict "app.kubernetes.io/component" "nats" -}}
{{- toJson (list (dict "to" (list (dict "podSelector" (dict "matchLabels" $pods))) "ports" (list (dict "port" 4222)))) -}}
{{- else -}}
{{- /* Only the port: the namespace of another NATS has other pods. */ -}}
{{- $ports := list -}}
{{- range splitList "," (include "hopline.natsUrl" .) -}}
{{- if trim . -}}{{- $ports = append $ports (dict "port" (int (include "hopline.hostAndPort" (trim .) | fromJson).port)) -}}{{- end -}}
{{- end -}}
{{- toJson (list (dict "ports" (uniq $ports))) -}}
{{- end -}}
{{- end -}}

{{/* Rules for the keys of the issuer, as JSON. Argument: root. */}}
{{- define "hopline.issuerEgress" -}}
{{- with .Values.auth.jwksUrl -}}{{- include "hopline.egressOfUrl" (dict "url" . "anywhere" true) -}}{{- else -}}[]{{- end -}}
{{- end -}}

{{/*
The rule for public addresses, as JSON. It comes last: a program that enforces the rules in their order would otherwise refuse an address that
a further rule permits. Argument: root.
*/}}
{{- define "hopline.publicEgress" -}}
{{- $peers := list -}}
{{- range $cidr := list "0.0.0.0/0" "::/0" -}}
{{- $private := list -}}
{{- range $.Values.networkPolicy.privateRanges -}}{{- if eq (contains ":" .) (contains ":" $cidr) -}}{{- $private = append $private . -}}{{- end -}}{{- end -}}
{{- if $private -}}{{- $peers = append $peers (dict "ipBlock" (dict "cidr" $cidr "except" $private)) -}}{{- end -}}
{{- end -}}
{{- /* A rule without peers would permit every address. */ -}}
{{- toJson (ternary (list (dict "to" $peers)) (list) (gt (len $peers) 0)) -}}
{{- end -}}

{{/* The NetworkPolicy of an agent. Arguments: root, name, entry, values. */}}
{{- define "hopline.agentNetworkPolicy" -}}
{{- $root := .root -}}
{{- $values := .values -}}
{{- $settings := merge (dict) (default (dict) $values.settings) (default (dict) $root.Values.settings) -}}
{{- $ingress := list -}}
{{- $egress := include "hopline.natsEgress" $root | fromJsonArray -}}
{{- if $values.expose -}}
{{- $callers := dict "ports" (list (dict "port" "http")) -}}
{{- with $values.from -}}{{- $_ := set $callers "from" . -}}{{- end -}}
{{- $ingress = append $ingress $callers -}}
{{- $egress = concat $egress (include "hopline.issuerEgress" $root | fromJsonArray) -}}
{{- end -}}
{{- $urls := list .entry.url .entry.baseUrl -}}
{{- range default (list) .entry.mcp -}}{{- $urls = append $urls .url -}}{{- end -}}
{{- if eq .entry.adapter "model" -}}{{- $urls = append $urls (get $settings "OPENAI_BASE_URL") -}}{{- end -}}
{{- range compact $urls -}}
{{- $egress = concat $egress (include "hopline.egressOfUrl" (dict "url" (toString .) "anywhere" false) | fromJsonArray) -}}
{{- end -}}
{{- with $values.to -}}{{- $egress = append $egress (dict "to" .) -}}{{- end -}}
{{- if dig "internet" true $values -}}{{- $egress = concat $egress (include "hopline.publicEgress" $root | fromJsonArray) -}}{{- end -}}
{{ include "hopline.networkPolicy" (dict "root" $root "component" (printf "agent-%s" .name) "ingress" $ingress "egress" $egress "scraped" "probes" "settings" $values.settings "env" $values.env) }}
{{- end -}}
