package observe

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/loadgen/internal/scrape"
)

// prometheusVersion returns the version of Prometheus among the linked modules. Grafana derives from this version which
// requests the server supports.
func prometheusVersion(linked []*debug.Module) string {
	for _, m := range linked {
		if m.Path != "github.com/prometheus/prometheus" {
			continue
		}
		// Version v0.3XX.Z of the Go module is Prometheus 3.XX.Z.
		var minor, patch int
		if _, err := fmt.Sscanf(m.Version, "v0.3%02d.%d", &minor, &patch); err == nil {
			return fmt.Sprintf("3.%d.%d", minor, patch)
		}
	}
	return "3.0.0" // the first version with this API
}

func (s *Server) buildInfo(*http.Request) (answer, error) {
	var linked []*debug.Module // modules of this program; unknown in tests
	if info, ok := debug.ReadBuildInfo(); ok {
		linked = info.Deps
	}
	return answer{data: map[string]string{
		"version": prometheusVersion(linked), "revision": "stormglass " + s.c.Version, "branch": "", "buildUser": "", "buildDate": "",
		"goVersion": runtime.Version(),
	}}, nil
}

// runtimeInfo returns properties of this process. It does not return the working directory: clients may be on other machines.
func (s *Server) runtimeInfo(*http.Request) (answer, error) {
	host, _ := os.Hostname()
	retention := "0s"
	if s.c.Retention > 0 {
		retention = model.Duration(s.c.Retention).String()
	}
	return answer{data: map[string]any{
		"startTime": s.began.UTC(), "CWD": "", "hostname": host, "serverTime": time.Now().UTC(),
		"reloadConfigSuccess": true, "lastConfigTime": s.began.UTC(), "corruptionCount": 0,
		"goroutineCount": runtime.NumGoroutine(), "GOMAXPROCS": runtime.GOMAXPROCS(0), "GOMEMLIMIT": debug.SetMemoryLimit(-1),
		"GOGC": os.Getenv("GOGC"), "GODEBUG": os.Getenv("GODEBUG"), "storageRetention": retention,
	}}, nil
}

// flags returns an empty map, because the server has none of Prometheus' flags.
func (s *Server) flags(*http.Request) (answer, error) { return answer{data: map[string]string{}}, nil }

// config returns a minimal configuration with which a Prometheus server would record the same samples.
func (s *Server) config(*http.Request) (answer, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "global:\n  scrape_interval: %s\n  evaluation_interval: %s\n", model.Duration(s.c.Recorder.Interval()), model.Duration(ruleInterval))
	return answer{data: map[string]string{"yaml": b.String()}}, nil
}

// metadata returns the types of the metrics, for Grafana's query builder. There are no help texts, because runs do not
// record them.
func (s *Server) metadata(r *http.Request) (answer, error) {
	limit := -1
	for name, n := range map[string]*int{"limit": &limit, "limit_per_metric": new(int)} { // limit_per_metric is only validated: each metric has one entry
		text := r.FormValue(name)
		if text == "" {
			continue
		}
		var err error
		if *n, err = strconv.Atoi(text); err != nil {
			return answer{}, badData{fmt.Errorf("%s must be a number", name)}
		}
	}
	all := map[string][]v1.Metadata{}
	for family, kind := range s.c.Recorder.Types() {
		if wanted := r.FormValue("metric"); wanted != "" && wanted != family {
			continue
		}
		if limit >= 0 && len(all) >= limit {
			break
		}
		all[family] = []v1.Metadata{{Type: v1.MetricType(kind)}}
	}
	return answer{data: all}, nil
}

type apiTarget struct {
	DiscoveredLabels   model.Metric `json:"discoveredLabels"`
	Labels             model.Metric `json:"labels"`
	ScrapePool         string       `json:"scrapePool"`
	ScrapeURL          string       `json:"scrapeUrl"`
	GlobalURL          string       `json:"globalUrl"`
	LastError          string       `json:"lastError"`
	LastScrape         time.Time    `json:"lastScrape"`
	LastScrapeDuration float64      `json:"lastScrapeDuration"`
	Health             string       `json:"health"`
	ScrapeInterval     string       `json:"scrapeInterval"`
	ScrapeTimeout      string       `json:"scrapeTimeout"`
}

type apiTargets struct {
	ActiveTargets       []apiTarget    `json:"activeTargets"`
	DroppedTargets      []apiTarget    `json:"droppedTargets"` // always empty
	DroppedTargetCounts map[string]int `json:"droppedTargetCounts"`
}

func (s *Server) targets(r *http.Request) (answer, error) {
	out := apiTargets{ActiveTargets: []apiTarget{}, DroppedTargets: []apiTarget{}, DroppedTargetCounts: map[string]int{}}
	if r.FormValue("state") == "dropped" {
		return answer{data: out}, nil
	}
	pool := r.FormValue("scrapePool")
	for _, t := range s.c.Recorder.Targets() {
		if pool == "" || pool == t.Job {
			out.ActiveTargets = append(out.ActiveTargets, s.target(t))
		}
	}
	return answer{data: out}, nil
}

func (s *Server) target(t scrape.TargetState) apiTarget {
	health := "up"
	switch {
	case t.Scraped.IsZero():
		health = "unknown"
	case t.Failed != "":
		health = "down"
	}
	shown := model.Metric{model.JobLabel: model.LabelValue(t.Job), model.InstanceLabel: model.LabelValue(t.Instance)}
	return apiTarget{
		DiscoveredLabels: shown, Labels: shown, ScrapePool: t.Job, ScrapeURL: t.URL, GlobalURL: t.URL,
		LastError: t.Failed, LastScrape: t.Scraped.UTC(), LastScrapeDuration: t.Took.Seconds(), Health: health,
		ScrapeInterval: model.Duration(s.c.Recorder.Interval()).String(), ScrapeTimeout: model.Duration(scrape.ScrapeTimeout).String(),
	}
}

// alertmanagers returns empty lists, because the server uses no Alertmanager.
func (s *Server) alertmanagers(*http.Request) (answer, error) {
	return answer{data: map[string][]any{"activeAlertmanagers": {}, "droppedAlertmanagers": {}}}, nil
}

// oneOf reports whether wanted contains name. An empty wanted contains every name.
func oneOf(wanted []string, name string) bool {
	return len(wanted) == 0 || slices.Contains(wanted, name)
}
