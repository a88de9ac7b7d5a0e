// Package architecture tests which packages may import which.
package architecture

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/stormglass/stormglass/"

// rule forbids the package `from`, and all packages below it, to import packages in `never`, directly or indirectly.
// except lists allowed imports. An entry "from PATH" exempts the importing package PATH.
type rule struct {
	why    string
	from   string
	never  []string
	except []string
	// direct limits the rule to direct imports.
	direct bool
}

var rules = []rule{
	{
		why:   "the load generator stays light: it builds in seconds",
		from:  "loadgen",
		never: []string{"k8s.io/kubernetes", "go.etcd.io/etcd/server"},
	},
	{
		why:   "the load generator's command stays light too",
		from:  "cmd/loadgen",
		never: []string{"k8s.io/kubernetes", "go.etcd.io/etcd/server"},
	},
	{
		why:    "loadgen does not depend on how a target was made",
		from:   "loadgen",
		never:  []string{module + "controlplane"},
		except: []string{module + "controlplane/control"},
	},
	{
		why:   "only package component links the Kubernetes components",
		from:  "controlplane",
		never: []string{"k8s.io/kubernetes", "go.etcd.io/etcd/server"}, direct: true,
		except: []string{"from " + module + "controlplane/internal/component"},
	},
	{
		why:  "packages that make a run and packages that read one share its directory only",
		from: "loadgen/internal/judge", never: making, except: []string{module + "loadgen/internal/load/arrival"},
	},
	{
		why:  "packages that make a run and packages that read one share its directory only",
		from: "loadgen/internal/report", never: making, except: []string{module + "loadgen/internal/load/arrival"},
	},
	{
		why:  "packages that make a run and packages that read one share its directory only",
		from: "loadgen/internal/rundir", never: making, except: []string{module + "loadgen/internal/load/arrival"},
	},
	{
		why:  "packages that make a run and packages that read one share its directory only",
		from: "loadgen/internal/alertproof", never: making, except: []string{module + "loadgen/internal/load/arrival"},
	},
	{
		why:  "a report is made from the run directory alone",
		from: "loadgen/internal/report", direct: true,
		never: []string{"net/http", "k8s.io/client-go"},
	},
	{
		why:  "a verdict depends on no network",
		from: "loadgen/internal/judge/gate", direct: true,
		never: []string{"net/http", "k8s.io/client-go", module + "loadgen/internal/scrape/promimport", module + "loadgen/internal/observe"},
	},
	{
		why:  "statistics are arithmetic on numbers",
		from: "loadgen/internal/judge/paired", direct: true,
		never: []string{"os", "net/http", "time", module + "loadgen/internal"},
	},
	{
		why:  "statistics are arithmetic on numbers",
		from: "loadgen/internal/judge/changepoint", direct: true,
		never: []string{"os", "net/http", "time", module + "loadgen"},
	},
	{
		why:  "which traces to keep depends on spans and times alone",
		from: "loadgen/internal/spans", direct: true,
		never: []string{"net", "k8s.io", "google.golang.org/grpc"}, except: []string{"from " + module + "loadgen/internal/spans/otlp"},
	},
	{
		why:   "rules are data: their readers link neither load generator nor control plane",
		from:  "alerts",
		never: []string{module + "loadgen", module + "controlplane", module + "cmd", "k8s.io/kubernetes", "go.etcd.io/etcd"},
	},
	{
		why:   "a timeline depends on its events only",
		from:  "loadgen/internal/timeline",
		never: []string{module + "loadgen/internal/archive", module + "loadgen/internal/scrape", module + "loadgen/internal/rundir", module + "loadgen/internal/judge"},
	},
	{
		why:   "manifests are generated from files, without load generator or control plane",
		from:  "deploy",
		never: []string{module + "loadgen", module + "controlplane", module + "cmd", "k8s.io", "go.etcd.io", "github.com/prometheus"},
	},
	{
		why:   "both halves serve the API of kubelets by it",
		from:  "internal/kubeletapi",
		never: []string{module + "loadgen", module + "controlplane", module + "cmd", "k8s.io/kubernetes"},
	},
	{
		why:   "dashboards are data too",
		from:  "dashboards",
		never: []string{module + "loadgen", module + "controlplane", module + "cmd", "k8s.io/kubernetes", "go.etcd.io/etcd"},
	},
	{
		why:   "only tests of the dashboards use the Grafana SDK",
		from:  "dashboards",
		never: []string{"github.com/grafana/grafana-foundation-sdk"},
	},
	{
		why:   "the Grafana SDK is linked into no program",
		from:  "cmd",
		never: []string{"github.com/grafana/grafana-foundation-sdk"},
	},
	{
		why:  "charts take numbers, not runs",
		from: "loadgen/internal/report/chart", direct: true,
		never: []string{module + "loadgen/result", module + "loadgen/internal/rundir", "os", "net/http"},
	},
	{
		why:  "panels are drawn from the run directory alone",
		from: "loadgen/internal/report/panel", direct: true,
		never: []string{"net/http", "k8s.io/client-go"},
	},
	{
		why:   "a scrape configuration is text",
		from:  "internal/scrapeconfig",
		never: []string{"github.com/prometheus", "k8s.io"},
	},
	{
		why:  "an observer depends neither on the target nor on judging",
		from: "loadgen/internal/observe",
		never: []string{
			module + "loadgen/internal/judge/gate", module + "loadgen/internal/cluster", module + "loadgen/scenario", module + "loadgen/internal/scrape/promimport", module + "alerts",
		},
	},
	{
		why:  "whether an alert fired is read from a run's archive, not from a network",
		from: "loadgen/internal/judge/alerting", direct: true,
		never: []string{"net/http", "k8s.io/client-go", "os/exec"},
	},
	{
		why:  "a proof is judged from the run directory alone",
		from: "loadgen/internal/alertproof", direct: true,
		never: []string{"net/http", "k8s.io/client-go", "os", "os/exec", "sync"},
	},
	{
		why:  "pacing is arithmetic, without clock or I/O",
		from: "loadgen/internal/load/arrival", direct: true,
		never: []string{"net", "os", "sync"},
	},
	{
		why:  "conditions are decided by objects alone, without clock or I/O",
		from: "loadgen/internal/condition", direct: true,
		never: []string{"net", "net/http", "os", "sync", "time", module + "loadgen", "k8s.io/client-go/rest"},
	},
	{
		why:  "topology is arithmetic on a config",
		from: "controlplane/internal/topology", direct: true,
		never: []string{"net/http", "os/exec", "sync"},
	},
}

