{{/*
One Deployment with its PodDisruptionBudget and HorizontalPodAutoscaler.
Arguments: root; role (the argument of the image); component (its name); values (of the role); env (a map);
ports (further ports, name to number); withoutNats; code (of an agent with a container for its code: its value `code`, and `named`).
A role that serves callers has its probes on a port of their own, which no Service and no route leads to.
*/}}
{{- define "hopline.deployment" -}}
{{- $root := .root -}}
{{- $pods := include "hopline.podsOf" . | fromJson -}}
{{- $name := printf "%s-%s" (include "hopline.fullname" $root) .component -}}
{{- $labels := dict "root" $root "component" .component -}}
{{- $own := default (dict) .values.settings -}}
{{- include "hopline.checkSettings" (dict "root" $root "component" .component "settings" (merge (dict) $own (default (dict) $root.Values.settings))) -}}
{{- $servesCallers := has .role (list "ingress" "console" "sub-agent") -}}
{{- if $servesCallers -}}{{- $_ := set .env "HOPLINE_PROBE_PORT" (include "hopline.probePort" . | int) -}}{{- end -}}
{{- $settings := mergeOverwrite (dict) (default (dict) $root.Values.settings) .env $own -}}
{{- /* Kubernetes rejects a variable that stands twice: that of the role wins, and `env` wins over settings. */ -}}
{{- $env := default (list) .values.env -}}
{{- $named := dict -}}
{{- range $env -}}{{- $_ := set $named .name true -}}{{- end -}}
{{- range reverse (default (list) $root.Values.env) -}}
{{- if not (hasKey $named .name) -}}{{- $env = prepend $env . -}}{{- $_ := set $named .name true -}}{{- end -}}
{{- end -}}
{{- /* The variables that the entry of an agent names are for its code. */ -}}
{{- $codeSettings := dict -}}
{{- $codeEnv := list -}}
{{- $allSettings := $settings -}}
{{- with .code -}}
{{- $named := .named -}}
{{- range $key, $value := $allSettings -}}
{{- $reader := include "hopline.readerOf" (dict "name" $key "named" $named) -}}
{{- if ne $reader "sub-agent" -}}{{- $_ := set $codeSettings $key $value -}}{{- end -}}
{{- if eq $reader "code" -}}{{- $settings = omit $settings $key -}}{{- end -}}
{{- end -}}
{{- $own := list -}}
{{- range $env -}}
{{- $reader := include "hopline.readerOf" (dict "name" .name "named" $named) -}}
{{- if ne $reader "sub-agent" -}}{{- $codeEnv = append $codeEnv . -}}{{- end -}}
{{- if ne $reader "code" -}}{{- $own = append $own . -}}{{- end -}}
{{- end -}}
{{- $env = $own -}}
{{- end -}}
{{- /* Entries of `agents` have no defaults of values.yaml. */ -}}
{{- if and $root.Values.nats.clientCertificate (not $root.Values.nats.tlsSecret) -}}{{- fail "nats.clientCertificate: set nats.tlsSecret, which has it" -}}{{- end -}}
{{- $autoscaling := mergeOverwrite (dict "enabled" false "min" 2 "max" 8 "cpu" "600m") (default (dict) .values.autoscaling) -}}
{{- $keda := mergeOverwrite (dict "enabled" false "min" 2 "max" 8 "itemsPerPod" 64) (default (dict) .values.keda) -}}
{{- if and $autoscaling.enabled $keda.enabled -}}{{- fail (printf "%s: autoscaling.enabled and keda.enabled: choose one" .component) -}}{{- end -}}
{{- if and $keda.enabled (gt (len $name) 63) -}}{{- fail (printf "%s: KEDA makes the name %s a label, which may have 63 characters, and it has %d: choose a shorter one, or a shorter fullnameOverride" .component $name (len $name)) -}}{{- end -}}
{{- if and $autoscaling.enabled (not (or $autoscaling.cpu $autoscaling.metrics)) -}}{{- fail (printf "%s: autoscaling needs cpu or metrics" .component) -}}{{- end -}}
{{- range $kind, $scale := dict "autoscaling" $autoscaling "keda" $keda -}}
{{- if and $scale.enabled (gt (int $scale.min) (int $scale.max)) -}}{{- fail (printf "%s: %s.min is above its max" $.component $kind) -}}{{- end -}}
{{- end -}}
{{- /* Kubernetes runs one pod if a Deployment loses its number, so an autoscaled one keeps the number that it has. */ -}}
{{- $replicas := .values.replicas -}}
{{- if or $autoscaling.enabled $keda.enabled -}}
{{- $min := ternary $autoscaling.min $keda.min $autoscaling.enabled | int -}}
{{- $live := lookup "apps/v1" "Deployment" $root.Release.Namespace $name | default dict -}}
{{- /* Below `min` too: the autoscaler raises it, and server-side apply refuses to change a number that the autoscaler has set. It leaves 0 alone. */ -}}
{{- $replicas = dig "spec" "replicas" $min $live | int | default $min -}}
{{- end -}}
{{- $variables := include "hopline.variables" (dict "root" $root "role" .role "component" .component "values" .values "withoutNats" .withoutNats "pods" $pods "settings" $settings "named" $named "env" $env) -}}
{{- $seen := dict -}}
{{- range fromYamlArray $variables -}}
{{- if hasKey $seen .name -}}{{- fail (printf "env: %s (%s): the chart sets it already, or `env` names it twice: leave it out" .name $.component) -}}{{- end -}}
{{- $_ := set $seen .name true -}}
{{- end -}}
{{- $isSelected := or (has .role (list "ingress" "console")) (default false .values.expose) -}}
{{- $preStopSeconds := ternary (int $pods.preStopSeconds) 0 $isSelected -}}
{{- $image := mergeOverwrite (dict) (deepCopy $root.Values.image) (deepCopy (default (dict) .values.image)) -}}
{{- $emptyDirs := ternary (list "tmp" "code-tmp" "code") (list "tmp") (not (empty .code)) -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  {{- /* The version of the image, so it changes with it. */}}
  labels: {{- set (include "hopline.labels" $labels | fromYaml) "app.kubernetes.io/version" (default $root.Chart.AppVersion $image.tag | replace "+" "_" | trunc 63 | trimAll "-_.") | toYaml | nindent 4 }}
  {{- with $pods.workloadAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  replicas: {{ $replicas }}
  selector:
    matchLabels: {{- include "hopline.selector" $labels | nindent 6 }}
  {{- with $pods.strategy }}
  {{- /* A role that sets another type has the `rollingUpdate` of `pods`, too. */}}
  strategy: {{- ternary (omit . "rollingUpdate") . (eq (default "" .type) "Recreate") | toYaml | nindent 4 }}
  {{- end }}
  template:
    metadata:
      labels: {{- include "hopline.podLabels" (set $labels "more" $pods.labels) | nindent 8 }}
      annotations: {{- include "hopline.podAnnotations" (dict "pods" $pods "own" (include "hopline.secretChecksums" (dict "root" $root "component" .component "withoutNats" .withoutNats "role" .role) | fromJson) "emptyDirs" $emptyDirs) | nindent 8 }}
    spec:
      {{- include "hopline.podSpec" (dict "root" $root "component" .component "values" .values "pods" $pods) | nindent 6 }}
      terminationGracePeriodSeconds: {{ add $preStopSeconds $pods.drainSeconds 10 }}
      topologySpreadConstraints: {{- include "hopline.spread" (dict "labels" (include "hopline.selector" $labels) "constraints" $pods.topologySpreadConstraints "byTemplate" true) | nindent 8 }}
      {{- $initContainers := include "hopline.furtherContainers" (dict "root" $root "pods" $pods "containers" $pods.initContainers) }}
      {{- if or .code $initContainers }}
      initContainers:
        {{- with $initContainers }}{{ . | nindent 8 }}{{ end }}
        {{- with .code }}
        {{- include "hopline.codeContainer" (dict "root" $root "pods" $pods "values" $.values "code" .values "named" .named "settings" $codeSettings "env" $codeEnv) | nindent 8 }}
        {{- end }}
      {{- end }}
      containers:
        - name: {{ .role }}
          image: {{ include "hopline.image" (dict "image" $root.Values.image "own" .values.image "tag" $root.Chart.AppVersion) }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          args: [{{ .role }}]
          securityContext: {{- include "hopline.securityContext" (dict "pods" $pods) | nindent 12 }}
          env: {{- $variables | nindent 12 }}
          ports:
            {{- if $servesCallers }}
            - { name: http, containerPort: 8000 }
            - { name: probes, containerPort: {{ include "hopline.probePort" . }} }
            {{- else }}
            - { name: probes, containerPort: 8000 }
            {{- end }}
            {{- range $port, $number := .ports }}
            - { name: {{ $port }}, containerPort: {{ $number }} }
            {{- end }}
          # A start includes the creation of the streams, which waits for NATS.
          startupProbe: { httpGet: { path: /readyz, port: probes }, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 300 }
          {{- /* Without NATS an ingress answers 503 with Retry-After for a minute; without endpoints connections would be refused. */}}
          readinessProbe: { httpGet: { path: /readyz, port: probes }, periodSeconds: 5, timeoutSeconds: 3, failureThreshold: {{ ternary 12 3 (eq .role "ingress") }} }
          {{- /* A process without CPU answers late, and a restart would need more of it than an answer. */}}
          livenessProbe: { httpGet: { path: /livez, port: probes }, periodSeconds: 10, timeoutSeconds: 10, failureThreshold: 6 }
          {{- if gt $preStopSeconds 0 }}
          lifecycle: { preStop: { sleep: { seconds: {{ $preStopSeconds }} } } }
          {{- end }}
          {{- $at := ternary (printf "%s.resources" .component) (printf "pods.resources (%s)" .component) (not (empty .values.resources)) }}
          resources: {{- include "hopline.resources" (dict "at" $at "resources" (default $pods.resources .values.resources)) | nindent 12 }}
          volumeMounts:
            - { name: tmp, mountPath: /tmp }
            {{- if and (not .withoutNats) (include "hopline.natsTlsSecret" $root) }}
            - { name: nats-tls, mountPath: /var/run/hopline/nats-tls, readOnly: true }
            {{- end }}
            {{- if .values.tlsSecret }}
            - { name: tls, mountPath: /var/run/hopline/tls, readOnly: true }
            {{- end }}
            {{- with .authSecrets }}
            - { name: auth, mountPath: /var/run/hopline/auth, readOnly: true }
            {{- end }}
            {{- if .code }}
            - { name: code, mountPath: {{ include "hopline.codeFolder" . }}, readOnly: true }
            {{- else }}
            {{- with .values.volumeMounts }}{{ toYaml . | nindent 12 }}{{ end }}
            {{- end }}
        {{- with include "hopline.furtherContainers" (dict "root" $root "pods" $pods "containers" $pods.sidecars) }}{{ . | nindent 8 }}{{ end }}
      volumes:
        - {{ include "hopline.tmpVolume" $pods }}
        {{- if .code }}
        {{- include "hopline.codeVolumes" $pods | nindent 8 }}
        {{- end }}
        {{- if and (not .withoutNats) (include "hopline.natsTlsSecret" $root) }}
        - { name: nats-tls, secret: { secretName: {{ include "hopline.natsTlsSecret" $root | quote }} } }
        {{- end }}
        {{- if .values.tlsSecret }}
        - { name: tls, secret: { secretName: {{ .values.tlsSecret | quote }} } }
        {{- end }}
        {{- with .authSecrets }}
        - name: auth
          projected:
            sources:
              {{- range $file, $secret := . }}
              - secret: { name: {{ $secret | quote }}, items: [{ key: {{ $file }}, path: {{ $file }} }] }
              {{- end }}
        {{- end }}
        {{- with .values.volumes }}{{ toYaml . | nindent 8 }}{{ end }}
{{- if default false .values.pdb }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  labels: {{- include "hopline.labels" $labels | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "hopline.selector" $labels | nindent 6 }}
{{- end }}
{{- if $autoscaling.enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ $name }}
  labels: {{- include "hopline.labels" $labels | nindent 4 }}
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: {{ $name }} }
  minReplicas: {{ $autoscaling.min }}
  maxReplicas: {{ $autoscaling.max }}
  {{- with default $root.Values.autoscalingBehavior $autoscaling.behavior }}
  behavior: {{- toYaml . | nindent 4 }}
  {{- end }}
  metrics:
    {{- with $autoscaling.cpu }}
    {{- /* An amount, because the request may be that of an idle service. */}}
    - type: Resource
      resource: { name: cpu, target: { type: AverageValue, averageValue: {{ . | quote }} } }
    {{- end }}
    {{- with $autoscaling.metrics }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end }}
{{- if $keda.enabled }}
{{- $server := dig "prometheus" "" (default (dict) $root.Values.keda) | required (printf "keda.prometheus is required for keda of %s: the address of the Prometheus that scrapes the pods" .component) }}
{{- $job := printf "job=%q" (include "hopline.job" $root) }}
{{- $turns := printf "%s,agent=%q" $job (trimPrefix "agent-" .component) }}
{{- /* Turns that run and those that wait for a slot; of ingress, its open streams. */}}
{{- $work := printf "sum(hopline_active_tasks{%s}) + (sum(hopline_queue_waiting{%s}) or vector(0))" $turns $turns }}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {{ $name }}
  labels: {{- include "hopline.labels" $labels | nindent 4 }}
spec:
  scaleTargetRef: { name: {{ $name }} }
  minReplicaCount: {{ $keda.min }}
  maxReplicaCount: {{ $keda.max }}
  # Without an answer of Prometheus the number of pods stays.
  fallback: { failureThreshold: 3, replicas: {{ $keda.min }}, behavior: currentReplicasIfHigher }
  {{- with default $root.Values.autoscalingBehavior $keda.behavior }}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior: {{- toYaml . | nindent 8 }}
  {{- end }}
  triggers:
    - type: prometheus
      metadata:
        serverAddress: {{ $server | quote }}
        query: {{ default (ternary (printf "sum(hopline_open_streams{%s})" (printf "%s,service=%q" $job "ingress")) $work (eq .role "ingress")) $keda.query | quote }}
        threshold: {{ int $keda.itemsPerPod | quote }}
        # No data is an error, not an idle cluster.
        ignoreNullValues: "false"
      {{- with $keda.authenticationRef }}
      authenticationRef: {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}
{{- end -}}

{{/*
Variables of the container of a service, as YAML. Arguments: root, role, component, values, withoutNats (as in hopline.deployment); pods (merged); settings
(a map); env (a list); named (the names in env).
*/}}
{{- define "hopline.variables" -}}
{{- $root := .root -}}
{{- $pods := .pods -}}
{{- $settings := .settings -}}
{{- $named := .named -}}
- name: HOPLINE_INSTANCE
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
{{- if not (hasKey $named "NODE_OPTIONS") }}
- name: NODE_OPTIONS
  value: {{ printf "--max-old-space-size-percentage=%v %v" $pods.heapPercent (default "" $settings.NODE_OPTIONS) | trim | quote }}
{{- end }}
{{- if not .withoutNats }}
- name: NATS_URL
  value: {{ include "hopline.natsUrl" $root | quote }}
{{- include "hopline.natsCredentials" (dict "root" $root "component" .component "secret" .values.natsSecret) | nindent 0 }}
{{- end }}
{{- if has .role (list "ingress" "notifier") }}
- name: HOPLINE_SECRETS_KEY
  valueFrom: { secretKeyRef: { name: {{ default (printf "%s-secrets" (include "hopline.fullname" $root)) $root.Values.secretsKey.existingSecret | quote }}, key: key } }
{{- end }}
- name: HOPLINE_DRAIN_MS_MAX
  value: {{ mul 1000 $pods.drainSeconds | quote }}
{{- if not .withoutNats }}
{{- with $root.Values.shards }}
- name: HOPLINE_SHARDS
  value: {{ . | quote }}
{{- end }}
{{- with $root.Values.streamGroups }}
- name: HOPLINE_STREAM_GROUPS
  value: {{ . | quote }}
{{- end }}
{{- if eq .role "relay" }}
{{- with include "hopline.layouts" $root }}
- name: HOPLINE_LAYOUTS
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- if and $root.Values.nats.enabled (not .withoutNats) }}
- name: HOPLINE_REPLICAS
  value: {{ ternary "3" "1" (ge (int $root.Values.nats.replicas) 3) | quote }}
{{- range $key, $value := fromJson (include "hopline.streamBytes" $root) }}
{{- if not (or (hasKey $settings $key) (hasKey $named $key)) }}
- name: {{ $key }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- if .values.tlsSecret }}
- { name: HOPLINE_TLS_CERT_FILE, value: /var/run/hopline/tls/tls.crt }
- { name: HOPLINE_TLS_KEY_FILE, value: /var/run/hopline/tls/tls.key }
{{- end }}
{{- /* As JSON: a number of a values file is floating point, and as text 1000000 would be 1e+06. */}}
{{- range $key, $value := omit $settings "NODE_OPTIONS" }}
{{- if not (hasKey $named $key) }}
- name: {{ $key }}
  value: {{ ternary $value (toJson $value) (kindIs "string" $value) | quote }}
{{- end }}
{{- end }}
{{- range .env }}
- {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
Checksums, as annotations, of the Secrets that the chart generates and a service reads at its start: with another password or key its pods are
replaced. Other Secrets are unknown where templates are rendered without a cluster. Arguments: root, component, role, withoutNats.
*/}}
{{- define "hopline.secretChecksums" -}}
{{- $sums := dict -}}
{{- $nats := .root.Values.nats -}}
{{- if and $nats.enabled (not $nats.existingSecret) (not .withoutNats) -}}
{{- $_ := set $sums "checksum/nats-login" (get (include "hopline.natsPasswords" .root | fromJson) (include "hopline.natsUserKey" .) | sha256sum) -}}
{{- end -}}
{{- if and (has .role (list "ingress" "notifier")) (not .root.Values.secretsKey.existingSecret) -}}
{{- $_ := set $sums "checksum/webhook-key" (include "hopline.webhookKey" .root | sha256sum) -}}
{{- end -}}
{{- toJson $sums -}}
{{- end -}}

