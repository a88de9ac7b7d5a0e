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

// tag is the tag of the dashboards, by which users find them in Grafana's search.
const tag = "stormglass"

// Files returns the JSON of each dashboard, by UID. It fails if a dashboard cannot be read or the SDK refuses it.
func Files() (map[string][]byte, error) {
	all, err := dashboards.Load()
	if err != nil {
		return nil, err
	}
	written := map[string][]byte{}
	for _, d := range all {
		if written[d.UID], err = encode(d, all); err != nil {
			return nil, fmt.Errorf("%s: %w", d.UID, err)
		}
	}
	return written, nil
}

// encode builds a dashboard with the SDK, adds the fields that the SDK does not support, and returns the JSON. all
// lists the dashboards to link to.
func encode(d dashboards.Dashboard, all []dashboards.Dashboard) ([]byte, error) {
	built, err := build(d, all)
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
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // > in a query stays readable
	enc.SetIndent("", "  ")
	err = enc.Encode(doc)
	return buf.Bytes(), err
}

// unhide removes the field "placement". By default the SDK sets this field, which hides links and annotations in a menu.
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

func build(b dashboards.Dashboard, all []dashboards.Dashboard) (dashboard.Dashboard, error) {
	d := dashboard.NewDashboardBuilder(b.Title).Uid(b.UID).Description(b.Tells).Tags([]string{tag}).
		Timezone("browser").Time("now-1h", "now").Refresh("10s").Tooltip(dashboard.DashboardCursorSyncCrosshair)
	for _, other := range all {
		if other.UID != b.UID {
			d.Link(linkTo(other.UID, strings.TrimPrefix(other.Title, "Stormglass / ")).Tooltip(other.Tells))
		}
	}
	for _, v := range variables(b.Jobs) {
		d.WithVariable(v)
	}
	for _, m := range marks() {
		d.Annotation(m.builder())
	}
	id := uint32(0)
	for _, r := range b.Rows {
		id++
		d.WithRow(dashboard.NewRowBuilder(r.Title).Id(id).GridPos(dashboard.GridPos{W: 24, H: 1, Y: r.Panels[0].Y - 1}))
		for _, p := range r.Panels {
			id++
			d.WithPanel(panel{p}.builder(id))
		}
	}
	return d.Build()
}

// linkTo returns a link to another dashboard, for the same data source, cluster and time range. Unlike a link to all
// dashboards with a tag, it does not keep the chosen instances: Grafana uses the value in a URL unchanged, so an etcd
// member would be chosen as the instance of the scheduler dashboard, and every panel there would be empty.
func linkTo(uid, title string) *dashboard.DashboardLinkBuilder {
	return dashboard.NewDashboardLinkBuilder(title).Type(dashboard.DashboardLinkTypeLink).
		Url("/d/" + uid + "?${datasource:queryparam}&${cluster:queryparam}&${__url_time_range}")
}

func chosenSource() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
}

func variables(jobs string) []cog.Builder[dashboard.VariableModel] {
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
		query("instance", "Instance", `label_values(up{`+jobs+`, cluster=~"$cluster"}, instance)`).Multi(true),
	}
}

// mark is an annotation, which shows a time range or a point in time on every panel.
type mark struct {
	name, colour, expr string
	// extra holds additional fields of the annotation for the Prometheus data source.
	extra map[string]any
}

func marks() []mark {
	title := func(format, text string) map[string]any {
		return map[string]any{"titleFormat": format, "textFormat": text}
	}
	begin := title("{{fault}}", "begins on {{on}}")
	begin["useValueForTime"] = true // the value is the time of the annotation in ms
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
