package importer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/userfile"
)

// burner imports a kube-burner configuration. It applies the defaults and the order of operations of kube-burner v2.
// See pkg/config/types.go and pkg/burner in kube-burner.
type burner struct {
	*draft
	dir  string
	root *fields

	functions string        // the contents of global.functionTemplates
	wait      bool          // value of global.waitWhenFinished
	timeout   time.Duration // value of global.timeout
	jobs      []*burnJob
	waits     []string // conditions that the run waits for after all jobs, if `wait` is set
	longest   time.Duration
	groups    []*burnGroup
	demand    need            // what the pods of all jobs need from nodes
	profiles  []*burnProfiles // pprof measurements for all jobs
	read      map[string]bool // the alert and metrics profiles that were converted, by file
	custom    []string        // API groups of custom resources that jobs create
	elapsed   bool            // whether an expression uses the elapsed time of a job
}

// madeObjects describes the objects that a job creates from one entry in its objects field. For ClusterLoader2, it
// describes the objects that a cl2Objects identifies.
type madeObjects struct {
	manifest                   // the first of the objects
	labels   map[string]string // current labels of the objects
	count    int
	job      *burnJob
	object   *burnObject
	deleted  bool
	phase    int // for ClusterLoader2: index of the phase that creates the objects; -1 if none does
}

// defaultTimeout is kube-burner's default for global.timeout, which limits each wait and the whole run.
const defaultTimeout = 4 * time.Hour

// KubeBurner imports a kube-burner configuration from a file, or from a directory that contains one.
func KubeBurner(path string, o Options) (*Result, error) {
	file, err := burnFile(path)
	if err != nil {
		return nil, err
	}
	data, err := userfile.Read(file, userfile.Text)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot read it: %w", file, err)
	}
	values := map[string]any{"UUID": importUUID}
	maps.Copy(values, o.Values)
	o.Values = values
	b := &burner{draft: newDraft(o, file), dir: filepath.Dir(file), timeout: defaultTimeout, read: map[string]bool{}}
	b.perJob = true
	text, err := renderConfig(b.limits, file, data, values)
	if err != nil {
		return nil, err
	}
	root, err := b.parse(file, []byte(text), alignLines(string(data), text))
	if err != nil {
		return nil, err
	}
	b.root = b.fieldsOf(file, root, "")
	if !b.root.has("jobs") && !b.root.has("global") {
		return nil, fmt.Errorf("%s: not a kube-burner configuration: the file has neither jobs nor global", file)
	}
	return b.convert()
}

// importUUID replaces the UUID and the run ID, which kube-burner would generate for each run.
const importUUID = "00000000-0000-4000-8000-000000000000"

