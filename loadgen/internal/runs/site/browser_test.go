package site

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/stormglass/stormglass/internal/browsertest"
	"github.com/stormglass/stormglass/loadgen/internal/runs"
	"github.com/stormglass/stormglass/loadgen/internal/runs/runstest"
	"github.com/stormglass/stormglass/loadgen/result"
)

// overflow is the number of pixels by which the page is wider than the window.
const overflow = `document.documentElement.scrollWidth - document.documentElement.clientWidth`

// A user filters the list, follows a change to its trend, selects runs, and sees new runs, with the mouse or the keyboard.
func TestPagesInABrowser(t *testing.T) {
	dir := t.TempDir()
	all := runstest.Write(t, dir, 30, 1, func(i int, r *result.Result, scenario *string) {
		worse(i, r, scenario)
		if i == 3 {
			r.Verdict, r.Reasons = result.Fail, []string{"the webhook timed out"}
		}
	})
	server := serve(t, dir)
	ctx := browsertest.Start(t)
	var mu sync.Mutex
	var problems []string
	if err := chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch event := event.(type) {
		case *runtime.EventExceptionThrown:
			problems = append(problems, event.ExceptionDetails.Text)
		case *cdplog.EventEntryAdded:
			problems = append(problems, event.Entry.Text+" "+event.Entry.URL)
		}
	}); err != nil {
		t.Fatal(err)
	}
	open := func(url string) {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
			t.Fatal(err)
		}
	}
	click := func(selector string) {
		t.Helper()
		browsertest.Must(t, ctx, chromedp.Click(selector))
	}
	await := func(expression string) {
		t.Helper()
		browsertest.Must(t, ctx, chromedp.Poll[bool](expression))
	}
	rows := `[...document.querySelectorAll('#runs tbody tr')].filter(r => !r.hidden).length`
	shows := func(want int) {
		t.Helper()
		if n := browsertest.Must(t, ctx, chromedp.Evaluate[int](rows)); n != want {
			t.Errorf("%d rows, want %d", n, want)
		}
	}

	open(server.URL)
	shows(30)
	browsertest.Must(t, ctx, chromedp.SendKeys("input[name=text]", "webhook timed\r"))
	browsertest.Must(t, ctx, chromedp.WaitVisible(`input[name=text][value="webhook timed"]`))
	shows(1)
	open(server.URL)
	browsertest.Must(t, ctx, chromedp.Evaluate[bool](`(() => { const m = document.querySelector('select[name=verdict]'); m.value = 'fail'; m.dispatchEvent(new Event('change', {bubbles: true})); return true; })()`))
	browsertest.Must(t, ctx, chromedp.WaitReady("select[name=verdict] option[selected]"))
	shows(1)

	open(server.URL)
	await(`document.querySelector('.act button').disabled`)
	for _, i := range []int{19, 18} {
		click(`input[value="` + filepath.Base(all[i]) + `"]`)
	}
	await(`!document.querySelector('.act button').disabled`)
	// A new run appears, and the selection stays.
	runstest.Put(t, filepath.Join(dir, "latest"), runstest.Latest(), runstest.Scenario)
	await(`document.querySelectorAll('#runs tbody tr').length === 31 && document.querySelectorAll('input[name=run]:checked').length === 2`)
	click(`.act button`)
	browsertest.Must(t, ctx, chromedp.WaitVisible(`#h-differences`))
	for _, want := range []string{"mutating-latency", "controlPlane.webhookDelay", "does not prove a regression", "loadgen ab"} {
		if !browsertest.Must(t, ctx, chromedp.Evaluate[bool](`document.body.innerText.includes('`+want+`')`)) {
			t.Errorf("the page of two runs lacks %q", want)
		}
	}

	open(server.URL)
	click(`#changes td a[href^="run/"]`)
	browsertest.Must(t, ctx, chromedp.WaitVisible("h1"))
	if title := browsertest.Must(t, ctx, chromedp.Evaluate[string](`location.pathname`)); title != "/run/"+filepath.Base(all[19])+"/report.html" {
		t.Errorf("the change leads to %s", title)
	}

	click(`nav a:nth-of-type(4)`) // in the sandbox of the report
	browsertest.Must(t, ctx, chromedp.WaitVisible(`nav a[href*="`+filepath.Base(all[19])+`"]`))
	if path := browsertest.Must(t, ctx, chromedp.Evaluate[string](`location.pathname`)); path != "/run/"+filepath.Base(all[20])+"/report.html" {
		t.Errorf("the link to the run after leads to %s", path)
	}

	out := filepath.Join(t.TempDir(), "site")
	index, err := runs.Open([]string{dir}, []string{""})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Publish(t.Context(), index, out); err != nil {
		t.Fatal(err)
	}
	open("file://" + out + "/index.html")
	shows(31)
	browsertest.Must(t, ctx, chromedp.SendKeys("input[name=text]", "timed out"))
	await(rows + ` === 1`)
	browsertest.Must(t, ctx, chromedp.Evaluate[bool](`(() => { const f = document.querySelector('.filter'); f.elements.text.value = ''; f.elements.verdict.value = 'fail'; f.requestSubmit(); return true; })()`))
	shows(1)

	for _, width := range []int64{400, 2000} {
		for _, url := range []string{server.URL, server.URL + "/trend", server.URL + "/compare?run=" + filepath.Base(all[0]) + "&run=" + filepath.Base(all[19]), "file://" + out + "/trend-ci-gate.html"} {
			if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 860), chromedp.Navigate(url)); err != nil {
				t.Fatal(err)
			}
			if px := browsertest.Must(t, ctx, chromedp.Evaluate[int](overflow)); px > 0 {
				t.Errorf("%s is %d pixels wider than a window of %d", url, px, width)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(problems) > 0 {
		t.Errorf("problems in the browser:\n%s", strings.Join(problems, "\n"))
	}
}
