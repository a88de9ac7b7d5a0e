package site

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/report/document"
	"github.com/stormglass/stormglass/loadgen/internal/runs"
	"github.com/stormglass/stormglass/loadgen/internal/web"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Server serves the pages of an index. It accepts only requests that read. It is safe for concurrent use.
type Server struct {
	index *runs.Index
	mux   *http.ServeMux
	id    string // ID of this server, which differs from the IDs of earlier servers at the same address

	reading chan struct{} // limits how many pages are made from metrics at the same time

	mu      sync.Mutex
	version int // version of the index from which groups and latest were computed
	groups  []group
	latest  news
}

// NewServer returns a server of the pages of an index. Until ctx ends, it reads the index in the background.
func NewServer(ctx context.Context, index *runs.Index) *Server {
	s := &Server{index: index, mux: http.NewServeMux(), id: rand.Text(), reading: make(chan struct{}, 1), version: -1}
	s.mux.HandleFunc("GET /{$}", s.serveList)
	s.mux.HandleFunc("GET /runs.json", s.serveJSON)
	s.mux.HandleFunc("GET /trend", s.serveTrend)
	s.mux.HandleFunc("GET /trend.json", s.serveTrendJSON)
	s.mux.HandleFunc("GET /trend.csv", s.serveTrendCSV)
	s.mux.HandleFunc("GET /compare", s.serveComparison)
	s.mux.HandleFunc("GET /run/{path...}", s.serveRun)
	go func() {
		ticks := time.NewTicker(rescan)
		defer ticks.Stop()
		for ctx.Err() == nil {
			index.Scan(ctx)
			select {
			case <-ctx.Done():
			case <-ticks.C:
			}
		}
	}()
	return s
}

// rescan is the time between two scans of the folders.
const rescan = 3 * time.Second

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-cache")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	s.mux.ServeHTTP(w, r)
}

// state returns the state of the index, and the groups and news that were computed from it.
func (s *Server) state() (runs.Snapshot, []group, news) {
	now := s.index.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version != now.Version {
		s.groups = groupsOf(now.Entries, 2)
		s.latest = latestNews(s.groups)
		s.version = now.Version
	}
	return now, s.groups, s.latest
}

func (s *Server) serveList(w http.ResponseWriter, r *http.Request) {
	now, groups, latest := s.state()
	v := viewOf(r)
	if !v.filter.Empty() || v.from > 0 {
		latest = news{}
	}
	if s.unchanged(w, r, now) {
		return
	}
	write(w, listPage(now, v, latest, groups, links{}))
}

// unchanged sets the version (ETag) of a page that depends only on the index. If the browser already has this version,
// unchanged answers the request and returns true.
func (s *Server) unchanged(w http.ResponseWriter, r *http.Request, now runs.Snapshot) bool {
	tag := fmt.Sprintf(`"%s-%d-%d"`, s.id, now.Version, now.Total)
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") != tag {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

func viewOf(r *http.Request) view {
	q := r.URL.Query()
	from, err := strconv.Atoi(q.Get("from"))
	if err != nil {
		from = 0
	}
	return view{from: from, filter: runs.Filter{
		Scenario: q.Get("scenario"), Variant: q.Get("variant"), Verdict: q.Get("verdict"), Version: q.Get("version"),
		Host: q.Get("host"), Label: q.Get("label"), Kind: q.Get("kind"), In: q.Get("in"), Text: q.Get("text"),
	}}
}

func write(w http.ResponseWriter, d document.Document) { writeWith(w, http.StatusOK, d) }

func writeWith(w http.ResponseWriter, status int, d document.Document) {
	var b bytes.Buffer
	if err := document.Write(&b, d); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", d.Policy())
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // an error means that the browser has disconnected
}

func writeJSON(w http.ResponseWriter, v any) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n'))
}

func (s *Server) serveJSON(w http.ResponseWriter, r *http.Request) {
	now := s.index.Snapshot()
	writeJSON(w, viewOf(r).filter.Select(now.Entries))
}

// groupFor returns the group that a request names, or the largest group. If no such group exists, it answers the
// request with an error, and ok is false.
func (s *Server) groupFor(w http.ResponseWriter, r *http.Request) (groups []group, g group, ok bool) {
	_, groups, _ = s.state()
	q := r.URL.Query()
	at := 0
	if q.Get("scenario") != "" {
		at = slices.IndexFunc(groups, func(g group) bool { return g.scenario == q.Get("scenario") && g.variant == q.Get("variant") })
	}
	if at < 0 || len(groups) == 0 {
		notFound(w, "A trend needs at least two judged runs of the scenario.")
		return nil, group{}, false
	}
	return groups, groups[at], true
}

func notFound(w http.ResponseWriter, why string) {
	d := links{}.newDocument("Not found")
	d.Links = []document.Link{{Text: "All runs", To: "./"}}
	d.Lead = []string{why}
	writeWith(w, http.StatusNotFound, d)
}

func (s *Server) serveTrend(w http.ResponseWriter, r *http.Request) {
	if groups, g, ok := s.groupFor(w, r); ok {
		write(w, trendPage(groups, g, links{}))
	}
}

