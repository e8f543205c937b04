{{- /*
What both charts have under one name: templates of charts in one parent chart share their names, and the last one of a name wins. An agent's chart has the
value `hopline`.
*/ -}}
{{/* Addresses of NATS. Argument: root. */}}
{{- define "hopline.natsUrl" -}}
{{- if hasKey .Values "hopline" -}}
{{- if .Values.nats.url -}}
{{- .Values.nats.url -}}
{{- else -}}
{{- printf "%s://%s-nats:4222" (ternary "tls" "nats" .Values.tls.enabled) .Values.hopline -}}
{{- end -}}
{{- else -}}
{{- if .Values.nats.enabled -}}
{{- $name := printf "%s-nats" (include "hopline.fullname" .) -}}
{{- $scheme := ternary "tls" "nats" .Values.tls.enabled -}}
{{- $urls := list -}}
{{- range $i := until (int .Values.nats.replicas) -}}
{{- $urls = append $urls (printf "%s://%s-%d.%s:4222" $scheme $name $i $name) -}}
{{- end -}}
{{- join "," $urls -}}
{{- else -}}
{{- required "nats.url is required while nats.enabled is false" .Values.nats.url -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Arguments: root; component; secret: with the credentials of another NATS. */}}
{{- define "hopline.natsCredentials" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
{{- $nats := $values.nats -}}
{{- $secret := default $nats.credentialsSecret .secret -}}
{{- if $nats.enabled -}}
{{- $key := include "hopline.natsUserKey" . -}}
- name: NATS_USER
  value: {{ (get (fromJson (include "hopline.natsUsers" $root)) $key).user | quote }}
- name: NATS_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ include "hopline.natsSecretName" $root | quote }}, key: {{ $key }} } }
{{- else if $secret -}}
{{- range $variable, $key := dict "NATS_CREDS" "nats.creds" "NATS_TOKEN" "token" "NATS_USER" "user" "NATS_PASSWORD" "password" }}
- name: {{ $variable }}
  valueFrom: { secretKeyRef: { name: {{ $secret | quote }}, key: {{ $key }}, optional: true } }
{{- end }}
{{- else if hasKey $values "hopline" -}}
{{- $address := regexReplaceAll "^[a-z]+:" $nats.url "" -}}
{{- if hasPrefix (printf "//%s-nats:" $values.hopline) $address -}}
{{- $key := ternary .component "agent" $nats.ownUser }}
{{- $user := ternary (printf "agent.%s" (trimPrefix "agent-" .component)) "agent" $nats.ownUser }}
- name: NATS_USER
  value: {{ ternary $user (printf "%s.%s" $values.prefix $user) (empty $values.prefix) | quote }}
- name: NATS_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ default (printf "%s-nats" $values.hopline) $nats.existingSecret | quote }}, key: {{ $key }} } }
{{- else if hasPrefix (printf "//%s-nats." $values.hopline) $address -}}
{{- fail (printf "nats.credentialsSecret is required with nats.url: the Secret %s-nats is in another namespace; see docs/guides/kubernetes.md, An agent in another namespace" $values.hopline) -}}
{{- else if $nats.ownUser -}}
{{- fail "nats.ownUser: nats.url names another NATS, so set nats.credentialsSecret to the Secret with the login of the agent" -}}
{{- end }}
{{- end }}
{{- if include "hopline.natsTlsSecret" $root }}
- name: NATS_TLS_CA_FILE
  value: /var/run/hopline/nats-tls/ca.crt
{{- if include "hopline.natsClientCertificate" $root }}
- name: NATS_TLS_CERT_FILE
  value: /var/run/hopline/nats-tls/tls.crt
- name: NATS_TLS_KEY_FILE
  value: /var/run/hopline/nats-tls/tls.key
{{- end }}
{{- end }}
{{- end -}}

{{/* Secret whose ca.crt, and client certificate if hopline.natsClientCertificate is set, a service uses for NATS; empty: plain text. */}}
{{- define "hopline.natsTlsSecret" -}}
{{- if hasKey .Values "hopline" -}}
{{- if .Values.nats.tlsSecret -}}
{{- .Values.nats.tlsSecret -}}
{{- else if .Values.tls.enabled -}}
{{- default (printf "%s-clients-tls" .Values.hopline) .Values.tls.clientsSecret -}}
{{- end -}}
{{- else -}}
{{- if not .Values.nats.enabled -}}
{{- .Values.nats.tlsSecret -}}
{{- else if .Values.tls.enabled -}}
{{- default (printf "%s-clients-tls" (include "hopline.fullname" .)) .Values.tls.clientsSecret -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether the service has a client certificate for NATS: "true" or empty. */}}
{{- define "hopline.natsClientCertificate" -}}
{{- if hasKey .Values "hopline" -}}
{{- if or (and .Values.tls.enabled (not .Values.nats.tlsSecret)) .Values.nats.clientCertificate -}}true{{- end -}}
{{- else -}}
{{- if or (and .Values.nats.enabled .Values.tls.enabled) .Values.nats.clientCertificate -}}true{{- end -}}
{{- end -}}
{{- end -}}
