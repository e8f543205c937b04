{{/*
The agents as a JSON list, each with its `name`: those of the map or list `agents`, or the two of the demo while it is empty. A member that a later
file of values sets to null is left out. Argument: root.
*/}}
{{- define "hopline.agents" -}}
{{- $agents := list -}}
{{- if kindIs "slice" .Values.agents -}}
{{- $agents = .Values.agents -}}
{{- $names := dict -}}
{{- range $agents -}}
{{- if hasKey $names .name -}}{{- fail (printf "agents: two have the name %q" .name) -}}{{- end -}}
{{- $_ := set $names .name true -}}
{{- end -}}
{{- else -}}
{{- range $name, $agent := .Values.agents -}}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$" $name) -}}{{- fail (printf "agents: %q is not a name of an agent: use up to 40 lower-case letters, digits and hyphens, the first and the last no hyphen" $name) -}}{{- end -}}
{{- if $agent -}}
{{- if and $agent.name (ne $agent.name $name) -}}{{- fail (printf "agents.%s.name: %q is another name: leave it out" $name $agent.name) -}}{{- end -}}
{{- $agents = append $agents (mergeOverwrite (deepCopy $agent) (dict "name" $name)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.demoAgents (not .Values.agents) -}}{{- $agents = .Files.Get "files/demo-agents.yaml" | fromYamlArray -}}{{- end -}}
{{- toJson $agents -}}
{{- end -}}

{{/*
The setting of the default agent as JSON: the first agent whose entry has `default`. Without it, another agent takes its place for a supervisor that has
not seen it. Argument: root.
*/}}
{{- define "hopline.defaultAgent" -}}
{{- $env := dict -}}
{{- range include "hopline.agents" . | fromJsonArray -}}
{{- if and .entry .entry.default (not $env) -}}{{- $_ := set $env "HOPLINE_DEFAULT_AGENT" .name -}}{{- end -}}
{{- end -}}
{{- if hasKey (default (dict) .Values.settings) "HOPLINE_DEFAULT_AGENT" -}}{{- $env = dict -}}{{- end -}}
{{- toJson $env -}}
{{- end -}}
