package render

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/alerts"
)

// Chart returns the generated templates of the Helm chart stormglass-monitoring, by their paths below templates. It
// generates them from the rules, the dashboards, and scrape, which holds the files of deploy/kubernetes/scrape. With
// the same job names, Helm renders the templates of rules and dashboards to the same content as Render.
// TestChartIsCurrent writes the templates, so that no program links their generator.
func Chart(scrape fs.FS) (map[string][]byte, error) {
	c, err := newChart()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for folder, templates := range map[string]func() (map[string]string, error){
		"rules":      c.rules,
		"dashboards": c.dashboards,
		"scrape":     func() (map[string]string, error) { return scrapeTemplates(scrape) },
	} {
		made, err := templates()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
		for name, text := range made {
			files[path.Join(folder, name)] = []byte(text)
		}
	}
	return files, nil
}

// chart generates the Helm templates.
type chart struct {
	// full renders for an installation that scrapes all jobs, with placeholders for their names.
	full *renderer
	// some holds a renderer for each nonempty set of scraped jobs.
	some []choice
}

// choice is a renderer for an installation that scrapes only the listed jobs.
type choice struct {
	*renderer
	jobs []string
}

// Placeholders for values that the user of the chart sets.
const (
	jobPlaceholder     = "STORMGLASS_JOB_"
	clusterPlaceholder = "STORMGLASS_CLUSTER"
	runbookPlaceholder = "https://stormglass-runbooks.invalid"
)

func newChart() (*chart, error) {
	docs, err := ruleFiles(alerts.Files())
	if err != nil {
		return nil, err
	}
	named := Options{Jobs: map[string]string{}, ClusterLabel: clusterPlaceholder, RunbookBase: runbookPlaceholder}
	for _, job := range Jobs() {
		named.Jobs[job] = jobPlaceholder + job
	}
	c := &chart{}
	if c.full, err = newRenderer(named); err != nil {
		return nil, err
	}
	for bits := 1; bits < 1<<len(Jobs()); bits++ {
		o, kept := Options{Jobs: map[string]string{}}, []string(nil)
		for i, job := range Jobs() {
			if bits&(1<<i) != 0 {
				kept = append(kept, job)
			} else {
				o.Jobs[job] = ""
			}
		}
		r, err := newRenderer(o)
		if err == nil {
			err = r.settle(docs)
		}
		if err != nil {
			return nil, err
		}
		c.some = append(c.some, choice{r, kept})
	}
	return c, nil
}

// needs removes the parts of an expression for jobs that are not scraped, for each set of scraped jobs. It returns the
// condition under which a part remains, and the distinct remaining expressions.
func (c *chart) needs(expr string) (condition, []string, error) {
	var sets [][]string
	var forms []string
	for _, some := range c.some {
		parsed, err := some.parser.ParseExpr(masked(expr))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", expr, err)
		}
		pruned, alive := some.prune(parsed)
		if !alive {
			continue
		}
		sets = append(sets, some.jobs)
		if form := pruned.String(); !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	if len(sets) == len(c.some) { // a part remains for every set of scraped jobs
		return always(), forms, nil
	}
	return smallest(sets), forms, nil
}

// alternatives returns the operands of a chain of "or".
func alternatives(e parser.Expr) []parser.Expr {
	if or, ok := e.(*parser.BinaryExpr); ok && or.Op == parser.LOR {
		return append(alternatives(or.LHS), alternatives(or.RHS)...)
	}
	return []parser.Expr{e}
}

var (
	jobList = regexp.MustCompile(`([=!]~\s*\\?")(` + jobPlaceholder + `[a-z-]+(?:\|` + jobPlaceholder + `[a-z-]+)*)`)
	oneJob  = regexp.MustCompile(jobPlaceholder + `([a-z-]+)`)
)

