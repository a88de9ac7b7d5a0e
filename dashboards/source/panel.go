// Package source writes the dashboards: one YAML file describes each, process.yaml the
// row that several have, reasons.yaml why a query may be empty; build.go turns them into
// Grafana's JSON with Grafana's own SDK. No program imports it: package dashboards embeds
// the JSON.
//
//	go test ./dashboards/source -update
//
// writes dashboards/json, dashboards/proof.json and docs/reference/dashboards.md.
//
// The SDK is pinned at v0.0.12: the newest version in which the schema that every
// Grafana imports and provisions from files (v1) is not deprecated, and in which
// the strict decoder, which the tests use, reports errors correctly.
package source

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/dashboards"
)

//go:embed *.yaml
var files embed.FS

// board is one dashboard, read from its file. How it becomes Grafana's JSON is in build.go.
type board struct {
	UID, Title string
	// Tells what the dashboard is for.
	Tells string
	// Jobs is the PromQL matcher of the components whose instances can be chosen.
	Jobs string
	Rows []row
}

type row struct {
	Title  string
	Panels []panel
	// Process puts the row of process.yaml here.
	Process *process
}

// process holds the differences between components in the row of process metrics.
type process struct {
	// Waits tells whether the component exports how long its goroutines wait (etcd does not).
	Waits bool
	// Moves lists what must move the panel of descriptors.
	Moves []string
}

// panel is one picture. The zero values of its looks are a plain line chart.
type panel struct {
	// Kind is "timeseries" (or empty), "stat", "table", "heatmap" or "state-timeline".
	Kind  string
	Title string
	// Tells what is shown and what it means; Do, what to do about it.
	Tells, Do string
	Unit      string
	// W and H in Grafana's grid of 24 columns; zero: 8 by 8.
	W, H    uint32
	Queries []query
	// Warn and Bad are where orange and red begin; zero: nowhere. With Falls
	// they are where they end: low is bad.
	Warn, Bad float64
	Falls     bool
	Log       bool // logarithmic axis
	Stacked   bool
	Max       float64 // of the axis; zero: as high as the values
	Min       float64 // of a logarithmic axis; zero: as low as the values
	// Calc makes one number of a series, of a stat; empty: the last.
	Calc string
	// Hidden and Renamed are columns of a table.
	Hidden  []string
	Renamed map[string]string
	// More is the UID of the dashboard that shows more of this.
	More string
	// Moves lists what must move this panel, each shown by a run: a kind of fault or of
	// load, and after a space what it must be of, if that matters ("kill etcd").
	Moves []string
}

// query is one PromQL expression, in which the file may use the abbreviations.
type query struct {
	Expr, Legend string
	// Empty names the reason of reasons.yaml why it may have no answer; empty: it must
	// have one.
	Empty  string
	reason *dashboards.Reason
}

const chosen = `, cluster=~"$cluster", instance=~"$instance"`

// abbreviations of expressions: @etcd, @api, @scheduler, @kcm, @generator, @control (all
// four components), @all and @job (the board's) stand for the matchers of job, cluster
// and instance, @short for requests that do not last as long as their client likes,
// @record and @irecord for the matchers of a record without and with instances, and
// @rate for Grafana's $__rate_interval.
func abbreviations(jobs string) *strings.Replacer {
	const api = `job="kube-apiserver"` + chosen
	return strings.NewReplacer(
		"@job", jobs+chosen, "@etcd", `job="etcd"`+chosen, "@api", api, "@scheduler", `job="kube-scheduler"`+chosen,
		"@kcm", `job="kube-controller-manager"`+chosen, "@generator", `job="loadgen"`+chosen,
		"@control", `job=~"kube-apiserver|etcd|kube-scheduler|kube-controller-manager"`+chosen,
		"@all", `job=~"kube-apiserver|etcd|kube-scheduler|kube-controller-manager|loadgen"`+chosen,
		"@short", api+`, verb!~"WATCH|WATCHLIST|CONNECT|PROXY", subresource!~"log|exec|attach|portforward|proxy"`,
		"@record", `cluster=~"$cluster"`, "@irecord", `cluster=~"$cluster", instance=~"$instance"`,
		"@rate", "$__rate_interval",
	)
}

// boards reads all dashboards, in the order of their links.
func boards() ([]board, error) {
	var reasons map[string]dashboards.Reason
	errs := []error{decode("reasons.yaml", &reasons)}
	var all []board
	for _, name := range []string{"overview", "apiserver", "etcd", "scheduler", "controllers", "nodes", "generator", "run"} {
		var b board
		err := decode(name+".yaml", &b)
		for i := range b.Rows {
			err = errors.Join(err, b.Rows[i].complete(b.Jobs, reasons))
		}
		errs = append(errs, err)
		all = append(all, b)
	}
	return all, errors.Join(errs...)
}

func decode(name string, into any) error {
	text, err := files.ReadFile(name)
	if err != nil {
		return err
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// complete reads the row of process metrics where r asks for it, writes abbreviations
// out and finds the reasons.
func (r *row) complete(jobs string, reasons map[string]dashboards.Reason) error {
	if own := r.Process; own != nil {
		if err := decode("process.yaml", r); err != nil {
			return err
		}
		descriptors := slices.IndexFunc(r.Panels, func(p panel) bool { return p.Title == "Open descriptors" })
		r.Panels[descriptors].Moves = own.Moves
		if !own.Waits {
			r.Panels = r.Panels[:len(r.Panels)-1]
		}
	}
	for _, p := range r.Panels {
		for i := range p.Queries {
			q := &p.Queries[i]
			q.Expr = abbreviations(jobs).Replace(q.Expr)
			if q.Empty == "" {
				continue
			}
			reason, ok := reasons[q.Empty]
			if !ok {
				return fmt.Errorf("panel %q: no reason %q in reasons.yaml", p.Title, q.Empty)
			}
			reason.Unless = strings.ReplaceAll(reason.Unless, "@job", jobs)
			q.reason = &reason
		}
	}
	return nil
}
