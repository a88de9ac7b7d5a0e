package auditlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/gzip"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/stormglass/stormglass/loadgen/internal/auditlog/auditlogtest"
)

func generated(t testing.TB, lines int) []byte {
	t.Helper()
	var log bytes.Buffer
	if _, err := auditlogtest.Write(&log, auditlogtest.Options{Lines: lines, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	return log.Bytes()
}

// all reads a whole log and calls visit with each event.
func all(t testing.TB, log io.Reader, visit func(*Event)) *Reader {
	t.Helper()
	r := NewReader(log)
	var e Event
	for {
		err := r.Next(&e)
		if errors.Is(err, io.EOF) {
			return r
		}
		if err != nil {
			t.Fatal(err)
		}
		visit(&e)
	}
}

// fields formats the fields of an event as text.
func (e *Event) fields() string {
	o := &e.Object
	return fmt.Sprintf("%s %d %s %s %s/%s as %q by %s on %s %s/%s of %s/%s/%s code %d at %d %d",
		e.AuditID, e.Stage, e.Verb, e.URI, e.User, e.UserUID, e.As, e.UserAgent, o.Resource, o.Namespace, o.Name, o.Group, o.Version, o.Subresource, e.Code, e.Received, e.At)
}

// upstreamFields formats the same fields, as read with Kubernetes' own types.
func upstreamFields(t *testing.T, line []byte) string {
	t.Helper()
	var e auditv1.Event
	if err := json.Unmarshal(line, &e); err != nil {
		t.Fatal(err)
	}
	var o auditv1.ObjectReference
	if e.ObjectRef != nil {
		o = *e.ObjectRef
	}
	as, code := "", int32(0)
	if e.ImpersonatedUser != nil {
		as = e.ImpersonatedUser.Username
	}
	if e.ResponseStatus != nil {
		code = e.ResponseStatus.Code
	}
	return fmt.Sprintf("%s %d %s %s %s/%s as %q by %s on %s %s/%s of %s/%s/%s code %d at %d %d",
		e.AuditID, stageOf([]byte(e.Stage)), e.Verb, e.RequestURI, e.User.Username, e.User.UID, as, e.UserAgent, o.Resource, o.Namespace, o.Name, o.APIGroup, o.APIVersion, o.Subresource,
		code, e.RequestReceivedTimestamp.UnixMicro(), e.StageTimestamp.UnixMicro())
}

func TestEventsAreThoseOfUpstreamsTypes(t *testing.T) {
	log := generated(t, 2000)
	log = append(log, `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"a","stage":"Panic","requestURI":"/api/v1/pods?x=\u00e9\u003d","verb":"create",`+
		`"user":{"extra":{"username":["x"]},"username":"jane\"","groups":["a"]},"impersonatedUser":{"username":"root"},"objectRef":null,`+
		`"responseObject":{"kind":"List","items":[{"stage":"x","verb":"y"}]},"responseStatus":{"details":{"code":7},"code":500},"requestReceivedTimestamp":"2024-02-29T23:59:59.999999Z","stageTimestamp":"2024-03-01T00:00:00.500000+01:00"}`+"\n"...)
	lines := bytes.SplitAfter(log, []byte("\n"))
	n := 0
	for name, from := range map[string]io.Reader{"whole": bytes.NewReader(log), "byte by byte": iotest.OneByteReader(bytes.NewReader(log)), "compressed": bytes.NewReader(zipped(t, log))} {
		n = 0
		r := all(t, from, func(e *Event) {
			if got, want := e.fields(), upstreamFields(t, lines[n]); got != want {
				t.Fatalf("%s, line %d:\n got %s\nwant %s", name, n+1, got, want)
			}
			n++
		})
		if n != len(lines)-1 || r.Lines != int64(n) || r.Skipped != (Skipped{}) {
			t.Errorf("%s: %d events of %d lines, %+v", name, n, r.Lines, r.Skipped)
		}
	}
}

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// event returns a line with a body, at level Request.
func event(body string) string {
	return `{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"a","stage":"ResponseComplete","requestURI":"/x","verb":"patch","requestObject":` + body +
		`,"requestReceivedTimestamp":"2026-11-24T10:00:00.000001Z","stageTimestamp":"2026-11-24T10:00:00.000002Z"}`
}

func TestBodiesAreMeasured(t *testing.T) {
	large := `{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"` + strings.Repeat("x", 1<<20) + `"}}`
	for body, want := range map[string]Body{
		`{"spec":{"replicas":3}}`:                {Size: 23},
		`{"spec":{"kind":"a","apiVersion":"b"}}`: {Size: 38},
		`{"kind":"Pod","apiVersion":"v1"}`:       {Size: 32, Typed: true},
		`[{"op":"remove","path":"/metadata/x"}]`: {Size: 38, Array: true},
		`null`:                                   {},
		large:                                    {Size: len(large), Typed: true},
	} {
		for _, line := range []string{event(body), strings.Replace(event(body), `,"requestReceived`, `,"responseObject":{"kind":"Pod"},"requestReceived`, 1)} {
			got := 0
			all(t, strings.NewReader(line), func(e *Event) {
				got++
				if e.Body != want || e.Received+1 != e.At {
					t.Errorf("%.60s: %+v, want %+v", body, e.Body, want)
				}
			})
			if got != 1 {
				t.Errorf("%.60s: %d events", body, got)
			}
		}
	}
	// The body is the last field.
	line := strings.Replace(event("1"), `"requestObject":1,`, "", 1)
	line = strings.TrimSuffix(line, "}") + `,"requestObject":[1,2]}`
	all(t, strings.NewReader(line), func(e *Event) {
		if e.Body != (Body{Size: 5, Array: true}) {
			t.Errorf("last: %+v", e.Body)
		}
	})
}

func TestLinesThatAreNoEventsAreCounted(t *testing.T) {
	good := event("{}")
	log := strings.Join([]string{
		good,
		"",
		"I1124 10:00:00.000000 1 server.go:1] starting", // not JSON
		good[:58], // cut within a string; the server continued
		`{"kind":"Event","apiVersion":"v1","reason":"Started"}`,
		`[` + good + `]`,
		strings.Replace(good, "audit.k8s.io/v1", "audit.k8s.io/v1beta1", 1),
		strings.Replace(good, "audit.k8s.io/v1", "audit.k8s.io/v1alpha1", 1),
		strings.Replace(good, "ResponseComplete", "Later", 1),
		strings.Replace(good, `"verb":"patch"`, `"verb":""`, 1),
		strings.Replace(good, "2026-11-24T10:00:00.000001Z", "yesterday", 1),
		strings.Repeat("\x00", 4096),
		good[:60] + good,
		good,
		good[:len(good)-1], // cut at the end
	}, "\n")
	n := 0
	r := all(t, strings.NewReader(log), func(*Event) { n++ })
	want := Skipped{Cut: Lines{2, 4}, NoJSON: Lines{3, 3}, NoEvent: Lines{6, 5}}
	if n != 3 || r.Beta != 1 || r.Skipped != want || r.Lines != 15 {
		t.Errorf("%d events, %d of v1beta1, %+v of %d lines, want 3, 1, %+v of 15", n, r.Beta, r.Skipped, r.Lines, want)
	}
}

func TestCutCompressedLogIsAnError(t *testing.T) {
	data := zipped(t, generated(t, 200))
	damaged := bytes.Clone(data)
	damaged[len(damaged)/2] ^= 0xff
	for name, data := range map[string][]byte{"cut": data[:len(data)/2], "without its checksum": data[:len(data)-6], "damaged": damaged, "head only": data[:5]} {
		r := NewReader(bytes.NewReader(data))
		var err error
		for e := (Event{}); err == nil; {
			err = r.Next(&e)
		}
		if !errors.Is(err, ErrCut) {
			t.Errorf("%s: %v, want %v", name, err, ErrCut)
		}
	}
}

func TestTimesAreThoseOfPackageTime(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20000 {
		at := time.UnixMicro(r.Int64N(8e15)).UTC()
		got, ok := micros([]byte(at.Format("2006-01-02T15:04:05.000000Z")))
		if !ok || got != at.UnixMicro() {
			t.Fatalf("seed %d: %s: %d %t, want %d", seed, at, got, ok, at.UnixMicro())
		}
	}
	for _, text := range []string{"", "null", "2026-13-24T10:00:00.000001Z", "2026-11-24T24:00:00.000001Z", "2026-11-24 10:00:00.000001Z", "2026-11-24T10:00:0a.000001Z", "0001-01-01T00:00:00Z"} {
		if got, ok := micros([]byte(text)); ok {
			t.Errorf("%q is %d", text, got)
		}
	}
}

// FuzzReader checks that the reader never fails and counts each line once.
func FuzzReader(f *testing.F) {
	f.Add([]byte(event("{}") + "\n" + event("[1]")))
	f.Add(bytes.Repeat([]byte(`{"kind":{"user":{}}}`+"\n"), 3))
	f.Fuzz(func(t *testing.T, log []byte) {
		if bytes.HasPrefix(log, []byte("\x1f\x8b")) {
			return
		}
		n := int64(0)
		r := all(t, bytes.NewReader(log), func(*Event) { n++ })
		lines := int64(bytes.Count(log, []byte("\n")))
		if len(log) > 0 && log[len(log)-1] != '\n' {
			lines++
		}
		if skipped := r.Skipped.Cut.Count + r.Skipped.NoJSON.Count + r.Skipped.NoEvent.Count; r.Lines != lines || n+skipped > lines {
			t.Errorf("%d events and %d skipped of %d lines, the log has %d", n, skipped, r.Lines, lines)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	log := generated(b, 20000)
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		all(b, bytes.NewReader(log), func(*Event) {})
	}
	b.ReportMetric(20000*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}