{{/* The generated key of the webhook secrets, as in a Secret. Argument: root. */}}
{{- define "hopline.webhookKey" -}}
{{- get (include "hopline.generated" (dict "root" . "name" (printf "%s-secrets" (include "hopline.fullname" .)) "members" (dict "key" (randBytes 32 | b64enc))) | fromJson) "key" -}}
{{- end -}}

{{- define "hopline.probePort" -}}8002{{- end -}}

{{/* Whether callers of ingress and of exposed agents need credentials: "true" or empty. Refuses a half of them. Argument: root. */}}
{{- define "hopline.requiresCredentials" -}}
{{- $auth := .Values.auth -}}
{{- if or $auth.issuer $auth.audience $auth.jwksUrl $auth.jwksSecret -}}
{{- if not (and $auth.issuer $auth.audience (or $auth.jwksUrl $auth.jwksSecret)) -}}
{{- fail "auth: set issuer, audience and one of jwksUrl and jwksSecret together" -}}
{{- end -}}
{{- if and $auth.jwksUrl $auth.jwksSecret -}}{{- fail "auth.jwksUrl and auth.jwksSecret: choose one" -}}{{- end -}}
{{- end -}}
{{- if or $auth.issuer $auth.apiKeysSecret -}}true{{- end -}}
{{- end -}}

