package observe

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/stormglass/stormglass/internal/loopback"
)

type answer struct {
	data     any
	warnings annotations.Annotations
	query    string // the query that caused the warnings
}

// handle handles one API request. It returns a badData error if the request is invalid.
type handle func(*http.Request) (answer, error)

type badData struct{ error }

func badParameter(name string, err error) error {
	return badData{fmt.Errorf("invalid parameter %q: %w", name, err)}
}

type response struct {
	Status    string   `json:"status"`
	Data      any      `json:"data,omitempty"`
	ErrorType string   `json:"errorType,omitempty"`
	Error     string   `json:"error,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Infos     []string `json:"infos,omitempty"`
}

// handler returns the HTTP handler for all read-only paths of the API.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	both := []string{http.MethodGet, http.MethodPost} // clients send long queries as forms
	get := both[:1]
	for path, h := range map[string]struct {
		methods []string
		handle  handle
	}{
		"query":               {both, s.query},
		"query_range":         {both, s.queryRange},
		"query_exemplars":     {both, s.exemplars},
		"format_query":        {both, s.formatQuery},
		"series":              {both, s.series},
		"labels":              {both, s.labelNames},
		"label/{name}/values": {get, s.labelValues},
		"metadata":            {get, s.metadata},
		"targets":             {get, s.targets},
		"rules":               {get, s.ruleGroups},
		"alerts":              {get, s.alerts},
		"alertmanagers":       {get, s.alertmanagers},
		"status/buildinfo":    {get, s.buildInfo},
		"status/runtimeinfo":  {get, s.runtimeInfo},
		"status/flags":        {get, s.flags},
		"status/config":       {get, s.config},
	} {
		for _, method := range h.methods {
			mux.HandleFunc(method+" /api/v1/"+path, serve(h.handle))
		}
	}
	texts := map[string]string{"/-/healthy": "Prometheus Server is Healthy.\n", "/-/ready": "Prometheus Server is Ready.\n"}
	if s.c.Pages != nil {
		mux.Handle("GET /", s.c.Pages)
	} else {
		texts["/{$}"] = "Stormglass serves the query API of Prometheus here: add this address as a Prometheus data source to Grafana, or `promtool query instant " + s.URL() + " up`.\n"
	}
	for path, text := range texts {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
	}
	if s.c.Metrics != nil {
		mux.Handle("GET /metrics", promhttp.HandlerFor(s.c.Metrics, promhttp.HandlerOpts{}))
	}
	return s.guarded(mux)
}

// guarded returns a handler that refuses requests for other host names and requests without the token, unless the
// configuration permits them.
func (s *Server) guarded(h http.Handler) http.Handler {
	prefix := "/" + s.c.Token
	if s.c.Token != "" {
		h = http.StripPrefix(prefix, h)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch {
		case !s.c.Public && !loopback.IsHost(r.Host):
			http.Error(w, "this server accepts only requests from this machine: use the address 127.0.0.1", http.StatusForbidden)
		case s.c.Token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(s.c.Token)) != 1:
			http.Error(w, "wrong token: use the whole address that loadgen printed", http.StatusNotFound)
		case r.URL.Path == prefix && s.c.Token != "":
			http.Redirect(w, r, prefix+"/", http.StatusFound)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

func serve(h handle) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		code, out := http.StatusOK, response{Status: "success"}
		a, err := answer{}, error(nil)
		if err = r.ParseForm(); err != nil {
			err = badData{fmt.Errorf("error parsing form values: %w", err)}
		} else {
			a, err = h(r)
		}
		if err != nil {
			code, out.ErrorType = kindOf(err)
			out.Status, out.Error = "error", err.Error()
		} else {
			out.Data = a.data
		}
		out.Warnings, out.Infos = a.warnings.AsStrings(a.query, 10, 10)
		text, err := json.Marshal(out)
		if err != nil {
			code, text = http.StatusInternalServerError, []byte(`{"status":"error","errorType":"internal","error":"the response cannot be encoded as JSON"}`)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write(text) // an error means that the client has disconnected
	}
}

// kindOf returns the HTTP status and the API's error type for an error.
func kindOf(err error) (code int, kind string) {
	switch {
	case isA[badData](err):
		return http.StatusBadRequest, "bad_data"
	case isA[promql.ErrQueryTimeout](err):
		return http.StatusServiceUnavailable, "timeout"
	case isA[promql.ErrQueryCanceled](err), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable, "canceled"
	case isA[promql.ErrStorage](err):
		return http.StatusInternalServerError, "internal"
	}
	return http.StatusUnprocessableEntity, "execution"
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// limited returns the answer a with `all` as its data, truncated to the limit of the request. If it truncates the data,
// it adds a warning.
func limited[T any](a answer, all []T, limit int) answer {
	if limit > 0 && len(all) > limit {
		all = all[:limit]
		a.warnings = a.warnings.Add(errors.New("results truncated due to limit"))
	}
	if all == nil {
		all = []T{} // the API's empty list is [], not null
	}
	a.data = all
	return a
}
