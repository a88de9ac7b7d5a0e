package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"

	"github.com/stormglass/stormglass/dashboards"
)

// tag marks the dashboards for Grafana's search.
const tag = "stormglass"

// Files returns the JSON of each dashboard by its UID, and proof.json. An error
// means that the SDK refuses a dashboard.
func Files() (boardFiles map[string][]byte, proof []byte, err error) {
	boardFiles = map[string][]byte{}
	var proofs []dashboards.Proof
	all, err := boards()
	if err != nil {
		return nil, nil, err
	}
	for _, b := range all {
		if boardFiles[b.UID], err = b.json(all); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", b.UID, err)
		}
		proofs = append(proofs, b.proofs()...)
	}
	proof, err = indented(proofs)
	return boardFiles, proof, err
}

func indented(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // > in a query stays readable
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return buf.Bytes(), err
}

// json builds the dashboard and adds fields that the SDK lacks.
func (b board) json(all []board) ([]byte, error) {
	built, err := b.build(all)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(built)
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	for i, a := range doc["annotations"].(map[string]any)["list"].([]any) {
		for field, v := range marks()[i].extra {
			a.(map[string]any)[field] = v
		}
	}
	unhide(doc)
	return indented(doc)
}

// unhide removes the SDK's default for links and annotations, which hides them in
// a menu.
func unhide(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "placement")
		for name, inner := range v {
			if name != "options" { // a legend has a placement too
				unhide(inner)
			}
		}
	case []any:
		for _, inner := range v {
			unhide(inner)
		}
	}
}

func (b board) build(all []board) (dashboard.Dashboard, error) {
	d := dashboard.NewDashboardBuilder(b.Title).Uid(b.UID).Description(b.Tells).Tags([]string{tag}).
		Timezone("browser").Time("now-1h", "now").Refresh("10s").Tooltip(dashboard.DashboardCursorSyncCrosshair)
	for _, other := range all {
		if other.UID != b.UID {
			d.Link(linkTo(other.UID, strings.TrimPrefix(other.Title, "Stormglass / ")).Tooltip(other.Tells))
		}
	}
	for _, v := range b.variables() {
		d.WithVariable(v)
	}
	for _, m := range marks() {
		d.Annotation(m.builder())
	}
	id, y := uint32(0), uint32(0)
	for _, r := range b.Rows {
		id++
		d.WithRow(dashboard.NewRowBuilder(r.Title).Id(id).GridPos(dashboard.GridPos{W: 24, H: 1, Y: y}))
		y++
		x, tallest := uint32(0), uint32(0)
		for _, p := range r.Panels {
			w, h := p.size()
			if x+w > 24 {
				x, y, tallest = 0, y+tallest, 0
			}
			id++
			d.WithPanel(p.builder(id, dashboard.GridPos{X: x, Y: y, W: w, H: h}))
			x, tallest = x+w, max(tallest, h)
		}
		y += tallest
	}
	return d.Build()
}

// linkTo is a link to another dashboard, for the same data source, cluster and time.
// Not for the same instances, as one to all dashboards of a tag would have it: Grafana
// takes a value from a URL as it is, and an etcd member is no scheduler, so that every
// panel there would be empty.
func linkTo(uid, title string) *dashboard.DashboardLinkBuilder {
	return dashboard.NewDashboardLinkBuilder(title).Type(dashboard.DashboardLinkTypeLink).
		Url("/d/" + uid + "?${datasource:queryparam}&${cluster:queryparam}&${__url_time_range}")
}

func (p panel) size() (w, h uint32) {
	w, h = p.W, p.H
	if w == 0 {
		w = 8
	}
	if h == 0 {
		h = 8
	}
	return w, h
}

func chosenSource() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
}

func (b board) variables() []cog.Builder[dashboard.VariableModel] {
	text := func(s string) dashboard.StringOrArrayOfString { return dashboard.StringOrArrayOfString{String: &s} }
	all := dashboard.VariableOption{Selected: cog.ToPtr(true), Text: text("All"), Value: text("$__all")}
	query := func(name, label, q string) *dashboard.QueryVariableBuilder {
		return dashboard.NewQueryVariableBuilder(name).Label(label).Datasource(chosenSource()).
			Query(dashboard.StringOrMap{Map: map[string]any{"qryType": 1, "query": q, "refId": "PrometheusVariableQueryEditor-VariableQuery"}}).
			Definition(q).IncludeAll(true).AllValue(".*").Current(all).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortNaturalAsc)
	}
	return []cog.Builder[dashboard.VariableModel]{
		dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus"),
		query("cluster", "Cluster", "label_values(up, cluster)"),
		query("instance", "Instance", `label_values(up{`+b.Jobs+`, cluster=~"$cluster"}, instance)`).Multi(true),
	}
}

// mark is an annotation: a stretch or a moment on every panel.
type mark struct {
	name, colour, expr string
	// extra holds an annotation's further fields for Prometheus' data source.
	extra map[string]any
}

func marks() []mark {
	title := func(format, text string) map[string]any {
		return map[string]any{"titleFormat": format, "textFormat": text}
	}
	begin := title("{{fault}}", "begins on {{on}}")
	begin["useValueForTime"] = true // the value is the moment, in ms
	return []mark{
		{"Phases", "blue", `max by (phase) (stormglass_phase_active{job="loadgen", cluster=~"$cluster"}) == 1`, title("{{phase}}", "phase of the run")},
		{"Faults", "red", `max by (fault, on) (stormglass_fault_active{job="loadgen", cluster=~"$cluster"}) == 1`, title("{{fault}}", "on {{on}}")},
		{"Begins of faults", "red", `max by (fault, on) (stormglass_fault_begin_timestamp_seconds{job="loadgen", cluster=~"$cluster"}) * 1000`, begin},
	}
}

func (m mark) builder() *dashboard.AnnotationQueryBuilder {
	return dashboard.NewAnnotationQueryBuilder().Name(m.name).Datasource(chosenSource()).Enable(true).Hide(false).IconColor(m.colour).
		Target(prometheus.NewDataqueryBuilder().Expr(m.expr).RefId("Anno").Range())
}

// proofs returns the entries of the dashboard's panels in proof.json.
func (b board) proofs() []dashboards.Proof {
	var all []dashboards.Proof
	for _, r := range b.Rows {
		for _, p := range r.Panels {
			proof := dashboards.Proof{Dashboard: b.UID, Panel: p.Title, Moves: p.Moves}
			for i, q := range p.Queries {
				if q.reason != nil {
					if proof.Empty == nil {
						proof.Empty = map[string]dashboards.Reason{}
					}
					proof.Empty[refID(i)] = *q.reason
				}
			}
			if proof.Moves != nil || proof.Empty != nil {
				all = append(all, proof)
			}
		}
	}
	return all
}

func refID(i int) string { return string(rune('A' + i)) }
