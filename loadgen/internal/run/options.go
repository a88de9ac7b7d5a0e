package run

import (
	"context"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/record/promimport"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Options of a run.
type Options struct {
	Scenario *scenario.Scenario
	// Overrides are the --set values the scenario was read with, for the record.
	Overrides []string
	// WithoutGates are those that were left out of the scenario, for the record.
	WithoutGates []string
	// Out is the run directory; empty means runs/TIME-NAME.
	Out string
	// Kubeconfig of a user's cluster; the zero value means a bundled plane, started
	// for this run by the ControlPlane binary.
	Kubeconfig   cluster.Kubeconfig
	Targets      string // file of further scrape targets for a user's cluster
	ControlPlane string // path of the binary; empty means beside ours, then PATH
	// Observe is the address, HOST:PORT, at which the run is served by
	// Prometheus' query API while it goes on; empty means nowhere. ObservePublic
	// allows one that other machines reach.
	Observe       string
	ObservePublic bool
	// Prometheus scrapes the user's cluster already: its samples are copied, and
	// nothing is scraped. Nil means there is none.
	Prometheus *promimport.Config
	// Hurry is closed when the user, who has ended the context, no longer waits for
	// the end in order: what is still to be removed stays, the report is written.
	// Nil: they always wait.
	Hurry <-chan struct{}
	// Confirm is asked before anything is made in a user's cluster.
	Confirm  func(context.Context, cluster.Plan) (bool, error)
	Progress Progress
}
