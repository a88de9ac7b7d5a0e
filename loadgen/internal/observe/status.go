package observe

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// prometheusVersion is that of the Prometheus which is linked: Grafana decides
// by it what it may ask for.
func prometheusVersion(linked []*debug.Module) string {
	for _, m := range linked {
		if m.Path != "github.com/prometheus/prometheus" {
			continue
		}
		// The module's v0.3XX.Z is Prometheus 3.XX.Z.
		var minor, patch int
		if _, err := fmt.Sscanf(m.Version, "v0.3%02d.%d", &minor, &patch); err == nil {
			return fmt.Sprintf("3.%d.%d", minor, patch)
		}
	}
	return "3.0.0" // the first with this API
}

func (s *Server) buildInfo(*http.Request) (answer, error) {
	var linked []*debug.Module // not known in tests
	if info, ok := debug.ReadBuildInfo(); ok {
		linked = info.Deps
	}
	return answer{data: map[string]string{
		"version": prometheusVersion(linked), "revision": "stormglass " + s.c.Version, "branch": "", "buildUser": "", "buildDate": "",
		"goVersion": runtime.Version(),
	}}, nil
}

func (s *Server) runtimeInfo(*http.Request) (answer, error) {
	here, _ := os.Getwd() // empty where unknown
	host, _ := os.Hostname()
	retention := "0s"
	if s.c.Retention > 0 {
		retention = model.Duration(s.c.Retention).String()
	}
	return answer{data: map[string]any{
		"startTime": s.began.UTC(), "CWD": here, "hostname": host, "serverTime": time.Now().UTC(),
		"reloadConfigSuccess": true, "lastConfigTime": s.began.UTC(), "corruptionCount": 0,
		"goroutineCount": runtime.NumGoroutine(), "GOMAXPROCS": runtime.GOMAXPROCS(0), "GOMEMLIMIT": debug.SetMemoryLimit(-1),
		"GOGC": os.Getenv("GOGC"), "GODEBUG": os.Getenv("GODEBUG"), "storageRetention": retention,
	}}, nil
}

// flags are none of Prometheus'.
func (s *Server) flags(*http.Request) (answer, error) { return answer{data: map[string]string{}}, nil }

// config answers with the configuration of a Prometheus that records the same, in short.
func (s *Server) config(*http.Request) (answer, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "global:\n  scrape_interval: %s\n  evaluation_interval: %s\n", model.Duration(s.c.Recorder.Interval()), model.Duration(ruleInterval))
	return answer{data: map[string]string{"yaml": b.String()}}, nil
}
