{{- define "hopline.natsUrl" -}}
{{- if .Values.nats.url -}}
{{- .Values.nats.url -}}
{{- else -}}
{{- printf "nats://%s-nats:4222" .Values.hopline -}}
{{- end -}}
{{- end -}}

{{/* Arguments: root; component; secret. */}}
{{- define "hopline.natsCredentials" -}}
{{- $values := .root.Values -}}
{{- if $values.nats.credentialsSecret -}}
{{- range $variable, $key := dict "NATS_CREDS" "nats.creds" "NATS_TOKEN" "token" "NATS_USER" "user" "NATS_PASSWORD" "password" }}
- name: {{ $variable }}
  valueFrom: { secretKeyRef: { name: {{ $values.nats.credentialsSecret | quote }}, key: {{ $key }}, optional: true } }
{{- end }}
{{- else if hasPrefix (printf "nats://%s-nats:" $values.hopline) $values.nats.url -}}
- name: NATS_USER
  value: {{ ternary "agent" (printf "%s.agent" $values.prefix) (empty $values.prefix) | quote }}
- name: NATS_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ default (printf "%s-nats" $values.hopline) $values.nats.existingSecret | quote }}, key: agent } }
{{- end }}
{{- if $values.nats.tlsSecret }}
- name: NATS_TLS_CA_FILE
  value: /var/run/hopline/nats-tls/ca.crt
{{- if $values.nats.clientCertificate }}
- name: NATS_TLS_CERT_FILE
  value: /var/run/hopline/nats-tls/tls.crt
- name: NATS_TLS_KEY_FILE
  value: /var/run/hopline/nats-tls/tls.key
{{- end }}
{{- end }}
{{- end -}}
