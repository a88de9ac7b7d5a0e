package capture

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/auditlog"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// AuditOptions configure a recording of audit logs. Logs and Out are required.
type AuditOptions struct {
	// Logs are the paths of the logs, plain or compressed with gzip. "-" means Stdin.
	Logs  []string
	Stdin io.Reader
	// Out is the path of the recording. If the path ends in .gz, the recording is compressed.
	Out string
	// From and To limit the recorded time. A zero time means no limit.
	From, To time.Time
	// KeepNames reports whether the recording keeps the names of users, namespaces and objects. If false, it has hashes.
	KeepNames bool
	// KeepSystem reports whether the recording keeps the requests of controllers, the scheduler, kubelets and API
	// servers.
	KeepSystem bool
}

// Audit creates a recording from audit logs. It returns a usage error if a log is invalid.
func Audit(ctx context.Context, o AuditOptions) (*Result, error) {
	a := &audit{recorder: newRecorder(o.Out, o.KeepNames), o: o, accounts: &accounts{seen: map[accountUID]*sighting{}}}
	a.from, a.to = o.From, o.To
	for i, path := range o.Logs {
		if err := a.readLog(ctx, i, path); err != nil {
			return nil, err
		}
	}
	if a.events == 0 {
		return nil, exitcode.UsageError(a.nothing())
	}
	compared, err := a.accounts.check(a.strings.string, o.Logs)
	if err != nil {
		return nil, exitcode.UsageError(err)
	}
	if len(o.Logs) > 1 && !compared {
		a.note("loadgen could not check that all logs come from the same cluster, because no service account occurs in two of them")
	}
	if a.beta > 0 {
		a.note("%d events have the version audit.k8s.io/v1beta1, which has the fields of audit.k8s.io/v1", a.beta)
	}
	if a.oneTime > 0 {
		a.note("%d events lack requestReceivedTimestamp or stageTimestamp, so loadgen uses the other time for both", a.oneTime)
	}
	if !a.reads {
		a.note("the recording has no reads, because the logs contain no get, list or watch (does the audit policy leave out reads?)")
	}
	return a.write(ctx, recording.Header{Source: fmt.Sprintf("%d audit logs, %d events", len(o.Logs), a.events)})
}

type audit struct {
	*recorder
	o        AuditOptions
	accounts *accounts
	query    query
	// beta and oneTime are the sums of the fields Beta and OneTime of all auditlog.Readers.
	beta, oneTime int64
	reads         bool // whether the logs contain a get, list or watch
}

// nothing returns the error for logs that contain no audit event.
func (a *audit) nothing() error {
	what := cmp.Or(strings.Join(a.notes, "; "), "the logs are empty")
	return fmt.Errorf("no audit event was found: %s (the logs of kube-apiserver must have --audit-log-format=json)", what)
}

func (a *audit) readLog(ctx context.Context, log int, path string) error {
	from, name := io.Reader(&interruptible{ctx, a.o.Stdin}), "standard input"
	if path != "-" {
		f, err := userfile.Open(path, math.MaxInt64)
		if err != nil {
			return exitcode.Usagef("audit log %s: %w (specify a file, or - for standard input)", path, err)
		}
		defer f.Close()
		from, name = f, filepath.Base(path)
	}
	r := auditlog.NewReader(from)
	err := a.readEvents(ctx, r, log)
	switch {
	case errors.Is(err, auditlog.ErrCut):
		return exitcode.Usagef("audit log %s: %w after line %d (use the complete file)", path, err, r.Lines)
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return exitcode.Usagef("audit log %s: %w", path, userfile.Cause(err))
	}
	a.lines += r.Lines
	a.beta += r.Beta
	a.oneTime += r.OneTime
	for reason, skipped := range r.Skipped {
		if skipped.Count > 0 {
			a.note("%s: %d of %d lines %s (the first is line %d)", name, skipped.Count, r.Lines, auditlog.Reason(reason), skipped.First)
		}
	}
	return nil
}

