package dashboards

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// description is the panel's text as Grafana shows it.
func (p Panel) description() string { return p.Tells + "\n\nDo: " + p.Do }

func mustLoad(t *testing.T) []Dashboard {
	t.Helper()
	all, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// each calls visit for every panel. name identifies the panel in messages.
func each(t *testing.T, visit func(d Dashboard, name string, p Panel)) {
	t.Helper()
	for _, d := range mustLoad(t) {
		for _, r := range d.Rows {
			for _, p := range r.Panels {
				visit(d, d.UID+": "+p.Title, p)
			}
		}
	}
}

// TestKeyMetricsFirst checks that the overview begins with the four key metrics, with exactly these names.
func TestKeyMetricsFirst(t *testing.T) {
	first := mustLoad(t)[0]
	var got []string
	for _, p := range first.Rows[0].Panels {
		got = append(got, p.Title)
	}
	want := []string{
		"etcd_disk_wal_fsync_duration_seconds", "apiserver_request_duration_seconds by verb",
		"scheduler_scheduling_attempt_duration_seconds", "etcd_server_leader_changes_seen_total",
	}
	if first.UID != "stormglass-overview" || !slices.Equal(got, want) {
		t.Errorf("%s begins with %q", first.UID, got)
	}
}

// TestPanels checks that each panel has a description, a unit and thresholds.
func TestPanels(t *testing.T) {
	causes := slices.Concat(control.FaultKinds(), control.NodeFaultKinds(), []string{"requests", "watches", "changes"})
	of := append(control.Kinds(), "slow", "closed", "open", "list")
	titles := map[string]bool{}
	each(t, func(d Dashboard, name string, p Panel) {
		if titles[name] {
			t.Errorf("%s: two panels have this title", name)
		}
		titles[name] = true
		if !slices.Contains([]string{"timeseries", "stat", "table", "heatmap", "state-timeline"}, p.Kind) {
			t.Errorf("%s is a %s, which the report does not draw", name, p.Kind)
		}
		tells, do, ok := strings.Cut(p.description(), "\n\nDo: ")
		if !ok || len(tells) < 20 || len(do) < 20 {
			t.Errorf("%s: the description does not say what is shown and what to do: %q", name, p.description())
		}
		if strings.HasSuffix(do, ".") != true || strings.HasSuffix(tells, ".") != true {
			t.Errorf("%s: the description is not in complete sentences", name)
		}
		if p.Unit == "" {
			t.Errorf("%s has no unit", name)
		}
		steps := p.Steps()
		if len(steps) == 0 || steps[0].Value != nil {
			t.Errorf("%s: the thresholds do not begin with a colour for the lowest", name)
		}
		for i := 2; i < len(steps); i++ {
			if *steps[i].Value <= *steps[i-1].Value {
				t.Errorf("%s: the thresholds do not increase", name)
			}
		}
		if p.DrawsSteps() != (p.Kind == "timeseries" && len(steps) > 1) {
			t.Errorf("%s: its thresholds are drawn: %v", name, p.DrawsSteps())
		}
		if len(p.Queries) == 0 {
			t.Errorf("%s has no queries", name)
		}
		for _, x := range p.Queries {
			if x.Legend == "" && p.Kind != "table" {
				t.Errorf("%s %s: its series have no names", name, x.RefID)
			}
		}
		for _, m := range p.Moves {
			cause, what, qualified := strings.Cut(m, " ")
			if !slices.Contains(causes, cause) || qualified && !slices.Contains(of, what) {
				t.Errorf("%s: %q is neither a fault nor a load", name, m)
			}
		}
	})
	if len(titles) < 80 {
		t.Errorf("the dashboards have only %d panels", len(titles))
	}
}

// TestReasons checks that each reason has a text, and that a panel shows text instead of data only if each of its
// queries has a reason.
func TestReasons(t *testing.T) {
	var reasons map[string]Reason
	if err := decode("reasons.yaml", &reasons); err != nil {
		t.Fatal(err)
	}
	unused := maps.Clone(reasons)
	each(t, func(_ Dashboard, name string, p Panel) {
		for _, q := range p.Queries {
			delete(unused, q.Empty)
			if (q.Reason != nil) != (q.Empty != "") {
				t.Errorf("%s %s: empty = %q, but the reason is %v", name, q.RefID, q.Empty, q.Reason)
			}
			if r := q.Reason; r != nil && (r.Text == "" || r.Unless == "" || r.Text != reasons[q.Empty].Text) {
				t.Errorf("%s %s: the reason has no text or no unless, or its text differs from reasons.yaml: %+v", name, q.RefID, r)
			}
		}
		all := !slices.ContainsFunc(p.Queries, func(q Query) bool { return q.Reason == nil })
		if all != (p.NoData() != "") {
			t.Errorf("%s: all queries may be empty: %v, but NoData() = %q", name, all, p.NoData())
		}
	})
	for name := range unused {
		t.Errorf("no query uses the reason %s", name)
	}
}

// TestPartition checks that the run that shows the panels moved by partitions is a scenario.
func TestPartition(t *testing.T) {
	text, err := os.ReadFile("partition.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scenario.Parse("partition.yaml", text, nil); err != nil {
		t.Error(err)
	}
}

// TestGrid checks that panels do not overlap and do not extend beyond the grid.
func TestGrid(t *testing.T) {
	taken := map[string]string{}
	each(t, func(d Dashboard, name string, p Panel) {
		if p.W < 4 || p.H < 4 || p.X+p.W > 24 {
			t.Errorf("%s is at %d, %d wide and %d high", name, p.X, p.W, p.H)
		}
		for x := p.X; x < p.X+p.W; x++ {
			for y := p.Y; y < p.Y+p.H; y++ {
				cell := fmt.Sprint(d.UID, x, "/", y)
				if other := taken[cell]; other != "" {
					t.Fatalf("%s overlaps %s", name, other)
				}
				taken[cell] = name
			}
		}
	})
}

// raw is a dashboard as decoded from its JSON file.
type raw struct {
	UID         string     `json:"uid"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Panels      []rawPanel `json:"panels"`
	Links       []struct {
		URL         string `json:"url"`
		IncludeVars bool   `json:"includeVars"`
	} `json:"links"`
	Templating struct {
		List []struct {
			Name     string `json:"name"`
			AllValue string `json:"allValue"`
		} `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []struct {
			Name        string    `json:"name"`
			Datasource  sourceRef `json:"datasource"`
			TitleFormat string    `json:"titleFormat"`
			Target      struct {
				Expr string `json:"expr"`
			} `json:"target"`
		} `json:"list"`
	} `json:"annotations"`
}