{{/* Settings of a server that callers reach, as JSON: how it asks for credentials, or that it asks for none. Argument: root. */}}
{{- define "hopline.authSettings" -}}
{{- $settings := dict -}}
{{- if include "hopline.requiresCredentials" . -}}
{{- with .Values.auth -}}
{{- range $name, $value := dict "ISSUER" .issuer "AUDIENCE" .audience "JWKS_URL" .jwksUrl -}}
{{- if $value -}}{{- $_ := set $settings (print "HOPLINE_AUTH_" $name) $value -}}{{- end -}}
{{- end -}}
{{- if .jwksSecret -}}{{- $_ := set $settings "HOPLINE_AUTH_JWKS_FILE" "/var/run/hopline/auth/jwks.json" -}}{{- end -}}
{{- if .apiKeysSecret -}}{{- $_ := set $settings "HOPLINE_AUTH_API_KEYS_FILE" "/var/run/hopline/auth/api-keys.json" -}}{{- end -}}
{{- end -}}
{{- else if .Values.allowUnauthenticated -}}
{{- $_ := set $settings "HOPLINE_AUTH_NONE_ON_PUBLIC" true -}}
{{- else -}}
{{- fail "auth: callers need credentials: set auth.issuer, auth.audience and auth.jwksUrl, or auth.apiKeysSecret; or set allowUnauthenticated to true, and every caller in the cluster network may use every task" -}}
{{- end -}}
{{- toJson $settings -}}
{{- end -}}