func (a *audit) readEvents(ctx context.Context, r *auditlog.Reader, log int) error {
	var e auditlog.Event
	covered := span{math.MaxInt64, math.MinInt64}
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		err := r.Next(&e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if a.strings.full() {
			return errors.New("the names in the logs exceed 3 GiB (record a part with --from and --to)")
		}
		covered.from, covered.to = min(covered.from, e.At), max(covered.to, e.At)
		a.events++
		a.add(log, &e)
	}
	if covered.from <= covered.to {
		a.spans = append(a.spans, covered)
	}
	return nil
}

// add stores those fields of an event that a recording needs.
func (a *audit) add(log int, e *auditlog.Event) {
	user := a.strings.number(e.User)
	if len(e.UserUID) > 0 && bytes.HasPrefix(e.User, []byte("system:serviceaccount:")) {
		a.accounts.note(log, user, a.strings.number(e.UserUID), e.At)
	}
	outside := e.Stage.Ended() && e.At < micros(a.from) || !a.to.IsZero() && e.Received >= micros(a.to)
	if outside {
		if e.Stage.Ended() {
			a.dropped[outsideWindow]++
		}
		return
	}
	rec := record{id: idOf(e.AuditID), at: e.Received, end: e.At, oneTime: e.OneTime, stage: e.Stage, code: uint16(min(max(e.Code, 0), math.MaxUint16))}
	s := shape{longRunning: recording.LongRunning(string(e.Verb), string(e.Object.Subresource)), dropped: a.reason(e)}
	if s.dropped == "" {
		a.describe(&s, &rec, user, e)
	}
	rec.shape = a.records.shape(s)
	a.records.add(rec)
}

// reason returns the reason why the recording excludes the request of an event, or "" if it includes the request.
func (a *audit) reason(e *auditlog.Event) string {
	if len(e.Object.Resource) == 0 {
		return forNoResource
	}
	verb := string(e.Verb)
	if !slices.Contains(recording.Verbs(), verb) {
		return ofUnknownVerb
	}
	a.reads = a.reads || !recording.Shape{Verb: verb}.Writes()
	if a.o.KeepSystem {
		return ""
	}
	return systemSource(string(e.User), string(e.As), string(e.UserAgent))
}

// describe copies the fields that a recording needs from the event e to s and rec.
func (a *audit) describe(s *shape, rec *record, user uint32, e *auditlog.Event) {
	number := a.strings.number
	s.user, s.as, s.agent = user, number(e.As), number(e.UserAgent)
	s.verb, s.group, s.version, s.resource = number(e.Verb), number(e.Object.Group), number(e.Object.Version), number(e.Object.Resource)
	s.subresource, s.namespace = number(e.Object.Subresource), number(e.Object.Namespace)
	q := &a.query
	q.parse(e.Query())
	s.labels, s.fields = number(q.labels), number(q.fields)
	s.limit, s.paged, s.initialEvents, s.dryRun = q.limit, q.paged, q.initialEvents, q.dryRun
	if string(e.Verb) == "patch" {
		s.patchType = patchType(e, q)
	}
	rec.name, rec.revision = number(e.Object.Name), number(q.revision)
	rec.size = uint32(min(e.Body.Size, math.MaxUint32))
}

// patchType returns the content type of a patch, or "" if it is unknown. Audit events do not contain it, so patchType
// derives it from the query and the body.
func patchType(e *auditlog.Event, q *query) string {
	switch {
	case q.forced, e.Body.Typed && q.manager: // only server-side apply has the parameter force or requires a kind in the body
		return "application/apply-patch+yaml"
	case e.Body.Array:
		return "application/json-patch+json"
	}
	return ""
}

// interruptible is a reader whose Read also returns when ctx ends.
type interruptible struct {
	ctx  context.Context
	from io.Reader
}

func (r *interruptible) Read(p []byte) (int, error) {
	type answer struct {
		data []byte
		err  error
	}
	done := make(chan answer, 1)
	go func() { // this goroutine may outlive ctx, because a read cannot be interrupted
		data := make([]byte, len(p))
		n, err := r.from.Read(data)
		done <- answer{data[:n], err}
	}()
	select {
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	case a := <-done:
		return copy(p, a.data), a.err
	}
}