// burnFile returns the configuration file in a directory, or path itself if it is a file.
func burnFile(path string) (string, error) {
	entries, err := filepath.Glob(filepath.Join(path, "*"))
	if err != nil || len(entries) == 0 {
		return path, nil
	}
	var found []string
	for _, file := range entries {
		if ext := filepath.Ext(file); ext == ".yml" || ext == ".yaml" {
			if data, err := userfile.Read(file, userfile.Text); err == nil && strings.Contains("\n"+string(data), "\njobs:") {
				found = append(found, file)
			}
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%s: no *.yml or *.yaml file in this directory has the field `jobs` (name the configuration file instead)", path)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s: the directory contains %d configurations: %s (name one of them)", path, len(found), strings.Join(found, ", "))
}

func (b *burner) convert() (*Result, error) {
	base := filepath.Base(b.file)
	b.name = nameOf(strings.TrimSuffix(base, filepath.Ext(base)))
	b.description = fmt.Sprintf("Imported from kube-burner's %s.", base)
	b.origin = fmt.Sprintf("kube-burner's %s by `loadgen import kube-burner`.", base)
	b.differences = []string{
		"all namespaces are created before the first phase, and everything is removed at the end",
		"objects have kube-burner's labels, with the run's own label in place of its UUID labels",
		"objects are created at an even rate, without kube-burner's initial burst, and creations are not retried",
		"a wait that exceeds its time limit ends the run",
	}
	if err := b.global(); err != nil {
		return nil, err
	}
	for _, f := range b.root.list("jobs") {
		b.jobs = append(b.jobs, b.readJob(f))
	}
	if err := errors.Join(b.errs...); err != nil {
		return nil, err
	}
	b.readGroups()
	b.custom = b.customGroups()
	for _, j := range b.jobs {
		b.job(j)
	}
	b.all.from = len(b.phases)
	if b.wait {
		b.waitPhase("all", b.waits, b.longest)
	}
	b.all.to = len(b.phases)
	b.endpoints()
	for _, g := range b.groups {
		if g.used {
			b.namespaces = append(b.namespaces, block("name", g.Name, "count", g.Count, "labels", g.Labels, "annotations", g.Annotations))
		}
	}
	if err := errors.Join(b.errs...); err != nil {
		return nil, err
	}
	if len(b.phases) == 0 {
		return nil, b.nothing()
	}
	if count := cmp.Or(b.options.Nodes, b.demand.nodeCount()); count > 0 && !b.options.OwnCluster {
		b.addPools(count)
		addComment(b.nodes.key("count"), "kube-burner uses the nodes of the cluster; here as many nodes as the pods need are simulated")
	}
	if slices.ContainsFunc(b.phases, func(p *mapping) bool { return p.key("before") != nil || p.key("after") != nil }) {
		b.differences = append(b.differences, "a hook that fails ends the run; kube-burner continues and fails at its end")
	}
	if b.elapsed {
		b.differences = append(b.differences, "in gates, .elapsed becomes the total length of the job's phases; in compare, it becomes the length of each phase")
	}
	return b.finish()
}

// global reads the settings that apply to all jobs.
func (b *burner) global() error {
	g := b.root.sub("global")
	b.wait = g.flag("waitWhenFinished", false)
	b.timeout = g.duration("timeout", defaultTimeout)
	g.ignore("gc", "deletionStrategy") // a run removes everything that it made
	for _, file := range g.texts("functionTemplates") {
		data, err := userfile.Read(filepath.Join(b.dir, file), userfile.Text)
		if err != nil {
			return fmt.Errorf("%s: cannot read %s: %w", g.at("functionTemplates").place(), file, err)
		}
		b.functions += "\n" + string(data)
	}
	if g.has("requestTimeout") {
		b.item().remark(nil, g.at("requestTimeout"), "loads always have a timeout of 60s, kube-burner's default")
	}
	if g.flag("gcMetrics", false) {
		b.item().remark(nil, g.at("gcMetrics"), "the removal of the objects is not measured")
	}
	if g.flag("clusterHealth", false) {
		b.item() // nothing to convert: a run begins with its nodes Ready
	}
	for _, m := range g.list("measurements") {
		b.measurement(m, nil)
	}
	return nil
}

// phase adds a phase to the end of the scenario. If another phase or load has this name already, the new phase gets a
// different one.
func (d *draft) phase(name string) *mapping {
	m := block("name", unique(name, d.names))
	d.phases = append(d.phases, m)
	return m
}

// phaseName returns the value of the first field, which is the name of a phase, gate or transition.
func phaseName(m *mapping) string { return m.Content[1].Value }

// waitPhase adds a phase that waits until all conditions are true, for at most the time `within`. Without conditions,
// it adds no phase.
func (d *draft) waitPhase(name string, conditions []string, within time.Duration) {
	if len(conditions) > 0 {
		until(d.phase(withSuffix(nameOf(name), "ready")), distinct(conditions), within)
	}
}

// until sets the end of a phase: when all conditions are true, or after the time `within`. Without conditions, the
// phase ends after a second.
func until(phase *mapping, conditions []string, within time.Duration) {
	if len(conditions) == 0 {
		phase.set("for", "1s")
		return
	}
	phase.add("until", strings.Join(conditions, " && "), "within", length(within))
}

func (d *draft) pause(name string, pause time.Duration) {
	if pause > 0 {
		d.phase(withSuffix(nameOf(name), "pause")).set("for", length(pause))
	}
}
