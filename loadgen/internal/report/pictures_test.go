package report

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/bools"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

func pictures(t *testing.T, r result.Result, timeline []result.Event, slots []samples.Slot, src chart.Source) []Picture {
	t.Helper()
	all, err := Pictures(t.Context(), r, timeline, slots, []byte("name: mine"), src, 0)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// incidentRun has everything that can be drawn: faults, signals, rollouts.
func incidentRun() result.Result {
	r := withTraces(failoverRun(), "calm", "etcd")
	hops := hopsRun().Measurements
	r.Measurements.Phases[0].Workload = hops.Phases[0].Workload
	fsync := &r.Signals[0]
	fsync.Unit = "seconds"
	for s := 8.0; s < 200; s += 2 {
		v := .0029 + .0002*float64(int(s)%5)
		if s > 65 && s < 95 {
			v = .031
		}
		fsync.Steady.Points = append(fsync.Steady.Points, result.SignalPoint{Time: at(s), Value: v})
	}
	return r
}

func named(t *testing.T, all []Picture, name string) Picture {
	t.Helper()
	i := slices.IndexFunc(all, func(p Picture) bool { return p.Name == name })
	if i < 0 {
		var known []string
		for _, p := range all {
			known = append(known, p.Name)
		}
		t.Fatalf("picture %s is missing among %q", name, known)
	}
	return all[i]
}

// Signals, the timeline, rollouts and every chart of the page are also separate pictures. The name of a picture is the
// ID of its chart on the page. A missing picture gives the reason.
func TestEveryChartOfThePageIsAPicture(t *testing.T) {
	r := incidentRun()
	all := pictures(t, r, failoverEvents(r), failoverPulse(), recording{result: r})
	var page bytes.Buffer
	if err := HTML(t.Context(), &page, r, failoverEvents(r), failoverPulse(), []byte("name: mine"), recording{result: r}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range all {
		if seen[p.Name] || p.Name == "" || p.Title == "" {
			t.Errorf("two pictures %q, or one without name or title: %+v", p.Name, p)
		}
		seen[p.Name] = true
		if on := strings.Contains(page.String(), `id="`+chart.ID(p.Name)+`"`); on != (p.Missing == "") && p.Name != "timeline" {
			t.Errorf("%s: on the page %v, missing %q", p.Name, on, p.Missing)
		}
		if svg := p.SVG(); (len(svg) == 0) != (p.Missing != "") {
			t.Errorf("%s: %d bytes, missing %q", p.Name, len(svg), p.Missing)
		}
	}
	for _, want := range []string{"timeline", "rollout-calm-deploy-web", "signal-fsync", "wal-fsync-p99", "requests-that-failed", "leader-changes-seen"} {
		if p := named(t, all, want); p.Missing != "" {
			t.Errorf("%s: %s", want, p.Missing)
		}
	}
	if p := named(t, all, "signal-fsync"); p.Title != "Signal fsync" || !strings.Contains(string(p.SVG()), "Change during the fault: 41.7× noise. Returned after the fault: yes.") || !strings.Contains(string(p.SVG()), ">40 ms<") {
		t.Errorf("the signal's picture lacks its title, its judgement or its unit: %q", p.Title)
	}
	if svg := string(named(t, all, "wal-fsync-p99").SVG()); !strings.Contains(svg, ">pause on etcd-0<") {
		t.Error("a chart does not show the faults")
	}
	if p := named(t, all, "signal-webhook"); !strings.Contains(p.Missing, "0 samples in the steady phases") {
		t.Errorf("a signal without data: %+v", p)
	}
	if figures := regexp.MustCompile(`<figure [^>]*id="chart-([^"]+)"`).FindAllStringSubmatch(page.String(), -1); len(figures) < 20 {
		t.Errorf("the page has only %d figures", len(figures))
	} else {
		for _, f := range figures {
			named(t, all, f[1])
		}
	}
	r.Recovery.Handovers[0].Of = "kube-controller-manager"
	if svg := string(named(t, pictures(t, r, failoverEvents(r), nil, nil), "timeline").SVG()); !strings.Contains(svg, ">kube-controller-manager lease<") {
		t.Error("the picture cuts off the longest name of a lane")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Pictures(ctx, r, nil, nil, nil, nil, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// A picture is complete XML that needs no other file. It has its title, and no element lies outside its bounds.
func TestPicturesStandAlone(t *testing.T) {
	shots := os.Getenv("STORMGLASS_SCREENSHOTS")
	r := incidentRun()
	for _, p := range pictures(t, r, failoverEvents(r), failoverPulse(), recording{result: r}) {
		svg := string(p.SVG())
		if svg == "" {
			continue
		}
		if shots != "" {
			if err := os.WriteFile(filepath.Join(shots, p.Name+".svg"), []byte(svg), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := standsAlone(svg); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		for _, want := range []string{`xmlns="http://www.w3.org/2000/svg"`, "<title id=", "<desc id=", "component-loss", "2026-11-21 03:04 UTC", `fill="#ffffff"`} {
			if !strings.Contains(svg, want) {
				t.Errorf("%s has no %s", p.Name, want)
			}
		}
		if again := string(p.SVG()); again != svg {
			t.Errorf("drawing %s again results in another picture", p.Name)
		}
	}
}

// standsAlone reads a picture as a browser reads an image.
func standsAlone(svg string) error {
	d := xml.NewDecoder(strings.NewReader(svg))
	width, height := 0.0, 0.0
	texts := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		has := map[string]string{}
		for _, a := range e.Attr {
			has[a.Name.Local] = a.Value
			if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") || strings.Contains(a.Value, "url(") || strings.HasPrefix(a.Name.Local, "on") || strings.HasSuffix(a.Name.Local, "href") {
				return fmt.Errorf("%s %s=%q", e.Name.Local, a.Name.Local, a.Value)
			}
		}
		value := func(name string) float64 { v, _ := strconv.ParseFloat(has[name], 64); return v }
		switch e.Name.Local {
		case "svg":
			width, height = value("width"), value("height")
			if has["viewBox"] != fmt.Sprintf("0 0 %s %s", has["width"], has["height"]) || width < 100 || height < 100 {
				return fmt.Errorf("a sheet of %s by %s with the view %s", has["width"], has["height"], has["viewBox"])
			}
		case "rect", "text":
			if x, y := value("x"), value("y"); x < 0 || y < 0 || x+value("width") > width+.1 || y+value("height") > height+.1 {
				return fmt.Errorf("%s at %v, %v is not on the sheet", e.Name.Local, x, y)
			}
			texts += bools.Int(e.Name.Local == "text")
		case "line", "path", "title", "desc":
		default:
			return fmt.Errorf("an element %s", e.Name.Local)
		}
	}
	if texts < 5 {
		return fmt.Errorf("the picture has only %d texts", texts)
	}
	return nil
}

// Recorded names stay text in a picture too.
func TestHostileNamesStayTextInPictures(t *testing.T) {
	const evil = "</text><script>alert(1)</script>\x1b\u202e\x00&"
	r := incidentRun()
	r.Run.Scenario, r.Run.Versions.Kubernetes = evil, evil
	r.Signals[0].Name, r.Signals[0].Expr = evil, evil
	r.Measurements.Phases[1].Name = evil
	r.Recovery.Faults[0].Kind, r.Recovery.Handovers[0].To = evil, evil
	w := r.Measurements.Phases[0].Workload.Rollouts
	w[0].Deployment, w[0].Hops[2].Name = evil, evil
	drawn := 0
	for _, p := range pictures(t, r, append(failoverEvents(r), result.Event{Time: at(30), Kind: "action", Name: evil, Detail: evil}), failoverPulse(), hostile(evil)) {
		if svg := string(p.SVG()); svg != "" {
			drawn++
			if err := standsAlone(svg); err != nil {
				t.Errorf("%q: %v", p.Name, err)
			}
			if strings.ContainsAny(svg, "\x1b\u202e\x00") {
				t.Errorf("%q has control characters", p.Name)
			}
		}
		if strings.Trim(p.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("the name %q", p.Name)
		}
	}
	if drawn < 10 {
		t.Errorf("%d pictures", drawn)
	}
}

// A run without any data has pictures that say so.
func TestPicturesOfARunWithoutData(t *testing.T) {
	r := blindRun()
	for _, p := range pictures(t, r, nil, nil, nil) {
		if p.Name == "wal-fsync-p99" && p.Missing != "No metrics were recorded in this run." {
			t.Errorf("%+v", p)
		}
		if svg := p.SVG(); len(svg) > 0 {
			if err := standsAlone(string(svg)); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
	}
	if all := pictures(t, result.Result{}, nil, nil, nil); named(t, all, "timeline").Missing == "" {
		t.Error("a timeline without phases")
	}
}
