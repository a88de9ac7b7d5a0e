package loadgen_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// logins sends requests to a service in front of the cluster, and counts its sessions.
type logins struct {
	client   *http.Client
	sessions prometheus.Gauge
}

func (l *logins) Prepare(_ context.Context, cfg *rest.Config, _ string, _ map[string]string) (err error) {
	l.client, err = rest.HTTPClientFor(cfg)
	return err
}

func (l *logins) Do(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://login.example/session", nil)
	if err != nil {
		return err
	}
	answer, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		return fmt.Errorf("login: %s", answer.Status)
	}
	l.sessions.Inc()
	return nil
}

// lines prints the steps of a run.
type lines struct{}

func (lines) Step(line string)      { log.Println(line) }
func (lines) Live(loadgen.Snapshot) {}

// A program runs a scenario with a custom load and a custom metric on a control plane that
// is started for the run, and judges it.
func ExampleRun() {
	s, err := scenario.Parse("logins.yaml", []byte(`
apiVersion: stormglass/v1alpha1
kind: Scenario
name: logins
phases:
  - {name: rush, for: 1m, load: [{kind: custom, name: login, rate: 50/s}]}
gates:
  - {name: latency, objective: request-latency, load: login, max: 200ms}
  - {name: sessions, expr: max(myapp_sessions), max: 3000}
`), nil)
	if err != nil {
		log.Fatal(err)
	}
	sessions := prometheus.NewGauge(prometheus.GaugeOpts{Name: "myapp_sessions", Help: "Open sessions."})
	dir, err := loadgen.Run(context.Background(), loadgen.Options{
		Scenario: s, Progress: lines{},
		Loads:      map[string]loadgen.Load{"login": &logins{sessions: sessions}},
		Collectors: []prometheus.Collector{sessions},
	})
	if err != nil {
		log.Print(err)
		os.Exit(loadgen.ExitCode(err))
	}
	res, err := loadgen.Judge(context.Background(), dir)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Verdict, res.Measurements.Phases[0].Requests[0].Latency.P99)
	os.Exit(res.ExitCode)
}

// recorded writes a run with one phase and without an archive.
func recorded(dir string) error {
	s, err := scenario.Parse("mine.yaml", []byte(`
apiVersion: stormglass/v1alpha1
kind: Scenario
name: mine
phases: [{name: rollout, for: 1s}]
gates: [{name: length, objective: phase-duration, max: 1m}]
`), nil)
	if err != nil {
		return err
	}
	text, err := s.Resolved()
	if err != nil {
		return err
	}
	start := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	run, err := (&result.Run{Scenario: "mine", Started: start, Ended: start.Add(time.Second)}).Encode()
	return errors.Join(err,
		os.WriteFile(filepath.Join(dir, result.ScenarioFile), text, 0o600),
		os.WriteFile(filepath.Join(dir, result.RunFile), run, 0o600),
		os.WriteFile(filepath.Join(dir, result.MeasurementsFile), []byte(`{
  "phases": [{"name": "rollout", "start": "2026-11-22T10:00:00Z", "end": "2026-11-22T10:00:01Z"}]
}`), 0o600),
	)
}

// The verdict of a run is not better than the verdict of its gates, and a run without an archive does not pass.
func ExampleJudge() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := recorded(dir); err != nil {
		log.Fatal(err)
	}
	res, err := loadgen.Judge(context.Background(), dir)
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range res.Gates {
		fmt.Println("gate", g.Name, g.Verdict)
	}
	fmt.Println("run", res.Verdict, res.ExitCode)
	// Output:
	// gate length pass
	// run no data 3
}
