{{/* The arguments of the run. The kubelet expands $(POD_IP). */}}
{{- define "stormglass.args" -}}
{{- $values := .Values -}}
- run
- {{ ternary "/scenario/scenario.yaml" $values.scenario.name (ne $values.scenario.text "") | quote }}
- --current-cluster
- --yes
- --summary=/dev/termination-log
{{- if $values.workers.count }}
- {{ printf "--workers=%v" $values.workers.count }}
- {{ printf "--image=%s" (include "stormglass.image" .) | quote }}
- --workers-namespace={{ .Release.Namespace }}
- --workers-listen=:7443
- --workers-advertise=$(POD_IP)
{{- with $values.imagePullSecret }}
- --image-pull-secret={{ . }}
{{- end }}
{{- with include "stormglass.workersResources" . }}
- {{ printf "--workers-resources=%s" . | quote }}
{{- end }}
{{- with include "stormglass.workersNodeSelector" . }}
- {{ printf "--workers-node-selector=%s" . | quote }}
{{- end }}
{{- with include "stormglass.workersTolerations" . }}
- {{ printf "--workers-tolerations=%s" . | quote }}
{{- end }}
{{- end }}
{{- range $values.scenario.set }}
- {{ printf "--set=%s" . | replace "$(" "$$(" | quote }}
{{- end }}
{{- range $values.scenario.withoutGates }}
- {{ printf "--without-gate=%s" . | quote }}
{{- end }}
{{- with $values.remoteWrite.url }}
- {{ printf "--remote-write=%s" . | quote }}
{{- end }}
{{- if $values.remoteWrite.secret }}
- --remote-write-header-file=/remote-write/headers
{{- end }}
{{- range $values.extraArgs }}
- {{ . | replace "$(" "$$(" | quote }}
{{- end }}
{{- end -}}

{{/* The spec of the Job that runs the scenario. */}}
{{- define "stormglass.job" -}}
backoffLimit: 0 # a retry would send the load again
template:
  metadata:
    labels:
      {{- include "stormglass.labels" . | nindent 6 }}
    annotations: # an autoscaler that evicts the pod would abort the run
      cluster-autoscaler.kubernetes.io/safe-to-evict: "false"
      karpenter.sh/do-not-disrupt: "true"
  spec:
    serviceAccountName: {{ include "stormglass.account" . }}
    restartPolicy: Never
    terminationGracePeriodSeconds: 360
    {{- include "stormglass.pod" . | nindent 4 }}
    containers:
      - {{- include "stormglass.container" . | nindent 8 }}
        args:
          {{- include "stormglass.args" . | nindent 10 }}
        workingDir: /results
        terminationMessagePolicy: FallbackToLogsOnError
        env:
          - {name: TMPDIR, value: /tmp}
          - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
          {{- if (.Values.resources.requests | default dict).memory }}
          - {name: MEMORY, valueFrom: {resourceFieldRef: {resource: requests.memory, divisor: 1Mi}}}
          - {name: GOMEMLIMIT, value: $(MEMORY)MiB}
          {{- end }}
        {{- with .Values.resources }}
        resources:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        volumeMounts:
          - {name: tmp, mountPath: /tmp}
          - {name: results, mountPath: /results}
          {{- if .Values.scenario.text }}
          - {name: scenario, mountPath: /scenario, readOnly: true}
          {{- end }}
          {{- if .Values.remoteWrite.secret }}
          - {name: remote-write, mountPath: /remote-write, readOnly: true}
          {{- end }}
    volumes:
      - {name: tmp, emptyDir: {sizeLimit: 64Mi}}
      {{- if or .Values.results.claim .Values.results.size }}
      - {name: results, persistentVolumeClaim: {claimName: {{ .Values.results.claim | default (include "stormglass.name" .) }}}}
      {{- else }}
      - {name: results, emptyDir: {}}
      {{- end }}
      {{- if .Values.scenario.text }}
      - {name: scenario, configMap: {name: {{ include "stormglass.name" . }}}}
      {{- end }}
      {{- with .Values.remoteWrite.secret }}
      - {name: remote-write, secret: {secretName: {{ . }}, defaultMode: 0440}}
      {{- end }}
{{- end -}}