func (s *Server) serveTrendJSON(w http.ResponseWriter, r *http.Request) {
	if _, g, ok := s.groupFor(w, r); ok {
		writeJSON(w, runs.Trend(g.all))
	}
}

func (s *Server) serveTrendCSV(w http.ResponseWriter, r *http.Request) {
	if _, g, ok := s.groupFor(w, r); ok {
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		_, _ = io.WriteString(w, trendCSV(g))
	}
}

// files are the files of an entry that the server sends, with their types.
var files = map[string]string{
	result.HTMLFile: "text/html; charset=utf-8", result.ABHTMLFile: "text/html; charset=utf-8",
	result.CapacityHTMLFile: "text/html; charset=utf-8", result.ComparisonHTMLFile: "text/html; charset=utf-8",
	result.ResultFile: "application/json", result.ABFile: "application/json", result.CapacityFile: "application/json",
	result.ComparisonFile: "application/json", result.RunFile: "application/json",
	result.ScenarioFile: "text/plain; charset=utf-8", result.JUnitFile: "text/plain; charset=utf-8", result.TimelineFile: "text/plain; charset=utf-8",
}

// filePolicy lets a page of a run use its own script, but gives it no access to other pages and no network: the files of
// a folder may come from anyone.
const filePolicy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; sandbox allow-scripts"

// serveRun sends a file of an entry, or a generated page if the entry has no report.
func (s *Server) serveRun(w http.ResponseWriter, r *http.Request) {
	dir, name := path.Split(r.PathValue("path"))
	now, groups, _ := s.state()
	e := now.Find(strings.TrimSuffix(dir, "/"))
	kind := files[name]
	switch {
	case e != nil && name == "" && e.Verdict == runs.Running:
		s.serveActive(w, r, e, groups)
		return
	case e != nil && name == "" && e.Page != "": // the run has ended
		w.Header().Set("Location", e.Page) // http.Redirect would lose a token in the path
		w.WriteHeader(http.StatusFound)
		return
	case e != nil && name == "":
		write(w, entryPage(e, groups))
		return
	case e == nil || kind == "":
		http.Error(w, "the folder has no such file", http.StatusNotFound)
		return
	}
	f, err := e.OpenFile(name)
	if err != nil {
		http.Error(w, "the folder has no such file", http.StatusNotFound)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Security-Policy", filePolicy)
	if name != e.Page {
		http.ServeContent(w, r, name, time.Time{}, f)
		return
	}
	page, err := links{}.withLinks(f, e, groups)
	if err != nil {
		http.Error(w, "the page cannot be read", http.StatusInternalServerError)
		return
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(page))
}

// refresh is the time after which a browser loads the page of an active run again, in seconds.
const refresh = "10"

// serveActive sends a report about an active run so far. If the run recorded too little, it sends the entry's page.
func (s *Server) serveActive(w http.ResponseWriter, r *http.Request, e *runs.Entry, groups []group) {
	w.Header().Set("Refresh", refresh)
	var page []byte
	err := s.alone(r, func() (err error) { page, err = reportSoFar(r.Context(), e); return err })
	if err == nil {
		page, err = links{}.withLinks(bytes.NewReader(page), e, groups)
	}
	if err != nil {
		write(w, entryPage(e, groups))
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", filePolicy)
	_, _ = w.Write(page) // an error means that the browser has disconnected
}

func reportSoFar(ctx context.Context, e *runs.Entry) ([]byte, error) {
	a, err := archive.Open(e.Dir) // a copy of what is recorded so far
	if err != nil {
		return nil, err
	}
	defer func() { _ = a.Close() }() // it was only read
	headline := "No phase is in progress."
	if e.State != "" {
		headline = "Phase " + e.State + " is in progress."
	}
	return web.Page(ctx, e.Dir, e.Scenario, a, report.Live{Word: "running", Headline: headline + " The gates are judged at the end.", Remote: true})
}

// alone calls make when no other page that reads metrics is being made. It does not wait after the browser disconnects.
// Send the page after alone has returned, because a slow browser must not block others.
func (s *Server) alone(r *http.Request, make func() error) error {
	select {
	case s.reading <- struct{}{}:
	case <-r.Context().Done():
		return r.Context().Err()
	}
	defer func() { <-s.reading }()
	return make()
}

// entryPage returns the page of an entry without a report: an active, killed or damaged run.
func entryPage(e *runs.Entry, groups []group) document.Document {
	d := links{}.newDocument(cmp.Or(e.Name(), e.Path))
	d.Links = links{}.around(e, groups)
	d.Word, d.Style = strings.ToUpper(e.Verdict), e.Style
	d.Line = "Started " + when(e)
	if e.State != "" {
		d.Lead = append(d.Lead, "Phase "+e.State+" is in progress.")
	}
	d.Lead = append(d.Lead, e.Why...)
	switch e.Verdict {
	case runs.Running:
		d.Lead = append(d.Lead, "This page shows charts as soon as the run has recorded metrics.")
	case runs.Unjudged:
		d.Lead = append(d.Lead, "Run `loadgen report` with this directory to judge the run and to write its report.")
	}
	return d
}
