package importer

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/userfile"
)

// cl2 imports a ClusterLoader2 test. See api/types.go and pkg/test/simple_test_executor.go in ClusterLoader2.
type cl2 struct {
	*draft
	templates cl2Templates
	values    map[string]any
	tunings   map[string]*fields

	replicas     map[cl2Objects]int // current number of replicas in each namespace
	latest       map[cl2Objects]madeObjects
	madeBy       map[cl2Objects][]*cl2Bundle
	updates      int
	measurements map[string]*cl2Measurement
	windows      []func() // functions that restrict gates and comparison rows to a range of phases
	asked        *part    // the step that is being converted
	modules      int      // number of modules included so far
	namespaces   int      // number of namespaces that the test creates
	oneFamily    bool     // whether all namespace ranges have the same basename and the same first number
}

// cl2Objects identifies the objects that a test creates from one template in one range of namespaces.
type cl2Objects struct{ basename, template, namespaces string }

// below is a file system rooted at the named directory. Unlike os.DirFS, it allows paths that leave the directory with
// "..".
type below string

func (b below) Open(name string) (fs.File, error) {
	f, err := userfile.Open(filepath.Join(string(b), name), userfile.Text)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return f, nil
}

// place returns the text of err, which begins with a file name. It puts the directory b in front of this name.
func (b below) place(err error) string {
	if b == "." {
		return err.Error()
	}
	return strings.TrimSuffix(string(b), "/") + "/" + strings.TrimPrefix(err.Error(), "/")
}

// ClusterLoader2 imports a ClusterLoader2 test from its configuration file, or from config.yaml in a directory.
func ClusterLoader2(file string, o Options) (*Result, error) {
	o.Nodes = cmp.Or(o.Nodes, 100)
	info, err := os.Stat(file)
	if err == nil && info.IsDir() {
		file = filepath.Join(file, "config.yaml")
	}
	c := &cl2{
		draft:  newDraft(o, file),
		values: map[string]any{"Nodes": o.Nodes, "ImageRegistry": "registry.k8s.io"}, tunings: map[string]*fields{}, replicas: map[cl2Objects]int{},
		latest: map[cl2Objects]madeObjects{}, madeBy: map[cl2Objects][]*cl2Bundle{}, measurements: map[string]*cl2Measurement{},
	}
	c.fold = true
	c.templates = cl2Templates{below(filepath.Dir(file)), c.limits}
	maps.Copy(c.values, o.Values)
	f, err := c.load(file, filepath.Base(file), c.values)
	if err != nil {
		return nil, err
	}
	if !f.has("steps") {
		return nil, fmt.Errorf("%s: not a ClusterLoader2 test: the file has no steps", file)
	}
	return c.convert(f)
}

// load renders and parses the template file at path. relative is the file's path below the directory of the test.
func (c *cl2) load(path, relative string, values map[string]any) (*fields, error) {
	text, original, err := c.templates.render(relative, values)
	if err != nil {
		return nil, fmt.Errorf("%s", below(filepath.Dir(c.file)).place(err))
	}
	root, err := c.parse(path, []byte(text), alignLines(original, text))
	return c.fieldsOf(path, root, ""), err
}

