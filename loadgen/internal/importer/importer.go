// Package importer converts configurations of kube-burner, ClusterLoader2 and KWOK into scenarios. Each part that
// cannot be converted exactly is reported as a Remark, and as a comment at the matching place in the scenario. Every
// scenario that the package returns is valid.
package importer

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/internal/plan"
	bounds "github.com/stormglass/stormglass/loadgen/internal/template"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Options configures an import.
type Options struct {
	// Values are the values for templates in the configuration, by name.
	Values map[string]any
	// Nodes is the number of simulated nodes. 0 means as many as the pods need (kube-burner), 100 (ClusterLoader2) or 10
	// (KWOK).
	Nodes int
	// OwnCluster means that the run will use an existing cluster of the user. The scenario then simulates no nodes, and
	// pods keep their node selectors.
	OwnCluster bool
	// Templates is the directory, relative to the scenario, of the template files (Result.Files). Empty means that the
	// scenario contains the templates.
	Templates string
	// StubCRDs makes the scenario define the custom resources that a bundled control plane lacks, without a schema.
	StubCRDs bool
	// Alerts and Metrics are paths of additional kube-burner alert and metrics profiles.
	Alerts, Metrics []string

	limits *bounds.Bounds // limits of the rendering of templates; nil means new ones
}

// Result holds the imported scenario, and remarks about the parts of the configuration that were changed or left out.
type Result struct {
	Name     string
	Scenario []byte // YAML
	Files    []File // templates that the scenario refers to
	// Items is the number of parts of the configuration, such as jobs, objects and measurements. Whole is the number of
	// parts that were converted without a remark.
	Items, Whole int
	Remarks      []Remark // in the order of conversion
	// Lost names the jobs, phases, measurements and Stages that were left out as a whole, such as "job density".
	Lost []string
	// Summary compares each part of the configuration with the scenario.
	Summary []Row
}

// File is a template that the scenario refers to by name.
type File struct {
	Name string // path relative to the scenario
	Data []byte
}

// Remark reports that one part of the configuration was left out or changed.
type Remark struct {
	File  string
	Line  int    // 0 if unknown
	Field string // path of the field, such as jobs[0].qps; may be empty
	Text  string
}

func (r Remark) String() string { return r.place() + ": " + r.Text }

func (r Remark) place() string {
	place := r.File
	if r.Line > 0 {
		place += fmt.Sprintf(":%d", r.Line)
	}
	if r.Field != "" {
		place += ": " + r.Field
	}
	return place
}

// draft is a scenario under construction.
type draft struct {
	options Options
	limits  *bounds.Bounds // limits of the rendering of templates, for the whole import
	file    string         // path of the configuration

	fold          bool // makes keys case-insensitive
	bytes, values int  // total size and number of values of the documents parsed so far
	roots         []*fields
	uses          map[*yaml.Node]use // how the conversion has used keys, mappings and lists
	errs          []error            // errors in values; if there are more than maxErrors, the last one says so

	name, description string
	origin            string   // what was imported, and by which command
	differences       []string // how every import from this tool differs from the tool itself
	nodes, record     *mapping
	namespaces        []*mapping      // the scenario's groups of namespaces
	namespaceLabels   map[string]bool // keys of the labels of namespaces
	pools             []*nodePool
	schedulers        []string // names of schedulers that pods require, except the default one
	transitions       []*mapping
	objects           []*mapping
	made              []madeObjects
	phases, gates     []*mapping
	compare           []*mapping
	stubs             map[string]*stub // stubs of custom resources, by resource name
	top               yaml.Node        // node whose comments stand before the phases

	names   map[string]bool // names of phases and loads
	gateSet map[string]bool // names of gates, and of rows in the comparison table
	texts   []*templateText
	items   []*item
	remarks []Remark
	lost    []string
	parts   []*part
	all     *part        // measurements and gates of the whole configuration
	perJob  bool         // whether an expression can become one gate or comparison row per job
	quiet   bool         // suppresses remarks while a part is converted repeatedly
	told    map[any]bool // keys that were passed to the method `first`
}

func newDraft(o Options, file string) *draft {
	return &draft{
		options: o, limits: cmp.Or(o.limits, bounds.NewBounds()), file: file, uses: map[*yaml.Node]use{}, told: map[any]bool{}, all: newPart("all", 0),
		namespaceLabels: map[string]bool{}, names: map[string]bool{}, gateSet: map[string]bool{}, stubs: map[string]*stub{},
	}
}

// first reports whether it is called with this key for the first time. It prevents repeated remarks.
func (d *draft) first(key any) bool {
	was := d.told[key]
	d.told[key] = true
	return !was
}

// templateText is the text of a template. The method `finish` writes it into the scenario or into a separate file.
type templateText struct {
	at   *mapping // the mapping that gets the field `text` or `file`
	file string
	text string
}

// item is one part of the configuration, such as a job. remarks is the number of remarks about the part.
type item struct {
	draft   *draft
	remarks int
}

