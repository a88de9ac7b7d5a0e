// Package importer turns configurations of other load tools into scenarios: of kube-burner,
// ClusterLoader2 and KWOK. What cannot be carried over is a Remark, and a comment at its place in the
// scenario. Every scenario that it gives is valid.
package importer

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Options of an import.
type Options struct {
	// Values are those of the configuration's own template, by name.
	Values map[string]any
	// Nodes is how many simulated nodes there are; 0: as many as the pods need, or the tool's default.
	Nodes int
	// OwnCluster imports for a cluster of the user's: without simulated nodes, and with node selectors.
	OwnCluster bool
	// Beside gives templates as files beside the scenario, instead of texts in it.
	Beside bool
	// Alerts and Metrics are further profiles of kube-burner.
	Alerts, Metrics []string
}

// Result is a scenario and what it lacks.
type Result struct {
	Name     string
	Scenario []byte // YAML
	Files    []File // beside the scenario
	// Items are the parts of the configuration, as jobs, objects and measurements; Whole of them
	// have no remark.
	Items, Whole int
	Remarks      []Remark // in the order of the scenario
}

// File is a template beside the scenario.
type File struct {
	Name string // relative
	Data []byte
}

// Remark is one thing that could not be carried over, or not as it was.
type Remark struct {
	File  string
	Line  int // 0: not known
	Field string
	Text  string
}

func (r Remark) String() string { return r.place() + ": " + r.Text }

func (r Remark) place() string {
	parts := []string{r.File}
	if r.Line > 0 {
		parts[0] = fmt.Sprintf("%s:%d", r.File, r.Line)
	}
	if r.Field != "" {
		parts = append(parts, r.Field)
	}
	return strings.Join(parts, ": ")
}

// draft is a scenario that is being written.
type draft struct {
	options Options
	file    string   // the configuration
	head    []string // of the comment at the top

	name, description string
	nodes, record     *mapping
	namespaceLabels   map[string]string
	transitions       []*mapping
	objects           []*mapping
	phases, gates     []*mapping
	compare           []*mapping
	top               []string // comments before the phases

	names   map[string]bool // of phases and loads
	gateSet map[string]bool // names of gates and figures
	texts   []*templateText
	items   []*item
	remarks []Remark
	quiet   bool // what is written now was remarked on before
}

func newDraft(o Options, file string) *draft {
	return &draft{options: o, file: file, namespaceLabels: map[string]string{}, names: map[string]bool{}, gateSet: map[string]bool{}}
}

// templateText is a template in the scenario, or a file beside it.
type templateText struct {
	at   *mapping // of which it is the text
	file string
	text string
}

// item is one part of the configuration.
type item struct {
	draft   *draft
	remarks int
}

func (d *draft) item() *item {
	i := &item{draft: d}
	d.items = append(d.items, i)
	return i
}

// remark notes what could not be carried over, with a comment before a node; nil: before the phases.
func (i *item) remark(node *yaml.Node, at Remark, format string, args ...any) {
	if i.draft.quiet {
		return
	}
	i.remarks++
	at.Text = fmt.Sprintf(format, args...)
	i.draft.remarks = append(i.draft.remarks, at)
	if node == nil {
		i.draft.top = append(i.draft.top, at.comment())
		return
	}
	addComment(node, at.comment())
}

// comment is the remark as it stands in the scenario: without the directory of the file.
func (r Remark) comment() string {
	r.File = r.File[strings.LastIndexByte(r.File, '/')+1:]
	return "NOT CARRIED OVER: " + r.String()
}

// nothing is the error of a configuration of which no phase is left.
func (d *draft) nothing(file string) error {
	if len(d.remarks) == 0 {
		return fmt.Errorf("%s: it has nothing that a scenario does", file)
	}
	more := ""
	if n := len(d.remarks) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Errorf("%s: nothing of it can be carried over: %s%s", file, d.remarks[0], more)
}

// template adds a text to a template; file is the name that it has beside the scenario.
func (d *draft) template(at *mapping, file, text string) *templateText {
	t := &templateText{at, file, text}
	d.texts = append(d.texts, t)
	return t
}

// finish writes the scenario and checks it.
func (d *draft) finish() (*Result, error) {
	for _, t := range d.texts {
		t.at.set("text", t.text)
	}
	inline, err := d.write()
	if err != nil {
		return nil, err
	}
	if _, err := scenario.Parse(d.name+".yaml", inline, nil); err != nil {
		return nil, d.invalid(err)
	}
	r := &Result{Name: d.name, Scenario: inline, Items: len(d.items), Remarks: d.remarks}
	for _, i := range d.items {
		if i.remarks == 0 {
			r.Whole++
		}
	}
	if !d.options.Beside || len(d.texts) == 0 {
		return r, nil
	}
	written := map[string]string{} // names by text
	taken := map[string]bool{}
	for _, t := range d.texts {
		name, known := written[t.text]
		if !known {
			name = uniqueFile(d.name+"/"+t.file, taken)
			written[t.text] = name
			r.Files = append(r.Files, File{Name: name, Data: []byte(t.text)})
		}
		t.at.replace("text", "file", name)
	}
	r.Scenario, err = d.write()
	return r, err
}

// invalid is the errors of the scenario, a line each, with the configuration in place of the scenario's own file.
func (d *draft) invalid(err error) error {
	place := regexp.MustCompile(`^` + regexp.QuoteMeta(d.name) + `\.yaml(:\d+)?: `)
	var errs []error
	for _, line := range strings.Split(err.Error(), "\n") {
		errs = append(errs, fmt.Errorf("%s: no valid scenario comes of it: %s", d.file, place.ReplaceAllString(line, "")))
	}
	return errors.Join(errs...)
}

func uniqueFile(name string, taken map[string]bool) string {
	stem, ext := name, ""
	if dot := strings.LastIndexByte(name, '.'); dot > strings.LastIndexByte(name, '/') {
		stem, ext = name[:dot], name[dot:]
	}
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s-%d%s", stem, n, ext)
	}
	taken[name] = true
	return name
}

// write gives the scenario as YAML.
func (d *draft) write() ([]byte, error) {
	m := newMapping()
	first := m.set("apiVersion", scenario.APIVersion)
	for _, line := range d.head {
		addComment(first, line)
	}
	m.set("kind", scenario.Kind)
	m.set("name", d.name)
	m.set("description", d.description)
	if d.nodes != nil {
		m.set("nodes", d.nodes)
	}
	if d.record != nil {
		m.set("record", d.record)
	}
	if len(d.namespaceLabels) > 0 {
		m.set("namespaceLabels", d.namespaceLabels)
	}
	if len(d.objects) > 0 {
		m.set("objects", d.objects)
	}
	if len(d.transitions) > 0 {
		m.set("transitions", d.transitions)
	}
	phases := m.set("phases", d.phases)
	for _, line := range d.top {
		addComment(phases, line)
	}
	if len(d.gates) > 0 {
		m.set("gates", d.gates)
	}
	if len(d.compare) > 0 {
		m.set("compare", d.compare)
	}
	return m.bytes()
}