{{/* Secrets of `auth` by the file that is read from them, as JSON. Argument: root. */}}
{{- define "hopline.authSecrets" -}}
{{- $secrets := dict -}}
{{- with .Values.auth.jwksSecret -}}{{- $_ := set $secrets "jwks.json" . -}}{{- end -}}
{{- with .Values.auth.apiKeysSecret -}}{{- $_ := set $secrets "api-keys.json" . -}}{{- end -}}
{{- toJson $secrets -}}
{{- end -}}

{{/*
One agent. Its work comes from NATS, so its own A2A endpoint listens on loopback unless `expose` asks for it.
Arguments: root, name, entry, folder, values.
*/}}
{{- define "hopline.agent" -}}
{{- /* Kubernetes reads `$$` in the value of a variable as `$`, and expands `$(NAME)`: a prompt may have both. */ -}}
{{- $env := dict "HOPLINE_PORT" 8000 "HOPLINE_AGENT" (toJson .entry | replace "$" "$$") "HOPLINE_AGENTS_DIR" .folder -}}
{{- $authSecrets := dict -}}
{{- $settings := default (dict) .values.settings -}}
{{- if hasKey $settings "HOPLINE_HOST" -}}{{- fail (printf "settings.HOPLINE_HOST (agent-%s): set expose instead" .name) -}}{{- end -}}
{{- /* The rest of the drain is for turns that are requeued. */ -}}
{{- if not (or (hasKey $settings "HOPLINE_DRAIN_TURNS_MS") (hasKey (default (dict) .root.Values.settings) "HOPLINE_DRAIN_TURNS_MS")) -}}
{{- $drainMs := mul 1000 (include "hopline.podsOf" . | fromJson).drainSeconds -}}
{{- $_ := set $env "HOPLINE_DRAIN_TURNS_MS" (max (div $drainMs 2) (sub $drainMs 10000)) -}}
{{- end -}}
{{- $code := "" -}}
{{- $codeValues := include "hopline.codeValues" .values.code | fromJson -}}
{{- if include "hopline.runsCode" .entry -}}
{{- if $codeValues.separate -}}
{{- $_ := set $env "HOPLINE_CODE_SOCKET" (include "hopline.codeSocket" .) -}}
{{- $code = dict "values" $codeValues "named" (ternary (default (list) .entry.env) (list) (ne .entry.adapter "mcp")) -}}
{{- else -}}
{{- /* The operator has chosen it. */ -}}
{{- $_ := set $env "HOPLINE_CODE_USER" "same" -}}
{{- end -}}
{{- end -}}
{{- range concat (default (list) .root.Values.env) (default (list) .values.env) -}}
{{- if has .name (list "HOPLINE_CODE_SOCKET" "HOPLINE_CODE_USER") -}}{{- fail (printf "env: %s (agent-%s): set code.separate instead" .name $.name) -}}{{- end -}}
{{- end -}}
{{- if .values.expose -}}
{{- $env = mergeOverwrite $env (include "hopline.authSettings" .root | fromJson) -}}
{{- $authSecrets = include "hopline.authSecrets" .root | fromJson -}}
{{- else -}}
{{- if hasKey $settings "HOPLINE_PUBLIC_URL" -}}{{- fail (printf "settings.HOPLINE_PUBLIC_URL (agent-%s): nothing reaches the agent there: set expose, too" .name) -}}{{- end -}}
{{- if .values.tlsSecret -}}{{- fail (printf "tlsSecret (agent-%s): nothing reaches the agent: set expose, too" .name) -}}{{- end -}}
{{- $env = mergeOverwrite $env (dict "HOPLINE_HOST" "127.0.0.1" "HOPLINE_PROBE_HOST" (dig "HOPLINE_HOST" "0.0.0.0" (default (dict) .root.Values.settings))) -}}
{{- end -}}
{{ include "hopline.deployment" (dict "root" .root "role" "sub-agent" "component" (printf "agent-%s" .name) "values" .values "env" $env "ports" (dict) "authSecrets" $authSecrets "code" $code) }}
{{- end -}}

