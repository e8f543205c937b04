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

{{/* The block `authorization` of nats.conf. */}}
{{- define "hopline.natsAuthorization" -}}
authorization {
  users: [
    {{- range $key, $user := fromJson (include "hopline.natsUsers" .) }}
    {
      user: {{ $user.user | quote }}, password: ${{ include "hopline.natsPasswordVariable" $key }}
      {{- if $user.publish }}
      permissions: {
        publish: {
          allow: [{{ range $user.publish }}
            {{ . | quote }}{{ end }}
          ]
          {{- with $user.publishDenied }}
          deny: [{{ range . }}
            {{ . | quote }}{{ end }}
          ]
          {{- end }}
        }
        subscribe: {
          allow: [{{ range $user.subscribe }}
            {{ . | quote }}{{ end }}
          ]
        }
      }
      {{- end }}
    }
    {{- end }}
  ]
}
{{- end -}}
