{{/*
The NATS users of this release as JSON: key in the Secret, name and permissions of each. files/nats-permissions.json is generated from
packages/log-jetstream/src/users.ts. Every subject that names a stream of the first group is repeated for the streams of the others, in all layouts.
*/}}
{{- define "hopline.natsUsers" -}}
{{- $prefix := include "hopline.prefix" . -}}
{{- $text := .Files.Get "files/nats-permissions.json" -}}
{{- if $prefix -}}
{{- $text = $text | replace "HOPLINE-PREFIX" $prefix -}}
{{- else -}}
{{- $text = $text | replace "HOPLINE-PREFIX." "" | replace "HOPLINE-PREFIX_" "" -}}
{{- end -}}
{{- $all := fromJson $text -}}
{{- range $key := list "agent" "anyAgent" -}}
{{- $agent := get $all $key -}}
{{- if $.Values.nats.earlierAgents -}}{{- $_ := set $agent "publish" (concat $agent.publish $agent.earlier) -}}{{- end -}}
{{- $_ := unset $agent "earlier" -}}
{{- end -}}
{{- $users := omit $all "agent" "anyAgent" -}}
{{- if .Values.nats.userPerAgent -}}
{{- $names := default (list) .Values.nats.agentUsers -}}
{{- range include "hopline.agents" . | fromJsonArray -}}{{- $names = append $names .name -}}{{- end -}}
{{- range uniq $names -}}
{{- $_ := set $users (printf "agent-%s" .) ($all.agent | toRawJson | replace "hopline-agent-name" . | fromJson) -}}
{{- end -}}
{{- end -}}
{{- if or .Values.nats.sharedAgentUser (not .Values.nats.userPerAgent) -}}
{{- $_ := set $users "agent" $all.anyAgent -}}
{{- end -}}
{{- $groups := int .Values.streamGroups -}}
{{- range .Values.layouts -}}{{- $groups = add $groups (int .streamGroups) | int -}}{{- end -}}
{{- if gt $groups 1 -}}
{{- range $key, $user := $users -}}
{{- if $user.publish -}}
{{- $publish := list -}}
{{- range $subject := $user.publish -}}
{{- $publish = append $publish $subject -}}
{{- if regexMatch "A2A_(RAW|LOG)" $subject -}}
{{- range $group := untilStep 1 $groups 1 -}}
{{- $publish = append $publish (regexReplaceAll "A2A_(RAW|LOG)" $subject (printf "A2A_${1}_%d" $group)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $_ := set $user "publish" $publish -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toRawJson $users -}}
{{- end -}}

{{/* Secret with the passwords of the users, and of the nodes among themselves. */}}
{{- define "hopline.natsSecretName" -}}
{{- default (printf "%s-nats" (include "hopline.fullname" .)) .Values.nats.existingSecret -}}
{{- end -}}

{{/*
The passwords that the chart generates at the first install and upgrades keep, as JSON. `route` is that of the nodes among themselves. Each begins with a
letter, because nats-server reads a number as one. Argument: root.
*/}}
{{- define "hopline.natsPasswords" -}}
{{- $new := dict -}}
{{- range append (keys (include "hopline.natsUsers" . | fromJson)) "route" -}}{{- $_ := set $new . (printf "p%s" (randAlphaNum 40) | b64enc) -}}{{- end -}}
{{- include "hopline.generated" (dict "root" . "name" (include "hopline.natsSecretName" .) "members" $new) -}}
{{- end -}}

{{/* Key of a service's user. Arguments: root, component. */}}
{{- define "hopline.natsUserKey" -}}
{{- ternary "agent" .component (and (hasPrefix "agent-" .component) (not .root.Values.nats.userPerAgent)) -}}
{{- end -}}

{{/* Variable of nats-server with the password of a user. Argument: its key. */}}
{{- define "hopline.natsPasswordVariable" -}}
NATS_{{ . | upper | replace "-" "_" }}_PASSWORD
{{- end -}}

{{/* Whether the log of this release was created with accounts for agents: `true`, `false`, or empty if it has no log, or if the cluster cannot be asked. */}}
{{- define "hopline.agentAccountsOfLog" -}}
{{- $name := printf "%s-nats" (include "hopline.fullname" .) -}}
{{- $statefulSet := lookup "apps/v1" "StatefulSet" .Release.Namespace $name -}}
{{- if gt (include "hopline.natsNodes" (dict "root" . "name" $name "statefulSet" $statefulSet) | int) 0 -}}
{{- $configMap := lookup "v1" "ConfigMap" .Release.Namespace $name -}}
{{- if $configMap -}}
{{- contains "\naccounts {" (get $configMap.data "nats.conf") -}}
{{- else if not .Values.nats.existingSecret -}}
{{- with lookup "v1" "Secret" .Release.Namespace (include "hopline.natsSecretName" .) -}}
{{- default "false" (get (default dict .metadata.annotations) "hopline.agent-accounts") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether agents have accounts of their own: `true` or `false`. A log keeps its form. */}}
{{- define "hopline.agentAccounts" -}}
{{- if kindIs "bool" .Values.nats.agentAccounts -}}
{{- .Values.nats.agentAccounts -}}
{{- else -}}
{{- default (not .Values.nats.earlierAgents | toString) (include "hopline.agentAccountsOfLog" .) -}}
{{- end -}}
{{- end -}}

{{/* The users of nats.conf: agents in accounts of their own, or all in one account. */}}
{{- define "hopline.natsAuthorization" -}}
{{- $users := fromJson (include "hopline.natsUsers" .) -}}
{{- if eq (include "hopline.agentAccounts" .) "true" -}}
{{- /* The processes of one agent must be in one account, or they could not ask each other. Without reads no agent starts. */ -}}
{{- with $users.agent -}}
{{- $denied := default (list) .publishDenied -}}
{{- range $key, $user := $users -}}{{- if hasPrefix "agent-" $key -}}{{- $denied = concat $denied $user.toLog -}}{{- end -}}{{- end -}}
{{- $_ := set . "publishDenied" $denied -}}
{{- end -}}
{{- $log := $users.relay.account -}}
accounts {
  {{ $log | quote }}: {
    jetstream: enabled
    users: [
      {{- range $key, $user := $users }}
      {{- if eq $user.account $log }}{{ include "hopline.natsUser" (dict "key" $key "user" $user) | nindent 6 }}{{ end }}
      {{- end }}
    ]
    exports: [
      {{- range $key, $user := $users }}
      {{- range $user.services }}
      { service: {{ .service | quote }}, accounts: [{{ $user.account | quote }}], response: {{ .response }}, threshold: {{ .threshold | quote }} }
      {{- end }}
      {{- range $user.fromLog }}
      { stream: {{ . | quote }}, accounts: [{{ $user.account | quote }}] }
      {{- end }}
      {{- end }}
    ]
    imports: [
      {{- range $key, $user := $users }}
      {{- range $user.toLog }}
      { stream: { account: {{ $user.account | quote }}, subject: {{ . | quote }} } }
      {{- end }}
      {{- end }}
    ]
  }
  {{- range $key, $user := $users }}
  {{- if ne $user.account $log }}
  {{ $user.account | quote }}: {
    limits {{ $user.limits }}
    users: [
      {{- include "hopline.natsUser" (dict "key" $key "user" $user) | nindent 6 }}
    ]
    exports: [
      {{- range $user.toLog }}
      { stream: {{ . | quote }}, accounts: [{{ $log | quote }}] }
      {{- end }}
    ]
    imports: [
      {{- range $user.services }}
      { service: { account: {{ $log | quote }}, subject: {{ .service | quote }} } }
      {{- end }}
      {{- range $user.fromLog }}
      { stream: { account: {{ $log | quote }}, subject: {{ . | quote }} } }
      {{- end }}
    ]
  }
  {{- end }}
  {{- end }}
}
{{- else -}}
authorization {
  users: [
    {{- range $key, $user := $users }}
    {{- include "hopline.natsUser" (dict "key" $key "user" $user) | nindent 4 }}
    {{- end }}
  ]
}
{{- end -}}
{{- end -}}

{{/* A user of nats.conf. Arguments: key, user. */}}
{{- define "hopline.natsUser" -}}
{
  user: {{ .user.user | quote }}, password: ${{ include "hopline.natsPasswordVariable" .key }}
  {{- if .user.publish }}
  permissions: {
    publish: {
      allow: [{{ range .user.publish }}
        {{ . | quote }}{{ end }}
      ]
      {{- with .user.publishDenied }}
      deny: [{{ range . }}
        {{ . | quote }}{{ end }}
      ]
      {{- end }}
    }
    subscribe: {
      allow: [{{ range .user.subscribe }}
        {{ . | quote }}{{ end }}
      ]
    }
  }
  {{- end }}
}
{{- end -}}
