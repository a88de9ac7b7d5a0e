package archivetest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Component exposes counters and classic histograms as Prometheus' text, and
// what every Go process says of itself. It is safe for concurrent use.
type Component struct {
	mu      sync.Mutex
	started int
	down    bool
	values  map[string]float64 // by series
}

// NewComponent is one that has counted nothing yet. It serves its metrics.
func NewComponent() *Component { return &Component{started: 1000, values: map[string]float64{}} }

// Add adds to a cumulative series, which begins at zero.
func (c *Component) Add(series string, v float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[series] += v
}

// Observe adds n observations of v to a histogram with buckets up to edges, and
// one for all.
func (c *Component) Observe(name, labels string, edges []float64, v, n float64) {
	sep := ""
	if labels != "" {
		sep = ","
	}
	for _, e := range edges {
		hit := 0.0
		if v <= e {
			hit = n
		}
		c.Add(fmt.Sprintf(`%s_bucket{%s%sle="%g"}`, name, labels, sep, e), hit)
	}
	c.Add(fmt.Sprintf(`%s_bucket{%s%sle="+Inf"}`, name, labels, sep), n)
	c.Add(fmt.Sprintf(`%s_count{%s}`, name, labels), n)
	c.Add(fmt.Sprintf(`%s_sum{%s}`, name, labels), n*v)
}

// Restart makes it another process, with its counters at zero.
func (c *Component) Restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started += 1000
	clear(c.values)
}

// SetDown makes scrapes fail, or succeed again.
func (c *Component) SetDown(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

func (c *Component) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	typed := ""
	var all []string
	for s := range c.values {
		all = append(all, s)
	}
	slices.Sort(all)
	for _, s := range all {
		family, _, _ := strings.Cut(s, "{")
		kind := "counter"
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if f, ok := strings.CutSuffix(family, suffix); ok {
				family, kind = f, "histogram"
			}
		}
		if family != typed {
			typed = family
			fmt.Fprintf(w, "# TYPE %s %s\n", family, kind)
		}
		fmt.Fprintf(w, "%s %g\n", s, c.values[s])
	}
	fmt.Fprintf(w, "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d\n", c.started)
	fmt.Fprint(w, "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes 3e8\n# TYPE process_open_fds gauge\nprocess_open_fds 42\n")
}