func (d *draft) item() *item {
	i := &item{draft: d}
	d.items = append(d.items, i)
	return i
}

// remark records that something was left out or changed, and adds a comment to the scenario. The comment stands before
// node. If node is nil, it stands before the phases.
func (i *item) remark(node *yaml.Node, at Remark, format string, args ...any) {
	if i.draft.quiet {
		return
	}
	i.remarks++
	at.Text = fmt.Sprintf(format, args...)
	i.draft.remarks = append(i.draft.remarks, at)
	at.File = at.File[strings.LastIndexByte(at.File, '/')+1:] // comments do not depend on the directory
	addComment(cmp.Or(node, &i.draft.top), "NOT CARRIED OVER: "+at.String())
}

// lose records that a job, phase, measurement or Stage is missing from the scenario as a whole.
func (d *draft) lose(kind, name string) {
	if what := kind + " " + name; !slices.Contains(d.lost, what) {
		d.lost = append(d.lost, what)
	}
}

// nothing returns the error for a configuration that yields no phase.
func (d *draft) nothing() error {
	d.left()
	if len(d.remarks) == 0 {
		return fmt.Errorf("%s: no part of the file can be converted to a scenario", d.file)
	}
	err := fmt.Errorf("%s: no part of the file can be converted: %s", d.file, d.remarks[0])
	if n := len(d.remarks) - 1; n > 0 {
		err = fmt.Errorf("%w (and %d more)", err, n)
	}
	return err
}

// template registers text as the template of the mapping `at`. file is the base name of the template's file, if it gets
// a separate one.
func (d *draft) template(at *mapping, file, text string) *templateText {
	t := &templateText{at, file, text}
	d.texts = append(d.texts, t)
	return t
}

// finish encodes and validates the scenario and returns the result of the import.
func (d *draft) finish() (*Result, error) {
	if err := d.limits.Late(); err != nil { // the time is over, so parts were left out
		return nil, fmt.Errorf("%s: %w", d.file, err)
	}
	d.left()
	for _, t := range d.texts {
		t.at.set("text", t.text)
	}
	inline, err := d.write()
	if err != nil {
		return nil, err
	}
	s, err := scenario.Parse(d.name+".yaml", inline, nil)
	var p *plan.Plan
	if err == nil {
		p = plan.Of(s)
		err = p.Check()
	}
	if err != nil { // the user knows the configuration file, not the scenario
		place := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(d.name) + `\.yaml(:\d+)?: `)
		return nil, errors.New(place.ReplaceAllString(err.Error(), d.file+": cannot be converted to a valid scenario: "))
	}
	d.parts = append(d.parts, d.all)
	r := &Result{Name: d.name, Scenario: inline, Items: len(d.items), Remarks: d.remarks, Lost: d.lost, Summary: d.summary(p)}
	for _, i := range d.items {
		if i.remarks == 0 {
			r.Whole++
		}
	}
	if d.options.Templates == "" {
		return r, nil
	}
	written := map[string]string{} // names by text
	for _, t := range d.texts {
		name, known := written[t.text]
		if !known {
			name = d.options.Templates + "/" + t.file
			for n, ext := 2, path.Ext(name); slices.ContainsFunc(r.Files, func(f File) bool { return f.Name == name }); n++ {
				name = fmt.Sprintf("%s/%s-%d%s", d.options.Templates, strings.TrimSuffix(t.file, ext), n, ext)
			}
			written[t.text] = name
			r.Files = append(r.Files, File{Name: name, Data: []byte(t.text)})
		}
		t.at.replace("text", "file", name)
	}
	r.Scenario, err = d.write()
	return r, err
}

func (d *draft) write() ([]byte, error) {
	var profiles []*mapping // a scheduler profile for each scheduler name that the pods require
	for _, name := range append([]string{corev1.DefaultSchedulerName}, d.schedulers...) {
		profiles = append(profiles, flow("schedulerName", name))
	}
	scheduler := flow("scheduler", flow("config", block("profiles", profiles)))
	m := block("apiVersion", scenario.APIVersion, "kind", scenario.Kind, "name", d.name, "description", d.description,
		"controlPlane", when(len(d.schedulers) > 0, scheduler), "nodes", d.nodes, "record", d.record, "namespaces", d.namespaces, "setup", d.setup(), "objects", d.objects,
		"transitions", d.transitions, "phases", d.phases, "gates", d.gates, "compare", d.compare)
	head := m.key("apiVersion")
	addComment(head, "Imported from "+d.origin)
	addComment(head, "What every import does differently:")
	for line := range strings.SplitSeq("- "+strings.Join(d.differences, ";\n- ")+".", "\n") {
		addComment(head, line)
	}
	if len(d.stubs) > 0 {
		addComment(m.key("setup"), "These CustomResourceDefinitions are stubs: API servers accept any field, and no controller acts on the objects.")
	}
	m.key("phases").HeadComment = d.top.HeadComment
	return m.bytes()
}
