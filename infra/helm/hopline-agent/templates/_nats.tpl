{{- define "hopline.natsUrl" -}}
{{- if .Values.nats.url -}}
{{- .Values.nats.url -}}
{{- else -}}
{{- printf "%s://%s-nats:4222" (ternary "tls" "nats" .Values.tls.enabled) .Values.hopline -}}
{{- end -}}
{{- end -}}

{{/* Arguments: root; component; secret. */}}
{{- define "hopline.natsCredentials" -}}
{{- $values := .root.Values -}}
{{- $address := regexReplaceAll "^[a-z]+:" $values.nats.url "" -}}
{{- if $values.nats.credentialsSecret -}}
{{- range $variable, $key := dict "NATS_CREDS" "nats.creds" "NATS_TOKEN" "token" "NATS_USER" "user" "NATS_PASSWORD" "password" }}
- name: {{ $variable }}
  valueFrom: { secretKeyRef: { name: {{ $values.nats.credentialsSecret | quote }}, key: {{ $key }}, optional: true } }
{{- end }}
{{- else if hasPrefix (printf "//%s-nats:" $values.hopline) $address -}}
{{- $key := ternary .component "agent" $values.nats.ownUser }}
{{- $user := ternary (printf "agent.%s" (trimPrefix "agent-" .component)) "agent" $values.nats.ownUser }}
- name: NATS_USER
  value: {{ ternary $user (printf "%s.%s" $values.prefix $user) (empty $values.prefix) | quote }}
- name: NATS_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ default (printf "%s-nats" $values.hopline) $values.nats.existingSecret | quote }}, key: {{ $key }} } }
{{- else if hasPrefix (printf "//%s-nats." $values.hopline) $address -}}
{{- fail (printf "nats.credentialsSecret is required with nats.url: the Secret %s-nats is in another namespace; see docs/guides/kubernetes.md, An agent in another namespace" $values.hopline) -}}
{{- else if $values.nats.ownUser -}}
{{- fail "nats.ownUser: nats.url names another NATS, so set nats.credentialsSecret to the Secret with the login of the agent" -}}
{{- end }}
{{- if include "hopline.natsTlsSecret" .root }}
- name: NATS_TLS_CA_FILE
  value: /var/run/hopline/nats-tls/ca.crt
{{- if include "hopline.natsClientCertificate" .root }}
- name: NATS_TLS_CERT_FILE
  value: /var/run/hopline/nats-tls/tls.crt
- name: NATS_TLS_KEY_FILE
  value: /var/run/hopline/nats-tls/tls.key
{{- end }}
{{- end }}
{{- end -}}

{{/* Secret whose ca.crt, and client certificate if hopline.natsClientCertificate is set, the agent uses for NATS; empty: plain text. */}}
{{- define "hopline.natsTlsSecret" -}}
{{- if .Values.nats.tlsSecret -}}
{{- .Values.nats.tlsSecret -}}
{{- else if .Values.tls.enabled -}}
{{- default (printf "%s-clients-tls" .Values.hopline) .Values.tls.clientsSecret -}}
{{- end -}}
{{- end -}}

{{- define "hopline.natsClientCertificate" -}}
{{- if or (and .Values.tls.enabled (not .Values.nats.tlsSecret)) .Values.nats.clientCertificate -}}true{{- end -}}
{{- end -}}