// making lists the packages that make a run.
var making = []string{
	module + "loadgen/internal/run", module + "loadgen/internal/cluster", module + "loadgen/internal/load", module + "loadgen/internal/node",
	module + "loadgen/internal/workload", module + "loadgen/internal/workers", module + "loadgen/internal/follow", module + "loadgen/internal/apiclient", module + "loadgen/internal/observe",
}

// layers lists the packages of loadgen from the top down. A package imports no package of a higher layer. A name stands
// for the package and for the packages below it that are not listed themselves.
var layers = []string{
	"cmd", "loadgen/cli", "loadgen/testplane", "loadgen/lab/calibrate/pairs", "loadgen",
	"loadgen/internal/runs/site", "loadgen/internal/web", "loadgen/internal/ab", "loadgen/internal/runs", "loadgen/internal/capacity", "loadgen/internal/compare", "loadgen/internal/series", "loadgen/internal/run", "loadgen/internal/runmetrics", "loadgen/internal/importer", "loadgen/lab/bench", "loadgen/lab/calibrate", "loadgen/lab/calibrate/diagnosis", "loadgen/lab/calibrate/imports", "loadgen/internal/realplane",
	"loadgen/internal/workers/job",
	"loadgen/internal/observe", "loadgen/internal/remotewrite", "loadgen/internal/cluster", "loadgen/lab/calibrate/runner", "loadgen/internal/recording/capture", "loadgen/internal/realnode", "loadgen/internal/realnode/container",
	"loadgen/internal/workers",
	"loadgen/internal/workload", "loadgen/internal/node", "loadgen/internal/follow",
	"loadgen/internal/load/kind", "loadgen/internal/load/podstream", "loadgen/internal/load/replay", "loadgen/internal/load/history", "loadgen/internal/load/watch", "loadgen/internal/load/object", "loadgen/internal/load/batch", "loadgen/internal/load/request", "loadgen/internal/objects", "loadgen/internal/load",
	"loadgen/internal/apiclient",
	"loadgen/internal/judge", "loadgen/internal/alertproof",
	"loadgen/internal/judge/diagnosis", "loadgen/internal/judge/gate", "loadgen/internal/judge/breakdown", "loadgen/internal/judge/alerting", "loadgen/internal/judge/recovery",
	"loadgen/internal/report", "loadgen/internal/report/panel", "loadgen/internal/report/document", "loadgen/internal/report/chart",
	"loadgen/internal/archivetest", "loadgen/internal/rundir",
	"loadgen/internal/profile", "loadgen/internal/spans", "loadgen/internal/scrape/promimport", "loadgen/internal/scrape", "loadgen/internal/generator",
	"loadgen/internal/timeline", "loadgen/internal/archive", "loadgen/internal/auditsummary", "loadgen/internal/auditlog", "loadgen/internal/samples", "loadgen/internal/stall", "loadgen/internal/wakeup", "loadgen/internal/machine", "loadgen/internal/scratch",
	"loadgen/internal/plan",
	"loadgen/scenario", "loadgen/internal/builtin", "loadgen/internal/condition", "loadgen/internal/manifest", "loadgen/internal/template", "loadgen/internal/recording", "loadgen/internal/latency", "loadgen/internal/load/arrival", "loadgen/result",
	"dashboards", "alerts", "controlplane/control", "internal",
}

