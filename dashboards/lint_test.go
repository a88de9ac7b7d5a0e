package dashboards

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func mustLoad(t *testing.T) []Dashboard {
	t.Helper()
	all, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// each visits every panel with a name for messages.
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

// TestKeyMetricsFirst: the overview begins with the four key metrics, by exactly
// these names.
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

// TestPanels: each panel has its description, unit and thresholds.
func TestPanels(t *testing.T) {
	causes := slices.Concat(control.FaultKinds(), control.NodeFaultKinds(), []string{"requests", "watches", "changes"})
	of := append(control.Kinds(), "slow", "closed", "open", "list")
	titles := map[string]bool{}
	each(t, func(d Dashboard, name string, p Panel) {
		if titles[name] {
			t.Errorf("%s: the title is not the only one", name)
		}
		titles[name] = true
		if !slices.Contains([]string{"timeseries", "stat", "table", "heatmap", "state-timeline"}, p.Kind) {
			t.Errorf("%s is a %s, which the report does not draw", name, p.Kind)
		}
		tells, do, ok := strings.Cut(p.Description, "\n\nDo: ")
		if !ok || len(tells) < 20 || len(do) < 20 {
			t.Errorf("%s: the description does not say what is shown and what to do: %q", name, p.Description)
		}
		if strings.HasSuffix(do, ".") != true || strings.HasSuffix(tells, ".") != true {
			t.Errorf("%s: the description is not in sentences", name)
		}
		if p.Unit == "" {
			t.Errorf("%s has no unit", name)
		}
		if len(p.Steps) == 0 || p.Steps[0].Value != nil {
			t.Errorf("%s: the thresholds do not begin with a colour for the lowest", name)
		}
		for i := 2; i < len(p.Steps); i++ {
			if *p.Steps[i].Value <= *p.Steps[i-1].Value {
				t.Errorf("%s: the thresholds do not rise", name)
			}
		}
		if p.Lines != (p.Kind == "timeseries" && len(p.Steps) > 1) {
			t.Errorf("%s: its thresholds are drawn: %v", name, p.Lines)
		}
		if len(p.Targets) == 0 {
			t.Errorf("%s asks nothing", name)
		}
		for _, x := range p.Targets {
			if x.Legend == "" && p.Kind != "table" {
				t.Errorf("%s %s: its series have no names", name, x.RefID)
			}
		}
		for _, m := range p.Moves {
			cause, what, qualified := strings.Cut(m, " ")
			if !slices.Contains(causes, cause) || qualified && !slices.Contains(of, what) {
				t.Errorf("%s: no fault and no load is %q", name, m)
			}
		}
	})
	if len(titles) < 80 {
		t.Errorf("only %d panels", len(titles))
	}
}

// TestProof: proof.json is about panels that there are, and a panel that shows
// words instead of data has a reason for each of its queries.
func TestProof(t *testing.T) {
	known := map[string]Panel{}
	each(t, func(d Dashboard, _ string, p Panel) { known[d.UID+"/"+p.Title] = p })
	var proofs []Proof
	if err := json.Unmarshal(proofFile, &proofs); err != nil {
		t.Fatal(err)
	}
	for _, proof := range proofs {
		p, ok := known[proof.Dashboard+"/"+proof.Panel]
		if !ok {
			t.Errorf("%s has no panel %q", proof.Dashboard, proof.Panel)
		}
		for id, reason := range proof.Empty {
			if !slices.ContainsFunc(p.Targets, func(x Target) bool { return x.RefID == id }) {
				t.Errorf("%s has no query %s", proof.Panel, id)
			}
			if reason.Text == "" || reason.Unless == "" {
				t.Errorf("%s %s: a reason says why, and what would refute it", proof.Panel, id)
			}
		}
	}
	each(t, func(_ Dashboard, name string, p Panel) {
		all := !slices.ContainsFunc(p.Targets, func(x Target) bool { return x.Empty == nil })
		if all != (p.NoValue != "") {
			t.Errorf("%s: may be empty: %v, and says then %q", name, all, p.NoValue)
		}
	})
}

// TestPartition: the run that shows what partitions move is a scenario.
func TestPartition(t *testing.T) {
	text, err := os.ReadFile("partition.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scenario.Parse("partition.yaml", text, nil); err != nil {
		t.Error(err)
	}
}

// TestGrid: no two panels overlap, and none leaves the grid.
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
					t.Fatalf("%s is on top of %s", name, other)
				}
				taken[cell] = name
			}
		}
	})
}

// raw is a file as it is, for what Dashboard leaves out.
type raw struct {
	Panels []struct {
		ID         int       `json:"id"`
		Type       string    `json:"type"`
		Datasource sourceRef `json:"datasource"`
		Targets    []struct {
			Datasource sourceRef `json:"datasource"`
		} `json:"targets"`
		Links []struct {
			URL string `json:"url"`
		} `json:"links"`
	} `json:"panels"`
	Links []struct {
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

type sourceRef struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

func each2(t *testing.T, visit func(uid string, d raw)) {
	t.Helper()
	for _, uid := range Order() {
		text, err := fs.ReadFile(Files(), uid+".json")
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

// TestVariablesAndLinks: the data source is the reader's choice everywhere, and
// every dashboard is one click from every other, for the same cluster and time. The
// instances that were chosen do not come along: of another component they would
// leave every panel empty.
func TestVariablesAndLinks(t *testing.T) {
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
		if slices.Sort(linked); !slices.Equal(linked, slices.Sorted(slices.Values(Order()))) {
			t.Errorf("%s does not link to each of the others with what was chosen: %+v", uid, d.Links)
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
				if m := link.FindStringSubmatch(l.URL); m == nil || !slices.Contains(Order(), m[1]) || m[1] == uid {
					t.Errorf("%s: panel %d links to %s", uid, p.ID, l.URL)
				}
			}
		}
		if len(d.Annotations.List) != 3 {
			t.Errorf("%s has %d kinds of annotations", uid, len(d.Annotations.List))
		}
		for _, a := range d.Annotations.List {
			if a.Datasource != chosen || a.TitleFormat == "" {
				t.Errorf("%s: annotation %s reads %+v and is called %q", uid, a.Name, a.Datasource, a.TitleFormat)
			}
		}
	})
}