// actions turns text into a Helm template: it escapes existing actions, and replaces placeholders with actions.
func actions(text string) string {
	text = strings.NewReplacer("{{", `{{ "{{" }}`, "}}", `{{ "}}" }}`).Replace(text)
	text = jobList.ReplaceAllStringFunc(text, func(m string) string {
		part := jobList.FindStringSubmatch(m)
		var args []string
		for _, name := range strings.Split(part[2], "|") {
			args = append(args, variable(strings.TrimPrefix(name, jobPlaceholder)))
		}
		return part[1] + `{{ include "stormglass.jobs" (list ` + strings.Join(args, " ") + `) }}`
	})
	text = oneJob.ReplaceAllStringFunc(text, func(m string) string {
		return "{{ " + variable(strings.TrimPrefix(m, jobPlaceholder)) + " }}"
	})
	return strings.NewReplacer(
		"{"+clusterPlaceholder, `{{ "{" }}{{ $clusterLabel }}`, // three braces are not a valid action
		clusterPlaceholder, "{{ $clusterLabel }}",
		runbookPlaceholder, "{{ $runbookBase }}",
	).Replace(text)
}

// template returns a file of the chart. Helm renders the object only if the chart value that enabled names is set and
// the condition "when" holds.
func template(from, enabled string, when condition, object string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{{- /* Code generated from %s by \"go test ./alerts/render -update\"; DO NOT EDIT. */}}\n", from)
	for _, job := range Jobs() {
		if name := variable(job); regexp.MustCompile(regexp.QuoteMeta(name) + `\b`).MatchString(object + when.helm()) {
			fmt.Fprintf(&b, "{{- %s := get (.Values.jobs | default dict) %q }}\n", name, job)
		}
	}
	for _, v := range []struct{ name, value string }{{"$clusterLabel", ".Values.clusterLabel"}, {"$runbookBase", `trimSuffix "/" .Values.runbookBase`}} {
		if strings.Contains(object, v.name) {
			fmt.Fprintf(&b, "{{- %s := %s }}\n", v.name, v.value)
		}
	}
	test := enabled
	if !when.isAlways() {
		test = "and " + enabled + " " + when.helm()
	}
	fmt.Fprintf(&b, "{{- if %s }}\n%s{{- end }}\n", test, object)
	return b.String()
}

// metadata returns the template of an object's metadata: name, namespace, labels and annotations.
func metadata(part, values string) string {
	return fmt.Sprintf(`metadata:
  name: {{ include "stormglass.name" (list . %q) }}
  namespace: {{ %[2]s.namespace | default .Release.Namespace | quote }}
  labels:
    {{- include "stormglass.labels" (list . %[2]s.labels) | nindent 4 }}
  {{- with %[2]s.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
`, part, values)
}

// scrapeLines lists replacements for the lines of the scrape objects that depend on values of the chart. %s is the component.
var scrapeLines = []struct{ from, to string }{
	{"  labels: {app.kubernetes.io/part-of: stormglass}\n", "  labels:\n    {{- include \"stormglass.labels\" (list . .Values.scrape.labels) | nindent 4 }}\n"},
	{"  labels: {app.kubernetes.io/part-of: stormglass, app.kubernetes.io/name: stormglass-%s}\n",
		"  labels:\n    {{- include \"stormglass.labels\" (list . (dict \"app.kubernetes.io/name\" \"stormglass-%s\")) | nindent 4 }}\n"},
	{"  namespace: monitoring\n", "  namespace: {{ .Release.Namespace | quote }}\n"},
	{"interval: 15s\n", "interval: {{ .Values.scrape.interval }}\n"},
}

// scrapeTemplates returns the templates of the scrape objects, by file name. Each object sets the job name from the
// chart's values, because the rules expect that name.
func scrapeTemplates(scrape fs.FS) (map[string]string, error) {
	files := map[string]string{}
	err := sorted(scrape, "*.yaml", func(name string, data []byte) error {
		job := strings.TrimSuffix(name, ".yaml")
		if !slices.Contains(Jobs(), job) {
			return nil // skip a file that is not for a component, such as kustomization.yaml
		}
		text := string(data)
		for _, line := range scrapeLines {
			from := strings.ReplaceAll(line.from, "%s", job)
			if from == line.from && !strings.Contains(text, from) {
				return fmt.Errorf("line %q is missing", from)
			}
			text = strings.ReplaceAll(text, from, strings.ReplaceAll(line.to, "%s", job))
		}
		label := "replacement: " + job + "}"
		if strings.Count(text, label) != 1 {
			return fmt.Errorf("%q does not occur exactly once", label)
		}
		text = strings.Replace(text, label, "replacement: {{ "+variable(job)+" | quote }}}", 1)
		files[name] = template("deploy/kubernetes/scrape/"+name, ".Values.scrape.enabled", condition{{job}}, text)
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("some component has no file")
	}
	return files, err
}
