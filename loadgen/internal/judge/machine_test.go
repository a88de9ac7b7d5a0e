package judge

import (
	"math"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Requests that the API servers served but neither the run nor a component sent belong to other clients. Their processor time
// does not count as another program's. In a run that did not count its own requests nothing is known of other clients.
func TestOtherClientsAreToldFromOtherPrograms(t *testing.T) {
	for what, c := range map[string]struct {
		foreign   float64 // requests of another client
		counted   bool    // the run counts its own requests
		bundled   bool
		busy      string
		noClients bool
	}{
		"a busy loop":                  {counted: true, bundled: true, busy: "other programs used 1.0 of 2 processors"},
		"a client":                     {foreign: 12000, counted: true, bundled: true},
		"a client of a run of old":     {foreign: 12000, bundled: true, busy: "other programs used 1.0 of 2 processors", noClients: true},
		"a client of a user's cluster": {foreign: 12000, counted: true, noClients: true},
	} {
		t.Run(what, func(t *testing.T) {
			lab := archivetest.New(t, scrape.Options{}, "kube-apiserver-0", "kube-scheduler-0", "loadgen")
			api, scheduler, own := lab.Parts["kube-apiserver-0"], lab.Parts["kube-scheduler-0"], lab.Parts["loadgen"]
			lab.Boundary(0)
			phase := lab.Phase("under", func() {
				api.Add(`apiserver_request_total{verb="GET",resource="pods",code="200"}`, 300+40+7+25+c.foreign)
				api.Add(`apiserver_request_total{verb="POST",resource="pods",code="201"}`, 60)
				api.Add(`apiserver_request_total{verb="WATCH",resource="pods",code="200"}`, 900)
				api.Add(`apiserver_request_total{verb="GET",subresource="/readyz",code="200"}`, 70)
				api.Add(`rest_client_requests_total{host="[::1]:6443",method="GET",code="200"}`, 7)
				api.Add(`rest_client_requests_total{host="127.0.0.1:9443",method="POST",code="200"}`, 500) // to a webhook
				scheduler.Add(`rest_client_requests_total{host="127.0.0.1:6443",method="POST",code="201"}`, 60)
				own.Add(`stormglass_requests_total{load="get",verb="get",resource="pods",code="200"}`, 300)
				own.Add(`stormglass_node_requests_total{verb="get",resource="pods",code="200"}`, 40)
				own.Add(`stormglass_node_requests_total{verb="watch",resource="pods",code="200"}`, 90)
				if c.counted {
					own.Add(`stormglass_own_requests_total`, 25)
				}
			})
			seconds := phase.Seconds()
			phase.Machine = &result.Machine{BusySeconds: 1.5 * seconds, OwnSeconds: 0.5 * seconds, Processors: 2, Busy: "forged"}
			given := phase.Machine
			rec := &rundir.Recorded{Archive: lab.Archive(), Measurements: result.Measurements{Phases: []result.Phase{phase}}}
			rec.Run.Cluster.Bundled = c.bundled
			if err := fillMachine(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			m := rec.Measurements.Phases[0].Machine
			if m.Busy != c.busy || given.Busy != "forged" {
				t.Errorf("busy: %q, want %q; the measurements have %q", m.Busy, c.busy, given.Busy)
			}
			if c.noClients != (m.ClientRequests == nil) || m.ClientRequests != nil && math.Round(*m.ClientRequests) != c.foreign {
				t.Errorf("requests of other clients: %v, want %v", m.ClientRequests, c.foreign)
			}
		})
	}
}
