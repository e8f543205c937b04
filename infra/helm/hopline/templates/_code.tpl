{{/*
Whether an entry of an agents file runs code, which the sub-agent then reaches by HOPLINE_CODE_SOCKET: "true" or empty. The MCP servers by
command of an agent of the adapter `model` are code, too. Argument: the entry.
*/}}
{{- define "hopline.runsCode" -}}
{{- if or (eq .adapter "module") (and (eq .adapter "langgraph") (not .url)) (and (eq .adapter "mcp") .command) -}}true
{{- else if eq .adapter "model" -}}
{{- range default (list) .mcp -}}{{- if .command -}}true{{- break -}}{{- end -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/* The value `code` of an agent with its defaults, as JSON: entries of `agents` have none of values.yaml. Argument: the value. */}}
{{- define "hopline.codeValues" -}}
{{- mergeOverwrite (dict "separate" true "uid" 65533 "resources" dict "heapPercent" nil) (default (dict) .) | toJson -}}
{{- end -}}

{{/* The folder with the socket, the only one that both containers have. */}}
{{- define "hopline.codeFolder" -}}/var/run/hopline/code{{- end -}}
{{- define "hopline.codeSocket" -}}{{ include "hopline.codeFolder" . }}/socket{{- end -}}

{{/*
Whether a variable is for the code, for its sub-agent, or for both: "code", "sub-agent" or "both". The variables that any program may need are those
of packages/agent-code/src/code-environment.ts. Those of OpenTelemetry and Hopline configure the sub-agent even if the entry names them, too.
Arguments: name; named (the variables that the entry names).
*/}}
{{- define "hopline.readerOf" -}}
{{- $system := list "PATH" "TMPDIR" "HOME" "LOGNAME" "SHELL" "TERM" "USER" "LANG" "LANGUAGE" "TZ" "NODE_ENV" "NODE_EXTRA_CA_CERTS" "NODE_USE_SYSTEM_CA" "NODE_COMPILE_CACHE" "SSL_CERT_FILE" "SSL_CERT_DIR" -}}
{{- if or (has .name $system) (hasPrefix "LC_" .name) -}}both
{{- else if not (has .name .named) -}}sub-agent
{{- else if or (hasPrefix "OTEL_" .name) (hasPrefix "HOPLINE_" .name) -}}both
{{- else -}}code
{{- end -}}
{{- end -}}

{{/*
The container in which the code of an agent runs, without the login of its sub-agent. It is a sidecar of Kubernetes: it starts before the sub-agent, and
ends after the sub-agent has drained its turns.
Arguments: root; pods (of the agent, merged); values (of the agent); code (its value `code`); named (the variables that the entry names); settings, env (of the code).
*/}}
{{- define "hopline.codeContainer" -}}
{{- $root := .root -}}
{{- $pods := .pods -}}
{{- $settings := .settings -}}
{{- $given := dict -}}
{{- range .env -}}{{- $_ := set $given .name true -}}{{- end -}}
- name: code
  image: {{ include "hopline.image" (dict "image" $root.Values.image "own" .values.image "tag" $root.Chart.AppVersion) }}
  imagePullPolicy: {{ $root.Values.image.pullPolicy }}
  restartPolicy: Always
  args: {{ concat (list "code" (include "hopline.codeSocket" .)) .named | toJson }}
  {{- /* Without `pods.uid` the platform chooses the users. */}}
  {{- $user := ternary (dict "runAsUser" (int64 (default 0 .code.uid)) "runAsGroup" (int64 (default 0 .code.uid))) dict (not (or (empty $pods.uid) (empty .code.uid))) }}
  securityContext: {{- mergeOverwrite (include "hopline.securityContext" (dict "pods" $pods) | fromYaml) $user | toYaml | nindent 4 }}
  env:
    {{- if not (hasKey $given "NODE_OPTIONS") }}
    - name: NODE_OPTIONS
      value: {{ printf "--max-old-space-size-percentage=%v %v" (default $pods.heapPercent .code.heapPercent) (default "" $settings.NODE_OPTIONS) | trim | quote }}
    {{- end }}
    {{- range $key, $value := omit $settings "NODE_OPTIONS" }}
    {{- if not (hasKey $given $key) }}
    - name: {{ $key }}
      value: {{ ternary $value (toJson $value) (kindIs "string" $value) | quote }}
    {{- end }}
    {{- end }}
    {{- range .env }}
    - {{- toYaml . | nindent 6 }}
    {{- end }}
  resources: {{- include "hopline.resources" (dict "at" "code.resources" "resources" (coalesce .code.resources .values.resources $pods.resources)) | nindent 4 }}
  volumeMounts:
    - { name: code-tmp, mountPath: /tmp }
    - { name: code, mountPath: {{ include "hopline.codeFolder" . }} }
    {{- with .values.volumeMounts }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end -}}

{{/* Volumes of that container. Argument: a map with the members of `pods`. */}}
{{- define "hopline.codeVolumes" -}}
- { name: code-tmp, emptyDir: { sizeLimit: {{ .tmpSize }} } }
# In memory, where code that fills it gets an error. On a disk Kubernetes would evict the pod.
- { name: code, emptyDir: { medium: Memory, sizeLimit: 1Mi } }
{{- end -}}