func TestLayers(t *testing.T) {
	layer := func(path string) int {
		best, at := "", -1
		for i, l := range layers {
			if below(path, module+l) && len(l) > len(best) {
				best, at = l, i
			}
		}
		return at
	}
	for _, p := range list(t) {
		from := layer(p.ImportPath)
		if !below(p.ImportPath, module+"loadgen") {
			continue
		}
		if from < 0 || layers[from] == "loadgen" && p.ImportPath != module+"loadgen" || layers[from] == "internal" {
			t.Errorf("%s belongs to no layer", p.ImportPath)
		}
		for _, imp := range p.Imports {
			to := layer(imp)
			if below(imp, module[:len(module)-1]) && to < from && !below(imp, p.ImportPath) {
				t.Errorf("%s imports %s, which is in a higher layer", p.ImportPath, imp)
			}
		}
	}
}

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestImportRules(t *testing.T) {
	packages := list(t)
	for _, r := range rules {
		checked := 0
		for _, p := range packages {
			if !below(p.ImportPath, module+r.from) || slices.Contains(r.except, "from "+p.ImportPath) {
				continue
			}
			checked++
			imports := p.Deps
			if r.direct {
				imports = p.Imports
			}
			for _, imp := range imports {
				for _, never := range r.never {
					if below(imp, never) && !slices.Contains(r.except, imp) {
						t.Errorf("%s imports %s: %s", p.ImportPath, imp, r.why)
					}
				}
			}
		}
		if checked == 0 {
			t.Errorf("the rule for %s matches no package: does the directory exist?", r.from)
		}
	}
}

// below reports whether path is tree or a package in it.
func below(path, tree string) bool {
	return path == tree || strings.HasPrefix(path, tree+"/")
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", module+"...")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}
