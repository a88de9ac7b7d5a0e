package report

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	cdplog "github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"

	"github.com/stormglass/stormglass/internal/browsertest"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

// watched collects forbidden actions of a page.
type watched struct {
	mu    sync.Mutex
	bad   []string
	pages int // requests for a page itself: shows that requests are seen at all
}

// since returns what happened since the last call.
func (w *watched) since() (bad []string, pages int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	bad, pages = w.bad, w.pages
	w.bad, w.pages = nil, 0
	return bad, pages
}

func (w *watched) event(ev any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch ev := ev.(type) {
	case *network.EventRequestWillBeSent:
		switch {
		case strings.HasPrefix(ev.Request.URL, "file://") && strings.HasSuffix(ev.Request.URL, ".html"):
			w.pages++
		case ev.Request.URL != "data:,": // the empty icon
			w.bad = append(w.bad, "requests "+ev.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		w.bad = append(w.bad, "exception: "+ev.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		w.bad = append(w.bad, fmt.Sprintf("console.%s", ev.Type))
	case *cdplog.EventEntryAdded:
		w.bad = append(w.bad, "log: "+ev.Entry.Text)
	}
}

func TestPageInBrowser(t *testing.T) {
	shots := os.Getenv("STORMGLASS_SCREENSHOTS") // directory for screenshots; empty: take none
	ctx := browsertest.Start(t)
	seen := &watched{}
	if err := chromedp.Listen(ctx, seen.event); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	for _, run := range []struct {
		name string
		r    result.Result
		src  func(result.Result) chart.Source
	}{
		{"fail", stormRun(), func(r result.Result) chart.Source { return recording{result: r} }},
		{"pass", floodRun(), func(r result.Result) chart.Source { return recording{result: r} }},
		{"no-data", blindRun(), func(result.Result) chart.Source { return nil }},
		{"incident", incidentRun(), func(r result.Result) chart.Source { return recording{result: r} }},
		{"interrupted", cutRun(), func(r result.Result) chart.Source { return recording{result: r} }},
	} {
		file := filepath.Join(t.TempDir(), run.name+".html")
		page := render(t, run.r, run.src(run.r))
		if run.name == "incident" {
			page = renderFailover(t, run.r)
		}
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, scheme := range []string{"light", "dark"} {
			for width, device := range map[int64]string{1280: "desktop", 360: "phone"} {
				t.Run(run.name+"/"+scheme+"/"+device, func(t *testing.T) {
					seen.since()
					media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
					if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
						t.Fatal(err)
					}
					if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 860), chromedp.Navigate("file://"+file)); err != nil {
						t.Fatal(err)
					}
					if px := browsertest.Must(t, ctx, chromedp.Evaluate[int](overflow)); px > 0 {
						t.Errorf("the page is %d px wider than the screen", px)
					}
					for _, c := range browsertest.Must(t, ctx, chromedp.Evaluate[[]string](contrast)) {
						t.Errorf("contrast: %s", c)
					}
					for _, c := range browsertest.Must(t, ctx, chromedp.Evaluate[[]string](invisible)) {
						t.Errorf("no visible line: %s", c)
					}
					for _, c := range browsertest.Must(t, ctx, chromedp.Evaluate[[]string](gaps)) {
						t.Errorf("a bar that is not whole: %s", c)
					}
					// Check again with everything unfolded, including the dashboards.
					for _, c := range browsertest.Must(t, ctx, chromedp.Evaluate[[]string](unfolded)) {
						t.Errorf("a panel without picture or words: %s", c)
					}
					if px := browsertest.Must(t, ctx, chromedp.Evaluate[int](overflow)); px > 0 {
						t.Errorf("unfolded, the page is %d px wider than the screen", px)
					}
					for _, c := range browsertest.Must(t, ctx, chromedp.Evaluate[[]string](contrast)) {
						t.Errorf("unfolded, contrast: %s", c)
					}
					bad, pages := seen.since()
					for _, b := range bad {
						t.Errorf("the page %s", b)
					}
					if pages != 1 {
						t.Errorf("%d requests for the page were seen, want 1", pages)
					}
					if shots == "" {
						return
					}
					for kind, shot := range map[string]chromedp.Action[[]byte]{"": chromedp.CaptureScreenshot(), "-whole": chromedp.FullScreenshot(100)} {
						png := browsertest.Must(t, ctx, shot)
						if err := os.WriteFile(filepath.Join(shots, run.name+"-"+scheme+"-"+device+kind+".png"), png, 0o644); err != nil {
							t.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// readout returns the text the page shows for a moment under the pointer.
const readout = `({
  tip: [...document.querySelectorAll('.tip')].filter(t => !t.hidden).map(t => t.innerText.replaceAll('\n', ' ')).join('|'),
  clock: document.getElementById('clock').textContent,
  cursors: [...document.querySelectorAll('.u-cursor-x')].filter(c => !c.classList.contains('u-off')).length,
  figure: document.querySelector('.legend .val').textContent,
})`

type readings struct {
	Tip, Clock, Figure string
	Cursors            int
}

func TestValuesUnderPointerAndKeys(t *testing.T) {
	r := stormRun()
	html := render(t, r, recording{result: r})
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(html), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx := browsertest.Start(t)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 860), chromedp.Navigate("file://"+file)); err != nil {
		t.Fatal(err)
	}
	idle := browsertest.Must(t, ctx, chromedp.Evaluate[readings](readout))
	box := browsertest.Must(t, ctx, chromedp.Evaluate[[]float64](`(() => { const a = document.querySelector('.area'); a.scrollIntoView({block: 'center'}); const b = a.getBoundingClientRect(); return [b.left + b.width * .6, b.top + b.height / 2]; })()`))
	if err := chromedp.Do(ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, box[0], box[1])); err != nil {
		t.Fatal(err)
	}
	got := browsertest.Must(t, ctx, chromedp.Evaluate[readings](readout))
	if !strings.Contains(got.Tip, "GET") || !strings.Contains(got.Tip, "/s") || !strings.Contains(got.Tip, "recovery") || !strings.Contains(got.Clock, "UTC") {
		t.Errorf("pointing shows %+v", got)
	}
	if got.Cursors < 15 {
		t.Errorf("the moment is marked in %d charts only", got.Cursors)
	}
	// Each line has its name, and the box stays next to the moment.
	if bad := browsertest.Must(t, ctx, chromedp.Evaluate[string](`(() => {
	  const tip = [...document.querySelectorAll('.tip')].find(t => !t.hidden), b = tip.getBoundingClientRect();
	  if (b.height > 300 || b.width > 400) return 'the box is ' + b.width + ' by ' + b.height;
	  return [...tip.querySelectorAll('.name')].filter(n => n.getBoundingClientRect().width < 20).map(n => n.textContent).join();
	})()`)); bad != "" {
		t.Errorf("under the pointer: %s", bad)
	}
	// The script formats as Go does: at its peak a line shows its figure.
	peak := browsertest.Must(t, ctx, chromedp.Evaluate[[]string](`(() => {
	  const data = JSON.parse(document.getElementById('data').textContent), plots = [...document.querySelectorAll('.plot')], wrong = [];
	  data.charts.forEach((c, k) => {
	    if (plots[k].parentElement.querySelector('.small b').textContent.startsWith('The legend')) return;
	    c.series.forEach((s, j) => {
	      const at = s.values.reduce((best, v, i) => v !== null && (best < 0 || v > s.values[best]) ? i : best, -1);
	      plots[k].dispatchEvent(new KeyboardEvent('keydown', {key: 'Home'}));
	      for (let i = 0; i < at; i++) plots[k].dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
	      const val = plots[k].parentElement.querySelectorAll('.legend .val')[j];
	      if (val.textContent !== val.dataset.figure) wrong.push(s.name + ': ' + val.textContent + ' for ' + val.dataset.figure);
	    });
	  });
	  return wrong;
	})()`))
	for _, w := range peak {
		t.Errorf("the script shows %s", w)
	}
	browsertest.Must(t, ctx, chromedp.Evaluate[bool](`document.querySelector('.plot').dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))`))
	if back := browsertest.Must(t, ctx, chromedp.Evaluate[readings](readout)); back != idle {
		t.Errorf("after Escape: %+v, before: %+v", back, idle)
	}
}

// zoomed returns what all charts, tracks and panels show of the run, in seconds.
const zoomed = `(() => {
  const data = JSON.parse(document.getElementById('data').textContent), end = (data.n - 1) * data.step;
  const part = (e, from, to) => { const [x, , w] = e.getAttribute('viewBox').split(' ').map(Number), wide = e.dataset.wide; return [from + x / wide * (to - from), from + (x + w) / wide * (to - from)]; };
  const pn = document.querySelector('.pn').dataset;
  const all = [
    ...[...document.querySelectorAll('.area > svg, .track svg')].map(e => part(e, 0, end)),
    ...[...document.querySelectorAll('.pn-plot svg')].map(e => part(e, +pn.from, +pn.to)),
  ];
  const round = v => Math.round(v);
  return {
    Shown: [...new Set(all.map(p => p.map(round).join(' to ')))], Drawings: all.length,
    Whole: '0 to ' + round(end), Reset: !document.querySelector('.clock button').hidden,
    Storm: data.phases.filter(p => p.name === 'storm').map(p => round(p.start) + ' to ' + round(p.end))[0],
  };
})()`

type zoom struct {
	Shown        []string
	Drawings     int
	Whole, Storm string
	Reset        bool
}

// TestChartsZoomTogether: dragging, a phase of the ruler and keys change the stretch of
// time of all charts, tracks and panels; a double click shows the whole run again.
func TestChartsZoomTogether(t *testing.T) {
	r := stormRun()
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(render(t, r, recording{result: r})), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx := browsertest.Start(t)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 860), chromedp.Navigate("file://"+file)); err != nil {
		t.Fatal(err)
	}
	expect := func(what string, ok func(zoom) bool) {
		t.Helper()
		if z := browsertest.Must(t, ctx, chromedp.Evaluate[zoom](zoomed)); len(z.Shown) != 1 || z.Drawings < 20 || !ok(z) {
			t.Errorf("%s: %+v", what, z)
		}
	}
	whole := func(z zoom) bool { return z.Shown[0] == z.Whole && !z.Reset }
	narrower := func(z zoom) bool { return z.Shown[0] != z.Whole && z.Reset }
	expect("at first", whole)
	box := browsertest.Must(t, ctx, chromedp.Evaluate[[]float64](`(() => { const a = document.querySelector('.area'); a.scrollIntoView({block: 'center'}); const b = a.getBoundingClientRect(); return [b.left + b.width * .3, b.left + b.width * .6, b.top + b.height / 2]; })()`))
	mouse := func(kind input.DispatchMouseEventType, x float64, clicks int64) {
		t.Helper()
		press := input.DispatchMouseEventParams{Type: kind, X: x, Y: box[2], Button: input.MouseButtonLeft, Buttons: 1, ClickCount: clicks}
		if _, err := chromedp.Call(ctx, input.DispatchMouseEvent, press); err != nil {
			t.Fatal(err)
		}
	}
	mouse(input.DispatchMouseEventTypeMousePressed, box[0], 1)
	mouse(input.DispatchMouseEventTypeMouseMoved, (box[0]+box[1])/2, 1)
	mouse(input.DispatchMouseEventTypeMouseMoved, box[1], 1)
	mouse(input.DispatchMouseEventTypeMouseReleased, box[1], 1)
	expect("dragged", narrower)
	for clicks := range int64(2) {
		mouse(input.DispatchMouseEventTypeMousePressed, box[0], clicks+1)
		mouse(input.DispatchMouseEventTypeMouseReleased, box[0], clicks+1)
	}
	expect("after a double click", whole)
	browsertest.Must(t, ctx, chromedp.Evaluate[bool](`(document.querySelectorAll('.ruler .band')[2].click(), true)`))
	expect("a phase clicked", func(z zoom) bool { return z.Shown[0] == z.Storm && z.Reset })
	browsertest.Must(t, ctx, chromedp.Evaluate[bool](`document.querySelector('.plot').dispatchEvent(new KeyboardEvent('keydown', {key: '0'}))`))
	expect("after 0", whole)
	browsertest.Must(t, ctx, chromedp.Evaluate[bool](`document.querySelector('.plot').dispatchEvent(new KeyboardEvent('keydown', {key: '+'}))`))
	expect("after +", narrower)
}

// TestVendoredLibraryIsUnchanged compares the chart library with the hashes of its README.
func TestVendoredLibraryIsUnchanged(t *testing.T) {
	readme, err := os.ReadFile("uplot/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"uPlot.iife.min.js", "uPlot.min.css", "LICENSE"} {
		text, err := pageFiles.ReadFile("uplot/" + name)
		if row := fmt.Sprintf("| %s | %x |", name, sha256.Sum256(text)); err != nil || !strings.Contains(string(readme), row) {
			t.Errorf("uplot/README.md has no row %q (%v)", row, err)
		}
	}
}

// The page is whole without script, and on paper.
func TestPageWithoutScriptAndPrinted(t *testing.T) {
	r := stormRun()
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(render(t, r, recording{result: r})), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx := browsertest.Start(t)
	if _, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 860), chromedp.Navigate("file://"+file)); err != nil {
		t.Fatal(err)
	}
	text := browsertest.Must(t, ctx, chromedp.Text(chromedp.CSS("main")))
	for _, want := range []string{"FAIL", "mutating-latency", "Where the time went", "outside handler -4.21 ms", keyFsync, "WAL fsync p99", "Peak", "loadgen run node-failure-storm --set nodes.count=500"} {
		if !strings.Contains(text, want) {
			t.Errorf("without script the page does not show %q", want)
		}
	}
	if strings.Contains(text, "Point at a chart") {
		t.Error("without script the page mentions a function that needs script")
	}
	pdf, err := chromedp.Call(ctx, cdppage.PrintToPDF, cdppage.PrintToPDFParams{PrintBackground: new(true)})
	if err != nil || len(pdf.Data) < 20_000 {
		t.Errorf("printed: %d bytes, %v", len(pdf.Data), err)
	}
	if dir := os.Getenv("STORMGLASS_SCREENSHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "printed.pdf"), pdf.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
