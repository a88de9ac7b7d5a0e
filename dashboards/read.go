package dashboards

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed source/*.yaml
var files embed.FS

const chosen = `, cluster=~"$cluster", instance=~"$instance"`

// abbreviations returns a replacer for the abbreviations in expressions. @etcd, @api, @scheduler, @kcm, @generator,
// @control (all four components), @all and @job (the jobs of the dashboard) stand for matchers of job, cluster and
// instance. @short stands for the matchers of API server requests whose duration the client does not choose. It
// excludes watches. @record and @irecord stand for the matchers of a recording rule; only @irecord has one for
// instance. @rate stands for Grafana's $__rate_interval.
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

// Load returns all dashboards in the recommended reading order. The links between them have the same order.
func Load() ([]Dashboard, error) {
	var reasons map[string]Reason
	errs := []error{decode("reasons.yaml", &reasons)}
	var all []Dashboard
	for _, name := range []string{"overview", "apiserver", "etcd", "scheduler", "controllers", "nodes", "generator", "run"} {
		var d Dashboard
		err := decode(name+".yaml", &d)
		for i := range d.Rows {
			err = errors.Join(err, d.Rows[i].complete(d.Jobs, reasons))
		}
		d.arrange()
		errs = append(errs, err)
		all = append(all, d)
	}
	return all, errors.Join(errs...)
}

func decode(name string, into any) error {
	text, err := files.ReadFile("source/" + name)
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

// complete fills in a row: it reads the row of process metrics if r.Process is set, expands abbreviations, and looks up
// the reasons of queries.
func (r *Row) complete(jobs string, reasons map[string]Reason) error {
	if own := r.Process; own != nil {
		if err := decode("process.yaml", r); err != nil {
			return err
		}
		descriptors := slices.IndexFunc(r.Panels, func(p Panel) bool { return p.Title == "Open descriptors" })
		r.Panels[descriptors].Moves = own.Moves
		if !own.Waits {
			r.Panels = r.Panels[:len(r.Panels)-1]
		}
	}
	for i := range r.Panels {
		p := &r.Panels[i]
		p.Kind = cmp.Or(p.Kind, "timeseries")
		for j := range p.Queries {
			q := &p.Queries[j]
			q.RefID = string(rune('A' + j))
			q.Expr = abbreviations(jobs).Replace(q.Expr)
			if q.Empty == "" {
				continue
			}
			reason, ok := reasons[q.Empty]
			if !ok {
				return fmt.Errorf("panel %q: no reason %q in reasons.yaml", p.Title, q.Empty)
			}
			reason.Unless = strings.ReplaceAll(reason.Unless, "@job", jobs)
			q.Reason = &reason
		}
	}
	return nil
}

// arrange places the panels of the rows from left to right below the heading of each row. A heading has a height of 1.
func (d *Dashboard) arrange() {
	y := uint32(0)
	for _, r := range d.Rows {
		y++
		x, tallest := uint32(0), uint32(0)
		for i := range r.Panels {
			p := &r.Panels[i]
			p.W, p.H = cmp.Or(p.W, 8), cmp.Or(p.H, 8)
			if x+p.W > 24 {
				x, y, tallest = 0, y+tallest, 0
			}
			p.X, p.Y = x, y
			x, tallest = x+p.W, max(tallest, p.H)
		}
		y += tallest
	}
}