{{/* Settings that a value of the chart sets: given twice, one of the two would be lost. Arguments: root, component, settings. */}}
{{- define "hopline.checkSettings" -}}
{{- $values := dict
  "HOPLINE_INSTANCE" "nothing: it is the name of the pod"
  "HOPLINE_PORT" "ingress.service.port"
  "HOPLINE_GRPC_PORT" "ingress.grpc.port"
  "HOPLINE_TLS_CERT_FILE" "tlsSecret of the service"
  "HOPLINE_TLS_KEY_FILE" "tlsSecret of the service"
  "HOPLINE_PROBE_PORT" "nothing: no other container is in the pod"
  "HOPLINE_PROBE_HOST" "nothing: it is HOPLINE_HOST"
  "HOPLINE_AUTH_NONE_ON_PUBLIC" "allowUnauthenticated"
  "HOPLINE_AUTH_ISSUER" "auth.issuer"
  "HOPLINE_AUTH_AUDIENCE" "auth.audience"
  "HOPLINE_AUTH_JWKS_URL" "auth.jwksUrl"
  "HOPLINE_AUTH_JWKS_FILE" "auth.jwksSecret"
  "HOPLINE_AUTH_API_KEYS_FILE" "auth.apiKeysSecret"
  "HOPLINE_PROFILE" "profile"
  "HOPLINE_PUSH" "ingress.push"
  "HOPLINE_SECRETS_KEY" "secretsKey.existingSecret"
  "HOPLINE_SECRETS_KEY_FILE" "secretsKey.existingSecret"
  "HOPLINE_AGENT" "agents.NAME.entry"
  "HOPLINE_AGENTS_DIR" "agents.NAME.folder"
  "HOPLINE_CODE_SOCKET" "agents.NAME.code.separate"
  "HOPLINE_CODE_USER" "agents.NAME.code.separate"
  "HOPLINE_SHARDS" "shards"
  "HOPLINE_DRAIN_MS_MAX" "pods.drainSeconds"
  "NATS_URL" "nats.url"
  "NATS_TLS_CA_FILE" "nats.tlsSecret"
  "NATS_TLS_CERT_FILE" "nats.tlsSecret and nats.clientCertificate"
  "NATS_TLS_KEY_FILE" "nats.tlsSecret and nats.clientCertificate"
  "NATS_CREDS" "nats.credentialsSecret"
  "NATS_TOKEN" "nats.credentialsSecret"
  "NATS_USER" "nats.credentialsSecret"
  "NATS_PASSWORD" "nats.credentialsSecret"
-}}
{{- if .root.Values.nats.enabled -}}{{- $_ := set $values "HOPLINE_REPLICAS" "nats.replicas" -}}{{- end -}}
{{- if hasKey .root.Values "streamGroups" -}}{{- $_ := set $values "HOPLINE_STREAM_GROUPS" "streamGroups" -}}{{- end -}}
{{- if eq .component "relay" -}}{{- $_ := set $values "HOPLINE_LAYOUTS" "layouts[].shards and layouts[].streamGroups" -}}{{- end -}}
{{- if eq .component "ingress" -}}{{- $_ := set $values "HOPLINE_PUBLIC_URL" "ingress.publicUrl" -}}{{- end -}}
{{- if eq .component "console" -}}
{{- $_ := set $values "HOPLINE_PORT" "console.service.port" -}}
{{- $_ := set $values "HOPLINE_PUBLIC_URL" "console.publicUrl" -}}
{{- $_ := set $values "HOPLINE_CONSOLE_INGRESS_URL" "console.ingressUrl" -}}
{{- $_ := set $values "HOPLINE_CONSOLE_INGRESS_CA_FILE" "tls.enabled" -}}
{{- $_ := set $values "HOPLINE_CONSOLE_WRITES" "console.writes" -}}
{{- $_ := set $values "HOPLINE_CONSOLE_HOME" "nothing: no cluster of npm start is in the pod" -}}
{{- end -}}
{{- range $name, $_ := .settings -}}
{{- with get $values $name -}}{{- fail (printf "settings.%s (%s): set %s%s" $name $.component . (ternary "" " instead" (hasPrefix "nothing" .))) -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Bytes of the streams that a volume of NATS can hold, as JSON: three quarters of the store, which are two thirds of the volume. The
rest is for Raft logs and snapshots.
*/}}
{{- define "hopline.streamBytes" -}}
{{- $store := include "hopline.storeBytes" .Values.nats.storage.size | int64 -}}
{{- if lt $store (mul 80 16777216 | int64) -}}{{- fail (printf "nats.storage.size %s: the smallest streams need at least 1536Mi" .Values.nats.storage.size) -}}{{- end -}}
{{- toJson (dict
  "HOPLINE_TASKS_BYTES_MAX" (div (mul $store 50) 100 | toString)
  "HOPLINE_INPUTS_BYTES_MAX" (div (mul $store 12) 100 | toString)
  "HOPLINE_WORK_BYTES_MAX" (div (mul $store 3) 100 | toString)
  "HOPLINE_BUCKET_BYTES_MAX" (div (mul $store 5) 400 | toString)
) -}}
{{- end -}}

