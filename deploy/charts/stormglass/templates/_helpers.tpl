{{/* The name of the release's objects, at most 40 characters: a CronJob name may have 52. */}}
{{- define "stormglass.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains "stormglass" $name) -}}{{- $name = printf "stormglass-%s" $name -}}{{- end -}}
{{- $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of the cluster-scoped objects. */}}
{{- define "stormglass.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "stormglass.name" .) -}}
{{- end -}}

{{- define "stormglass.account" -}}
{{- .Values.serviceAccount.name | default (include "stormglass.name" .) -}}
{{- end -}}

{{- define "stormglass.labels" -}}
app.kubernetes.io/name: stormglass
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "stormglass.image" -}}
{{- required "image: name an image that has loadgen as its entry point, for example registry.example.com/stormglass/loadgen:v1" .Values.image -}}
{{- end -}}

{{/* Refuses values that contradict each other. */}}
{{- define "stormglass.check" -}}
{{- with .Values.scenario -}}
{{- if and .name .text -}}{{- fail "scenario.name and scenario.text cannot be used together (remove one of them)" -}}{{- end -}}
{{- if not (or .name .text) -}}{{- fail "scenario is missing (set scenario.name to a built-in scenario, or set scenario.text)" -}}{{- end -}}
{{- end -}}
{{- if and .Values.results.claim .Values.results.size -}}{{- fail "results.claim and results.size cannot be used together (remove one of them)" -}}{{- end -}}
{{- if and .Values.remoteWrite.secret (not .Values.remoteWrite.url) -}}{{- fail "remoteWrite.secret needs remoteWrite.url" -}}{{- end -}}
{{- end -}}

{{/* The RBAC rules of the run: from the values, of the built-in scenario, or of all built-in scenarios. */}}
{{- define "stormglass.rules" -}}
{{- $table := .Files.Get "files/rules.yaml" | fromYaml -}}
{{- if .Values.rbac.rules -}}
{{- toYaml .Values.rbac.rules -}}
{{- else if .Values.scenario.text -}}
{{- toYaml $table.all -}}
{{- else if hasKey $table.scenarios .Values.scenario.name -}}
{{- toYaml (index $table.scenarios .Values.scenario.name) -}}
{{- else -}}
{{- fail (printf "scenario.name %q is not a built-in scenario for an existing cluster (choose one of %s)" .Values.scenario.name (keys $table.scenarios | sortAlpha | join ", ")) -}}
{{- end -}}
{{- end -}}

{{/* A role and its binding for each list of rules: dict "root", "name", "account", "rules" (cluster, namespaces). */}}
{{- define "stormglass.grant" -}}
{{- $root := .root -}}
{{- $name := .name -}}
{{- $account := .account -}}
{{- range $namespace, $rules := merge (dict "" (.rules.cluster | default list)) (.rules.namespaces | default dict) }}
{{- if $rules }}
{{- $kind := ternary "ClusterRole" "Role" (eq $namespace "") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ $name }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "stormglass.labels" $root | nindent 4 }}
rules:
  {{- toYaml $rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ $name }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "stormglass.labels" $root | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: {{ $kind }}, name: {{ $name }}}
subjects:
  - {kind: ServiceAccount, name: {{ $account }}, namespace: {{ $root.Release.Namespace }}}
{{- end }}
{{- end }}
{{- end -}}

{{/* Common to all pods: the Pod Security profile "restricted", and no simulated node, which would not run them. */}}
{{- define "stormglass.pod" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecret }}
imagePullSecrets:
  - name: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions:
            - {key: stormglass.dev/run, operator: DoesNotExist}
{{- end -}}

{{- define "stormglass.container" -}}
name: loadgen
image: {{ include "stormglass.image" . | quote }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{/* Values in the format of the flags of loadgen run. */}}
{{- define "stormglass.workersResources" -}}
{{- $all := list -}}
{{- range $name, $amount := .Values.workers.resources -}}{{- $all = append $all (printf "%s=%v" $name $amount) -}}{{- end -}}
{{- join "," $all -}}
{{- end -}}

{{- define "stormglass.workersNodeSelector" -}}
{{- $all := list -}}
{{- range $key, $value := .Values.nodeSelector -}}{{- $all = append $all (printf "%s=%s" $key $value) -}}{{- end -}}
{{- join "," $all -}}
{{- end -}}

{{- define "stormglass.workersTolerations" -}}
{{- $all := list -}}
{{- range .Values.tolerations -}}
{{- $taint := .key -}}
{{- if ne .operator "Exists" -}}{{- $taint = printf "%s=%s" .key (.value | default "") -}}{{- end -}}
{{- with .effect -}}{{- $taint = printf "%s:%s" $taint . -}}{{- end -}}
{{- $all = append $all $taint -}}
{{- end -}}
{{- join "," $all -}}
{{- end -}}
