{{/* Secret with the certificate of the chart's own NATS. */}}
{{- define "hopline.natsServerTlsSecret" -}}
{{- default (printf "%s-nats-tls" (include "hopline.fullname" .)) .Values.tls.natsSecret -}}
{{- end -}}

{{/* Secret with the certificate of ingress; empty: plain HTTP. */}}
{{- define "hopline.ingressTlsSecret" -}}
{{- $issued := ternary (printf "%s-ingress-tls" (include "hopline.fullname" .)) "" .Values.tls.enabled -}}
{{- default $issued .Values.ingress.tlsSecret -}}
{{- end -}}

{{/* The names of a Service in its cluster, as JSON. Arguments: root, name. */}}
{{- define "hopline.serviceNames" -}}
{{- $names := list .name -}}
{{- range list "" ".svc" (printf ".svc.%s" .root.Values.clusterDomain) -}}{{- $names = append $names (printf "%s.%s%s" $.name $.root.Release.Namespace .) -}}{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/*
A Certificate of cert-manager, and the Secret of that name. A client certificate cannot serve, so the holder of one, such as an agent,
cannot act as NATS or ingress. Arguments: root, secret, component, names (dnsNames; empty: only a client), usages.
*/}}
{{- define "hopline.certificate" -}}
{{- $tls := .root.Values.tls -}}
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ .secret | quote }}
  labels: {{- include "hopline.labels" . | nindent 4 }}
spec:
  secretName: {{ .secret | quote }}
  commonName: {{ .secret | quote }}
  {{- with .names }}
  dnsNames: {{- toYaml . | nindent 4 }}
  # For a port-forward.
  ipAddresses: ["127.0.0.1"]
  {{- end }}
  usages: {{- toYaml (concat (list "digital signature" "key encipherment") .usages) | nindent 4 }}
  duration: {{ $tls.duration }}
  renewBefore: {{ $tls.renewBefore }}
  privateKey: { algorithm: ECDSA, size: 256, rotationPolicy: Always }
  issuerRef:
    name: {{ default (printf "%s-authority" (include "hopline.fullname" .root)) $tls.issuerRef.name | quote }}
    kind: {{ ternary $tls.issuerRef.kind "Issuer" (not (empty $tls.issuerRef.name)) }}
    group: {{ ternary $tls.issuerRef.group "cert-manager.io" (not (empty $tls.issuerRef.name)) }}
{{- end -}}
