{{/*
The values of the pods of a role, an agent or NATS, as JSON: its own `pods` over those of all, as Helm lays one file of values over another.
Arguments: root, values.
*/}}
{{- define "hopline.podsOf" -}}
{{- mergeOverwrite (deepCopy .root.Values.pods) (deepCopy (default (dict) .values.pods)) | toJson -}}
{{- end -}}

{{/* Arguments: root; pods. */}}
{{- define "hopline.securityContext" -}}
{{- $own := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) -}}
{{- mergeOverwrite $own (default (dict) .pods.containerSecurityContext) | toYaml -}}
{{- end -}}

{{- define "hopline.podSecurityContext" -}}
{{- $own := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- with .uid -}}
{{- /* A volume that is right already is not walked through at each start. */ -}}
{{- $own = merge $own (dict "runAsUser" (int64 .) "runAsGroup" (int64 .) "fsGroup" (int64 .) "fsGroupChangePolicy" "OnRootMismatch") -}}
{{- end -}}
{{- mergeOverwrite $own (default (dict) .securityContext) | toYaml -}}
{{- end -}}

{{/* A quantity of Kubernetes as a number: 100m, 1.5Gi, or a number. */}}
{{- define "hopline.quantity" -}}
{{- if kindIs "string" . -}}
{{- $number := regexFind "^[0-9.]+" . -}}
{{- $units := dict "m" 0.001 "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 "Ei" 1152921504606846976 -}}
{{- mulf (float64 $number) (float64 (get $units (trimPrefix $number .))) -}}
{{- else -}}
{{- float64 . -}}
{{- end -}}
{{- end -}}

{{/* The resources of a container as YAML. Kubernetes refuses a pod whose request is above its limit, which only events of its ReplicaSet show. Arguments: at; resources. */}}
{{- define "hopline.resources" -}}
{{- $resources := default (dict) .resources -}}
{{- range $name, $limit := default (dict) $resources.limits -}}
{{- $request := get (default (dict) $resources.requests) $name -}}
{{- if and $limit $request -}}
{{- if gt (include "hopline.quantity" $request | float64) (include "hopline.quantity" $limit | float64) -}}
{{- fail (printf "%s: requests.%s %v is above limits.%s %v, and Kubernetes starts no such pod: lower the request, or raise the limit" $.at $name $request $name $limit) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end -}}

{{/*
The members of a pod's spec that say where it may run and as whom, and those of the value `spec`.
Arguments: root; component; values (of the role or agent); pods (its merged `pods`).
*/}}
{{- define "hopline.podSpec" -}}
{{- $pods := .pods -}}
{{- $spec := dict "automountServiceAccountToken" false "enableServiceLinks" false "securityContext" (include "hopline.podSecurityContext" $pods | fromYaml) -}}
{{- $lists := dict "serviceAccountName" (include "hopline.serviceAccount" .) "imagePullSecrets" .root.Values.image.pullSecrets -}}
{{- range list "priorityClassName" "nodeSelector" "tolerations" "affinity" -}}{{- $_ := set $lists . (get $pods .) -}}{{- end -}}
{{- range $name, $value := $lists -}}{{- if $value -}}{{- $_ := set $spec $name $value -}}{{- end -}}{{- end -}}
{{- $values := dict
  "containers" "pods.sidecars"
  "initContainers" "pods.initContainers"
  "volumes" "volumes"
  "securityContext" "pods.securityContext"
  "serviceAccountName" "pods.serviceAccount.name"
  "imagePullSecrets" "image.pullSecrets"
  "topologySpreadConstraints" "pods.topologySpreadConstraints"
  "terminationGracePeriodSeconds" "pods.drainSeconds"
  "shareProcessNamespace" "tls.enabled"
  "restartPolicy" "nothing: it is that of the workload"
  "priorityClassName" "pods.priorityClassName"
  "nodeSelector" "pods.nodeSelector"
  "tolerations" "pods.tolerations"
  "affinity" "pods.affinity"
-}}
{{- if eq .component "nats" -}}{{- $_ := set $values "terminationGracePeriodSeconds" "nothing: it covers the lame duck mode of nats-server" -}}{{- end -}}
{{- range $name, $_ := default (dict) $pods.spec -}}
{{- with get $values $name -}}{{- fail (printf "pods.spec.%s (%s): set %s%s" $name $.component . (ternary "" " instead" (hasPrefix "nothing" .))) -}}{{- end -}}
{{- end -}}
{{- mergeOverwrite $spec (default (dict) $pods.spec) | toYaml -}}
{{- end -}}

{{/*
Name of the service account of a pod; empty: that of the namespace. One that a role or an agent sets by itself has its name, and the one of
all pods that of the release. Arguments: root, component, values, pods.
*/}}
{{- define "hopline.serviceAccount" -}}
{{- $account := default (dict) .pods.serviceAccount -}}
{{- $fullname := include "hopline.fullname" .root -}}
{{- $own := dig "pods" "serviceAccount" (dict) (default (dict) .values) -}}
{{- default (ternary (ternary (printf "%s-%s" $fullname .component) $fullname (not (empty $own))) "" (default false $account.create)) $account.name -}}
{{- end -}}

{{/* Arguments: root; component; name; pods. */}}
{{- define "hopline.serviceAccountObject" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name | quote }}
  labels: {{- include "hopline.labels" . | nindent 4 }}
  {{- with .pods.serviceAccount.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end -}}

{{/* Further containers with the security context of the chart's own, unless they have another, as YAML. Arguments: root; pods; containers. */}}
{{- define "hopline.furtherContainers" -}}
{{- $context := include "hopline.securityContext" . | fromYaml -}}
{{- $all := list -}}
{{- range .containers -}}{{- $all = append $all (mergeOverwrite (dict "securityContext" (deepCopy $context)) (deepCopy .)) -}}{{- end -}}
{{- with $all -}}{{- toYaml . -}}{{- end -}}
{{- end -}}

{{/*
Constraints of spread, as YAML. By default soft, over hosts and zones. Arguments: labels (of the selector, as YAML); constraints (the value; null: the default);
byTemplate (pods of a Deployment).
*/}}
{{- define "hopline.spread" -}}
{{- $selector := dict "labelSelector" (dict "matchLabels" (.labels | fromYaml)) -}}
{{- $constraints := .constraints -}}
{{- if kindIs "invalid" $constraints -}}
{{- $constraints = list -}}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" -}}
{{- $one := dict "maxSkew" 1 "topologyKey" . "whenUnsatisfiable" "ScheduleAnyway" -}}
{{- /* An update spreads its own pods: those that it replaces do not count. */ -}}
{{- if $.byTemplate -}}{{- $_ := set $one "matchLabelKeys" (list "pod-template-hash") -}}{{- end -}}
{{- $constraints = append $constraints $one -}}
{{- end -}}
{{- end -}}
{{- $all := list -}}
{{- range $constraints -}}{{- $all = append $all (mergeOverwrite (deepCopy $selector) (deepCopy .)) -}}{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{/*
Annotations of a pod, as YAML. Its own emptyDirs hold only what a restart may lose, so the cluster autoscaler may remove their node.
Arguments: pods; own (of the chart: it wins); emptyDirs (names).
*/}}
{{- define "hopline.podAnnotations" -}}
{{- $byDefault := dict "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes" (join "," .emptyDirs) -}}
{{- merge (dict) (default (dict) .own) (default (dict) .pods.annotations) $byDefault | toYaml -}}
{{- end -}}

{{/* The one writable folder of a container. Argument: a map with the members of `pods`. */}}
{{- define "hopline.tmpVolume" -}}
{ name: tmp, emptyDir: { sizeLimit: {{ .tmpSize }} } }
{{- end -}}

{{/*
A Secret's generated members, as JSON: those of the cluster, and new ones for the others. Stored in the values, so that every template of this
rendering sees the same ones. Arguments: root; name (of the Secret); members (name to a new value).
*/}}
{{- define "hopline.generated" -}}
{{- $all := default (dict) .root.Values.generated -}}
{{- if not (hasKey $all .name) -}}
{{- $secret := lookup "v1" "Secret" .root.Release.Namespace .name -}}
{{- $data := dict -}}
{{- range $member, $new := .members -}}{{- $_ := set $data $member (dig "data" $member $new (default (dict) $secret)) -}}{{- end -}}
{{- $_ := set .root.Values "generated" (set $all .name $data) -}}
{{- end -}}
{{- get .root.Values.generated .name | toJson -}}
{{- end -}}
