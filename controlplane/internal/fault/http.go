package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

const eventsWithin = 30 * time.Second

const maxFaultBytes = 1 << 16

// Handle adds to mux the paths of the control socket that control.Client uses for faults and events:
//
//	POST   /v1/faults            begins a fault; responds when it is active
//	POST   /v1/faults/check      reports whether a fault would begin
//	GET    /v1/faults            lists the faults
//	DELETE /v1/faults            ends all faults; responds when they are undone
//	DELETE /v1/faults/{id}       ends one fault; responds when it is undone
//	GET    /v1/events?after=N    waits for events with sequence numbers greater than N
//
// The body of an error response is a control.FaultRefusal. Its status is 400 for a fault that the plane does not
// support or an invalid request, 404 for an unknown ID, 409 for a fault that clashes with another fault, 410 for events
// of a plane that has ended, and 503 for other failures.
func Handle(mux *http.ServeMux, m *Manager, events *Events) {
	asked := func(do func(context.Context, control.Fault) (any, error)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			var f control.Fault
			decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxFaultBytes))
			decoder.DisallowUnknownFields() // a misspelt field must not be ignored
			if err := decoder.Decode(&f); err != nil {
				answer(w, nil, &control.InvalidFault{Problems: []control.Problem{{Path: "fault", Msg: err.Error(), Hint: "send a control.Fault as JSON"}}})
				return
			}
			out, err := do(r.Context(), f)
			answer(w, out, err)
		}
	}
	mux.HandleFunc("POST /v1/faults", asked(func(ctx context.Context, f control.Fault) (any, error) { return m.Begin(ctx, f) }))
	mux.HandleFunc("POST /v1/faults/check", asked(func(ctx context.Context, f control.Fault) (any, error) { return struct{}{}, m.Check(ctx, f) }))
	mux.HandleFunc("GET /v1/faults", func(w http.ResponseWriter, _ *http.Request) { answer(w, m.List(), nil) })
	mux.HandleFunc("DELETE /v1/faults", func(w http.ResponseWriter, r *http.Request) {
		list, err := m.ClearAll(r.Context())
		answer(w, list, err)
	})
	mux.HandleFunc("DELETE /v1/faults/{id}", func(w http.ResponseWriter, r *http.Request) {
		status, err := m.Clear(r.Context(), r.PathValue("id"))
		answer(w, status, err)
	})
	mux.HandleFunc("GET /v1/events", func(w http.ResponseWriter, r *http.Request) {
		after, err := strconv.ParseInt(r.FormValue("after"), 10, 64)
		if err != nil {
			answer(w, nil, &control.InvalidFault{Problems: []control.Problem{{
				Path: "after", Msg: fmt.Sprintf("%q is not a number", r.FormValue("after")), Hint: "the number of the last known event, or 0 for all events",
			}}})
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), eventsWithin)
		defer cancel()
		found, err := events.After(ctx, after)
		if found == nil {
			found = []control.Event{} // [], not null
		}
		answer(w, found, err)
	})
}

func answer(w http.ResponseWriter, out any, err error) {
	status := http.StatusOK
	if err != nil {
		refusal := control.FaultRefusal{Error: err.Error()}
		var invalid *control.InvalidFault
		switch {
		case errors.As(err, &invalid):
			status, refusal.Problems = http.StatusBadRequest, invalid.Problems
		case errors.As(err, new(*BusyError)):
			status = http.StatusConflict
		case errors.Is(err, control.ErrEnded):
			status = http.StatusGone
		case errors.Is(err, ErrNotFound):
			status = http.StatusNotFound
		default:
			status = http.StatusServiceUnavailable
		}
		out = refusal
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(out) // an error means that the client has disconnected
}
