// Package auditsummary summarizes the load's requests in the audit logs of a control plane that Stormglass started.
// ReadLog creates the summary, which a run stores as audit.json in its directory.
package auditsummary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/auditlog"
	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Audit summarizes the load's requests in the audit logs of the API servers. It is the content of audit.json.
type Audit struct {
	// Files is the number of log files that were read.
	Files int `json:"files"`
	// Events is the number of events that Classes summarizes. Foreign counts events of other users. Other counts events
	// that are not the end of a request for a resource. Outside counts events whose request was not received in a
	// phase.
	Events  int64 `json:"events"`
	Foreign int64 `json:"foreign,omitempty"`
	Other   int64 `json:"other,omitempty"`
	Outside int64 `json:"outside,omitempty"`
	// Malformed is the number of lines that are not events. Torn is the number of lines that are incomplete because a
	// server was killed. Backwards is the number of requests that ended before they were received, because the
	// machine's clock was set back; Classes excludes them.
	Malformed int64   `json:"malformed,omitempty"`
	Torn      int64   `json:"torn,omitempty"`
	Backwards int64   `json:"backwards,omitempty"`
	Classes   []Class `json:"classes"`
}

// Class describes the load's requests in one phase with the same verb, resource and tenant.
type Class struct {
	Phase    string `json:"phase"`
	Verb     string `json:"verb"`     // as in audit events: an apply is a patch
	Resource string `json:"resource"` // such as deployments.apps or pods/status
	Tenant   string `json:"tenant,omitempty"`
	// Server is the time from the receipt of a request until its handler ended, by the API server's wall clock, whose
	// resolution is a microsecond.
	Server result.Latency       `json:"server"`
	Slow   *result.SlowRequests `json:"slow,omitempty"`
}

// Load reads audit.json from a run directory. It returns nil if there is no such file. Every error is a
// *result.Damaged.
func Load(dir string) (*Audit, error) {
	a := &Audit{}
	err := result.ReadJSON(dir, result.AuditFile, a)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return a, err
}

// Check returns an error if a class lacks a verb or resource, or has an impossible count or duration.
func (a *Audit) Check() error {
	for _, c := range a.Classes {
		if c.Verb == "" || c.Resource == "" || c.Server.Count < 0 || c.Server.Mean < 0 || c.Slow != nil && c.Slow.Count <= 0 {
			return fmt.Errorf("the class of verb %q and resource %q lacks a value or contains an impossible value", c.Verb, c.Resource)
		}
	}
	return nil
}

// ClassOf returns the class of a phase, verb, resource and tenant, and reports whether there is one.
func (a *Audit) ClassOf(phase, verb, resource, tenant string) (Class, bool) {
	if a == nil {
		return Class{}, false
	}
	for _, c := range a.Classes {
		if c.Phase == phase && c.Verb == verb && c.Resource == resource && c.Tenant == tenant {
			return c, true
		}
	}
	return Class{}, false
}

// highest is the longest duration that the histograms distinguish. The API server ends requests after one minute.
const highest = 2 * time.Minute

const tenantPrefix = "stormglass:tenant:"

type classKey struct{ phase, verb, resource, tenant string }

type classSum struct {
	server  *latency.Histogram
	slow    int64
	slowSum time.Duration
	layers  map[string]time.Duration
}

type summary struct {
	Audit
	user    string
	phases  []result.Phase
	classes map[classKey]*classSum
}

func (s *summary) add(e *auditlog.Event) {
	received := time.UnixMicro(e.Received)
	at := slices.IndexFunc(s.phases, func(p result.Phase) bool { return !received.Before(p.Start) && received.Before(p.End) })
	took := time.Duration(e.At-e.Received) * time.Microsecond
	switch {
	case at < 0:
		s.Outside++
		return
	case took < 0:
		s.Backwards++
		return
	}
	s.Events++
	key := classKey{
		phase: s.phases[at].Name, verb: string(e.Verb), resource: string(e.Object.Resource), tenant: strings.TrimPrefix(string(e.As), tenantPrefix),
	}
	if g := e.Object.Group; len(g) > 0 {
		key.resource += "." + string(g)
	}
	if sub := e.Object.Subresource; len(sub) > 0 {
		key.resource += "/" + string(sub)
	}
	c := s.classes[key]
	if c == nil {
		c = &classSum{server: latency.New(highest), layers: map[string]time.Duration{}}
		s.classes[key] = c
	}
	c.server.Record(took)
	if e.Layers != nil {
		c.slow++
		c.slowSum += took
		for layer, d := range e.Layers {
			c.layers[layer] += d
		}
	}
}

func (s *summary) audit() *Audit {
	a := &s.Audit
	for key, sum := range s.classes {
		c := Class{Phase: key.phase, Verb: key.verb, Resource: key.resource, Tenant: key.tenant, Server: sum.server.Latency()}
		if sum.slow > 0 {
			n := float64(sum.slow)
			c.Slow = &result.SlowRequests{Count: sum.slow, Mean: sum.slowSum.Seconds() / n, Layers: map[string]float64{}}
			for layer, d := range sum.layers {
				if layer != "total" { // the layer "total" equals Mean
					c.Slow.Layers[layer] = d.Seconds() / n
				}
			}
		}
		a.Classes = append(a.Classes, c)
	}
	order := func(c Class) int {
		return slices.IndexFunc(s.phases, func(p result.Phase) bool { return p.Name == c.Phase })
	}
	slices.SortFunc(a.Classes, func(x, y Class) int {
		return cmp.Or(cmp.Compare(order(x), order(y)), cmp.Compare(x.Resource, y.Resource),
			cmp.Compare(x.Verb, y.Verb), cmp.Compare(x.Tenant, y.Tenant))
	})
	return a
}

// ReadLog summarizes the audit logs of all API servers in dir, including rotated files. A request belongs to the phase
// in which the API server received it. user is the name of the load's user. ReadLog only counts events of other users,
// events outside of all phases, and invalid lines. ReadLog returns an error if ctx ends or a file cannot be read.
//
// Call ReadLog after the run: parsing the logs takes CPU time that the measured components need during the run.
func ReadLog(ctx context.Context, dir, user string, phases []result.Phase) (*Audit, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: %w", dir, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("find the audit log: %w", err)
	}
	s := &summary{Audit: Audit{Files: len(files), Classes: []Class{}}, user: user, phases: phases, classes: map[classKey]*classSum{}}
	for _, file := range files {
		if err := s.readFile(ctx, file); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
	}
	return s.audit(), nil
}

func (s *summary) readFile(ctx context.Context, path string) error {
	f, err := userfile.Open(path, math.MaxInt64)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	log := auditlog.NewReader(f)
	var e auditlog.Event
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		err := log.Next(&e)
		if errors.Is(err, io.EOF) {
			torn := log.Skipped[auditlog.Cut].Count
			s.Torn += torn
			s.Malformed += log.Skipped.Total() - torn
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		s.event(&e)
	}
}

func (s *summary) event(e *auditlog.Event) {
	switch {
	case string(e.User) != s.user:
		s.Foreign++
	case !e.Stage.Ended() || len(e.Object.Resource) == 0:
		s.Other++
	default:
		s.add(e)
	}
}