{{/*
Names under which a service answers requests without credentials: those of its Service, `hosts`, and those of its settings, with commas.
Addresses, which probes use, are always allowed. Arguments: root, name, hosts, settings (of the role).
*/}}
{{- define "hopline.allowedHosts" -}}
{{- $root := .root -}}
{{- $name := .name -}}
{{- $hosts := list $name -}}
{{- range list "" ".svc" (printf ".svc.%s" $root.Values.clusterDomain) -}}{{- $hosts = append $hosts (printf "%s.%s%s" $name $root.Release.Namespace .) -}}{{- end -}}
{{- $hosts = concat $hosts .hosts -}}
{{- $further := default (dig "HOPLINE_ALLOWED_HOSTS" "" (default (dict) $root.Values.settings)) (dig "HOPLINE_ALLOWED_HOSTS" "" (default (dict) .settings)) | toString -}}
{{- if and $further (ne $further "*") -}}{{- $hosts = append $hosts $further -}}{{- end -}}
{{- ternary "*" (join "," $hosts) (eq $further "*") -}}
{{- end -}}

{{/* The value `layouts` in the form of HOPLINE_LAYOUTS. */}}
{{- define "hopline.layouts" -}}
{{- $layouts := list -}}
{{- range .Values.layouts -}}{{- $layouts = append $layouts (printf "%d/%d" (int .shards) (int .streamGroups)) -}}{{- end -}}
{{- join "," $layouts -}}
{{- end -}}