func (c *cl2) convert(f *fields) (*Result, error) {
	name := f.text("name", strings.TrimSuffix(filepath.Base(c.file), filepath.Ext(c.file)))
	c.name = nameOf(name)
	c.description = fmt.Sprintf("Imported from ClusterLoader2's test %s, for %d nodes.", name, c.options.Nodes)
	c.origin = fmt.Sprintf("ClusterLoader2's %s by `loadgen import clusterloader2`, for %d nodes.", filepath.Base(c.file), c.options.Nodes)
	c.differences = []string{
		"objects go into the run's own namespaces, and everything is removed at the end",
		"objects of a bundle arrive one by one, at the bundle's rate times the number of its objects, without an initial burst",
		"a wait that exceeds its time limit ends the run",
	}
	ns := f.sub("namespace")
	c.namespaces = ns.integer("number", f.integer("automanagedNamespaces", 0))
	if prefix := ns.text("prefix", ""); prefix != "" {
		c.lose("namespace prefix", prefix)
		c.item().remark(nil, ns.at("prefix"), "the run's namespaces are not named %s-1, %s-2, ...", prefix, prefix)
	}
	ns.ignore("deleteStaleNamespaces", "deleteAutomanagedNamespaces", "deleteNamespaceTimeout")
	f.ignore("automanagedNamespaces")
	if ns.flag("enableExistingNamespaces", false) {
		c.item().remark(nil, ns.at("enableExistingNamespaces"), "the run creates its own namespaces")
	}
	tunings := f.list("tuningSets")
	for _, t := range tunings {
		c.tunings[t.text("name", "")] = t
	}
	for _, d := range f.list("dependencies") {
		c.item().remark(nil, d.at("method"), "%s is not set up: install it on your cluster, or add its manifests to objects:", d.text("method", ""))
		d.ignore("name", "timeout", "params")
	}
	if n := f.sub("chaosMonkey").sub("nodeFailure"); n.node != nil {
		c.lose("chaosMonkey", "nodeFailure")
		c.item().remark(nil, f.at("chaosMonkey"), "no node fails: add faults: [{kind: nodeFailure, fraction: %g}] to a phase", n.number("failureRate", 0))
	}
	steps, err := c.flatten(f.list("steps"), 0)
	if err == nil {
		err = errors.Join(c.errs...)
	}
	if err != nil {
		return nil, err
	}
	c.oneFamily = oneFamily(steps)
	for i, s := range steps {
		name := s.text("name", fmt.Sprintf("step-%d", i+1))
		c.asked = c.part("step " + name)
		if phases := s.list("phases"); len(phases) > 0 {
			c.phasesOf(name, phases)
		}
		c.measure(name, s.list("measurements"))
		c.asked.to = len(c.phases)
		if len(c.errs) > 0 {
			return nil, errors.Join(c.errs...)
		}
	}
	for _, t := range tunings {
		if c.first(t) {
			t.leave() // no phase uses it
		}
	}
	for _, restrict := range c.windows {
		restrict()
	}
	if len(c.phases) == 0 {
		return nil, c.nothing()
	}
	c.addPools(c.options.Nodes)
	return c.finish()
}

// oneFamily reports whether all namespace ranges have the same basename and the same first number. Only then can the
// run's namespaces replace the test's namespaces without mixing objects from separate namespaces.
func oneFamily(steps []*fields) bool {
	families := map[string]bool{}
	for _, s := range steps {
		for _, p := range s.list("phases") {
			if r := p.sub("namespaceRange"); r.node != nil {
				families[fmt.Sprintf("%s from %s", r.text("basename", ""), r.text("min", "1"))] = true
			}
			if p.has("namespaceList") {
				return false
			}
		}
	}
	return len(families) < 2
}

// maxModules is the maximum number of modules that a test may include. A module counts each time it is included: a few
// files that include each other can expand to billions of steps.
const maxModules = 1000

// flatten replaces each step that refers to a module with the steps of that module.
func (c *cl2) flatten(steps []*fields, depth int) (all []*fields, err error) {
	if depth > 20 {
		return nil, fmt.Errorf("%s: its modules include each other in a cycle", c.file)
	}
	for _, s := range steps {
		if !s.has("module") {
			all = append(all, s)
			continue
		}
		if c.modules++; c.modules > maxModules {
			return nil, fmt.Errorf("%s: the test includes more than %d modules", s.at("module").place(), maxModules)
		}
		s.ignore("name")
		m := s.sub("module")
		values := maps.Clone(c.values)
		maps.Copy(values, m.values("params"))
		file := strings.TrimPrefix(m.text("path", ""), "/")
		root, err := c.load(filepath.Join(filepath.Dir(c.file), file), file, values)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.at("path").place(), err)
		}
		inner, err := c.flatten(root.list("steps"), depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, inner...)
	}
	return all, nil
}

// cl2Pace is the pace at which a phase of a step creates or deletes bundles.
type cl2Pace struct {
	rate    float64 // actions on bundles per second; 0 means as fast as responses arrive
	arrival string
	burst   int
	every   time.Duration
}