type rawPanel struct {
	ID          int       `json:"id"`
	Type        string    `json:"type"`
	Title       string    `json:"title"`
	Description string    `json:"description"`
	Datasource  sourceRef `json:"datasource"`
	GridPos     struct {
		X, Y, W, H uint32
	} `json:"gridPos"`
	Targets []struct {
		Datasource   sourceRef `json:"datasource"`
		RefID        string    `json:"refId"`
		Expr         string    `json:"expr"`
		LegendFormat string    `json:"legendFormat"`
		Instant      bool      `json:"instant"`
	} `json:"targets"`
	Links []struct {
		URL string `json:"url"`
	} `json:"links"`
	FieldConfig struct {
		Defaults struct {
			Unit       string   `json:"unit"`
			NoValue    string   `json:"noValue"`
			Min        *float64 `json:"min"`
			Max        float64  `json:"max"`
			Thresholds struct {
				Steps []Step `json:"steps"`
			} `json:"thresholds"`
			Custom struct {
				AxisSoftMax       float64 `json:"axisSoftMax"`
				ScaleDistribution struct {
					Type string `json:"type"`
				} `json:"scaleDistribution"`
				Stacking struct {
					Mode string `json:"mode"`
				} `json:"stacking"`
				ThresholdsStyle struct {
					Mode string `json:"mode"`
				} `json:"thresholdsStyle"`
			} `json:"custom"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Options struct {
		ReduceOptions struct {
			Calcs []string `json:"calcs"`
		} `json:"reduceOptions"`
		YAxis struct {
			Unit string `json:"unit"`
		} `json:"yAxis"`
	} `json:"options"`
	Transformations []struct {
		ID      string `json:"id"`
		Options struct {
			ExcludeByName map[string]bool   `json:"excludeByName"`
			RenameByName  map[string]string `json:"renameByName"`
		} `json:"options"`
	} `json:"transformations"`
}

// panel converts a panel of the JSON to the form of the YAML.
func (r rawPanel) panel() (p Panel, steps []Step, drawn bool, softMax float64, noData string) {
	f := r.FieldConfig.Defaults
	p = Panel{
		Kind: r.Type, Title: r.Title, Unit: f.Unit, X: r.GridPos.X, Y: r.GridPos.Y, W: r.GridPos.W, H: r.GridPos.H, Max: f.Max,
		Log: f.Custom.ScaleDistribution.Type == "log", Stacked: f.Custom.Stacking.Mode == "normal",
	}
	p.Tells, p.Do, _ = strings.Cut(r.Description, "\n\nDo: ")
	if f.Min != nil {
		p.Min = *f.Min
	}
	if r.Type == "heatmap" {
		p.Unit = r.Options.YAxis.Unit
	}
	if calcs := r.Options.ReduceOptions.Calcs; len(calcs) > 0 && calcs[0] != "lastNotNull" {
		p.Calc = calcs[0]
	}
	for _, t := range r.Transformations {
		if t.ID == "organize" {
			p.Hidden, p.Renamed = slices.Sorted(maps.Keys(t.Options.ExcludeByName)), t.Options.RenameByName
		}
	}
	for _, t := range r.Targets {
		p.Queries = append(p.Queries, Query{RefID: t.RefID, Expr: t.Expr, Legend: t.LegendFormat})
	}
	drawn = f.Custom.ThresholdsStyle.Mode != "" && f.Custom.ThresholdsStyle.Mode != "off"
	return p, f.Thresholds.Steps, drawn, f.Custom.AxisSoftMax, f.NoValue
}

// TestJSON checks that each panel in the JSON for Grafana has the content of the panel in the YAML.
func TestJSON(t *testing.T) {
	boards := map[string]Dashboard{}
	for _, d := range mustLoad(t) {
		boards[d.UID] = d
	}
	each2(t, func(uid string, r raw) {
		d := boards[uid]
		if r.UID != d.UID || r.Title != d.Title || r.Description != d.Tells {
			t.Errorf("%s is %s, %q: %q", uid, r.UID, r.Title, r.Description)
		}
		at := 0
		next := func() (p rawPanel) {
			if at < len(r.Panels) {
				p = r.Panels[at]
			}
			at++
			return p
		}
		for _, row := range d.Rows {
			if heading := next(); heading.Type != "row" || heading.Title != row.Title || heading.GridPos.Y != row.Panels[0].Y-1 {
				t.Errorf("%s: row %q is %+v", uid, row.Title, heading)
			}
			for _, want := range row.Panels {
				written := next()
				got, steps, drawn, softMax, noData := written.panel()
				if min := written.FieldConfig.Defaults.Min; (min == nil) != (want.Log && want.Min == 0) {
					t.Errorf("%s: %s begins at %v", uid, want.Title, min)
				}
				for _, q := range written.Targets {
					if q.Instant != (want.Kind == "table") {
						t.Errorf("%s: %s: instant = %v", uid, want.Title, q.Instant)
					}
				}
				if !reflect.DeepEqual(steps, want.Steps()) || drawn != want.DrawsSteps() || softMax != want.SoftMax() || noData != want.NoData() {
					t.Errorf("%s: %s has the thresholds %v (%v), %v, %q", uid, want.Title, steps, drawn, softMax, noData)
				}
				want.Warn, want.Bad, want.Falls, want.More, want.Moves = 0, 0, false, "", nil // compared above, or no part of it
				want.Hidden = slices.Sorted(slices.Values(want.Hidden))
				want.Queries = slices.Clone(want.Queries)
				for i := range want.Queries {
					want.Queries[i].Empty, want.Queries[i].Reason = "", nil
				}
				if len(got.Renamed) == 0 && len(want.Renamed) == 0 {
					got.Renamed = want.Renamed
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s: the JSON says\n%+v\nand the YAML\n%+v", uid, got, want)
				}
			}
		}
		if at != len(r.Panels) {
			t.Errorf("%s has %d panels, want %d", uid, len(r.Panels), at)
		}
	})
}

type sourceRef struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

func order(t *testing.T) (uids []string) {
	t.Helper()
	for _, d := range mustLoad(t) {
		uids = append(uids, d.UID)
	}
	return uids
}

func each2(t *testing.T, visit func(uid string, d raw)) {
	t.Helper()
	for _, uid := range order(t) {
		text, err := os.ReadFile(filepath.Join("json", uid+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var d raw
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		visit(uid, d)
	}
}

// TestVariablesAndLinks checks that the user chooses the data source of everything, and that every dashboard links to
// every other one with the same data source, cluster and time. The links do not keep the chosen instances, because
// instances of another component would leave every panel empty.
func TestVariablesAndLinks(t *testing.T) {
	all := order(t)
	chosen := sourceRef{"prometheus", "${datasource}"}
	link := regexp.MustCompile(`^/d/([a-z-]+)\?\$\{datasource:queryparam\}&\$\{cluster:queryparam\}&\$\{__url_time_range\}$`)
	each2(t, func(uid string, d raw) {
		var names []string
		for _, v := range d.Templating.List {
			names = append(names, v.Name)
			if v.Name != "datasource" && v.AllValue != ".*" {
				t.Errorf("%s: all of %s is %q, which leaves out series without the label", uid, v.Name, v.AllValue)
			}
		}
		if !slices.Equal(names, []string{"datasource", "cluster", "instance"}) {
			t.Errorf("%s has the variables %q", uid, names)
		}
		linked := []string{uid}
		for _, l := range d.Links {
			if m := link.FindStringSubmatch(l.URL); m != nil && !l.IncludeVars {
				linked = append(linked, m[1])
			}
		}
		if slices.Sort(linked); !slices.Equal(linked, slices.Sorted(slices.Values(all))) {
			t.Errorf("%s does not link to every other dashboard with its data source, cluster and time: %+v", uid, d.Links)
		}
		ids := map[int]bool{}
		for _, p := range d.Panels {
			if p.ID == 0 || ids[p.ID] {
				t.Errorf("%s: two panels have the ID %d", uid, p.ID)
			}
			ids[p.ID] = true
			if p.Type != "row" && p.Datasource != chosen {
				t.Errorf("%s: panel %d reads %+v", uid, p.ID, p.Datasource)
			}
			for _, x := range p.Targets {
				if x.Datasource != chosen {
					t.Errorf("%s: a query of panel %d reads %+v", uid, p.ID, x.Datasource)
				}
			}
			for _, l := range p.Links {
				if m := link.FindStringSubmatch(l.URL); m == nil || !slices.Contains(all, m[1]) || m[1] == uid {
					t.Errorf("%s: panel %d links to %s", uid, p.ID, l.URL)
				}
			}
		}
		if len(d.Annotations.List) != 3 {
			t.Errorf("%s has %d kinds of annotations", uid, len(d.Annotations.List))
		}
		for _, a := range d.Annotations.List {
			if a.Datasource != chosen || a.TitleFormat == "" {
				t.Errorf("%s: annotation %s = %+v with the name %q", uid, a.Name, a.Datasource, a.TitleFormat)
			}
		}
	})
}
