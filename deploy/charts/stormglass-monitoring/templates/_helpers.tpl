{{/* The name of an object. Argument: (list . PART). */}}
{{- define "stormglass.name" -}}
{{- $root := index . 0 -}}
{{- $base := $root.Values.fullnameOverride -}}
{{- if not $base -}}
{{- $base = $root.Release.Name -}}
{{- if not (contains "stormglass" $base) }}{{ $base = printf "%s-stormglass" $base }}{{ end -}}
{{- end -}}
{{- printf "%s-%s" $base (index . 1) -}}
{{- end }}

{{/* The labels of an object. Argument: (list . LABELS). LABELS override the common labels. */}}
{{- define "stormglass.labels" -}}
{{- $root := index . 0 -}}
{{- $own := dict
      "app.kubernetes.io/name" $root.Chart.Name
      "app.kubernetes.io/instance" $root.Release.Name
      "app.kubernetes.io/managed-by" $root.Release.Service
      "app.kubernetes.io/part-of" "stormglass"
      "helm.sh/chart" (printf "%s-%s" $root.Chart.Name ($root.Chart.Version | replace "+" "_")) -}}
{{- toYaml (mergeOverwrite $own (deepCopy ($root.Values.commonLabels | default dict)) (deepCopy (index . 1 | default dict))) -}}
{{- end }}

{{/* A regular expression that matches the non-empty job names. */}}
{{- define "stormglass.jobs" -}}
{{- $names := list -}}
{{- range . }}{{ if . }}{{ $names = append $names (replace "." "[.]" .) }}{{ end }}{{ end -}}
{{- join "|" $names -}}
{{- end }}