// actionsAtOnce is the maximum number of concurrent requests of an action in a scenario.
const actionsAtOnce = 16

// cl2Loads are the kinds of load that a ClusterLoader2 tuning set can define. rate is the field with the number of
// bundles per second, or empty. arrival is the arrival process in the scenario.
var cl2Loads = []struct{ name, rate, arrival string }{
	{"qpsLoad", "qps", ""}, {"globalQPSLoad", "qps", ""},
	{"poissonLoad", "expectedActionsPerSecond", "poisson"}, {"randomizedLoad", "averageQps", "poisson"},
	{"steppedLoad", "", ""}, {"timeLimitedLoad", "", ""}, {"randomizedTimeLimitedLoad", "", "poisson"}, {"parallelismLimitedLoad", "", ""},
}

// pace converts the tuning set of a phase that creates, updates or deletes n bundles of `each` objects. together is the
// sum of n over all phases of the step that use this tuning set, because some tuning sets share their rate or limit
// among phases.
func (c *cl2) pace(item *item, f *fields, n, each, together int) (p cl2Pace) {
	name := f.text("tuningSet", "")
	t := c.tunings[name]
	if t == nil {
		item.remark(c.lastPhase(), f.at("tuningSet"), "there is no tuning set %q: objects are created as fast as responses arrive", name)
		return p
	}
	c.first(t)
	if delay := t.duration("initialDelay", 0); delay > 0 {
		item.remark(c.lastPhase(), t.at("initialDelay"), "objects are created immediately, not after %s", delay)
	}
	for _, of := range cl2Loads {
		if !t.has(of.name) {
			continue
		}
		l := t.sub(of.name)
		p.arrival = of.arrival
		if of.rate != "" {
			p.rate = l.number(of.rate, 0)
		}
		switch of.name {
		case "globalQPSLoad":
			l.ignore("burst")
			p.rate = p.rate * float64(n) / float64(max(1, together))
		case "randomizedLoad":
			if c.first(name) {
				item.remark(c.lastPhase(), t.at(of.name), "arrivals are a Poisson process of the same rate; ClusterLoader2 draws the times between arrivals from a uniform distribution")
			}
		case "steppedLoad":
			p.every, p.burst = l.duration("stepDelay", time.Second), l.integer("burstSize", 1)
			p.rate = l.number("burstSize", 1) / p.every.Seconds()
		case "timeLimitedLoad", "randomizedTimeLimitedLoad":
			if limit := l.duration("timeLimit", 0); limit > 0 {
				p.rate = float64(n) / limit.Seconds()
			}
		case "parallelismLimitedLoad":
			limit := l.integer("parallelismLimit", 1)
			if atOnce := each == 1 && together <= min(limit, actionsAtOnce); !atOnce && c.first(name) {
				item.remark(c.lastPhase(), t.at(of.name), "%d requests are in flight at a time, not %d", actionsAtOnce, limit)
			}
		}
		return p
	}
	item.remark(c.lastPhase(), t.at(""), "the tuning set has no known load: objects are created as fast as responses arrive")
	return p
}

// into sets the arrival process of a load whose bundles contain `each` objects. The load counts objects, not bundles.
func (p cl2Pace) into(load *mapping, each int) {
	if n := p.burst * each; n > 0 {
		load.add("shape", flow("kind", "burst", "burst", n, "every", length(p.every)), "maxInFlight", when(n > 1000, n))
		return
	}
	load.add("rate", perSecond(p.rate*float64(each)), "arrival", p.arrival)
}

// ReadOverrides parses a YAML file of template values by name, as used by ClusterLoader2's --testoverrides and
// kube-burner's --user-data.
func ReadOverrides(file string, data []byte) (map[string]any, error) {
	values := map[string]any{}
	if err := yaml.Unmarshal(data, &values); err != nil {
		return nil, fmt.Errorf("%s: not a mapping of values: %s (write NAME: VALUE lines)", file, strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "yaml: "))
	}
	return values, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
