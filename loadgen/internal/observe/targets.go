package observe

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/loadgen/internal/record"
)

// metadatum is the metadata of a metric. Help is not recorded.
type metadatum struct {
	Type model.MetricType `json:"type"`
	Help string           `json:"help"`
	Unit string           `json:"unit"`
}

// metadata lists the types of metrics, which Grafana's query builder goes by.
func (s *Server) metadata(r *http.Request) (answer, error) {
	limit := -1
	for name, n := range map[string]*int{"limit": &limit, "limit_per_metric": new(int)} { // of each there is one
		text := r.FormValue(name)
		if text == "" {
			continue
		}
		var err error
		if *n, err = strconv.Atoi(text); err != nil {
			return answer{}, badData{fmt.Errorf("%s must be a number", name)}
		}
	}
	all := map[string][]metadatum{}
	for family, kind := range s.c.Recorder.Types() {
		if wanted := r.FormValue("metric"); wanted != "" && wanted != family {
			continue
		}
		if limit >= 0 && len(all) >= limit {
			break
		}
		all[family] = []metadatum{{Type: kind}}
	}
	return answer{data: all}, nil
}

// apiTarget is a target as the API shows it.
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
	DroppedTargets      []apiTarget    `json:"droppedTargets"` // there are none
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

func (s *Server) target(t record.TargetState) apiTarget {
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
		ScrapeInterval: model.Duration(s.c.Recorder.Interval()).String(), ScrapeTimeout: model.Duration(record.ScrapeTimeout).String(),
	}
}

// alertmanagers answers that there are none.
func (s *Server) alertmanagers(*http.Request) (answer, error) {
	return answer{data: map[string][]any{"activeAlertmanagers": {}, "droppedAlertmanagers": {}}}, nil
}

// oneOf reports whether a list of wanted names is empty or has the name.
func oneOf(wanted []string, name string) bool {
	return len(wanted) == 0 || slices.Contains(wanted, name)
}
