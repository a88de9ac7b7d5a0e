package auditlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

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
	log = append(log, `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"a","stage":"Panic","requestURI":"/version?x=\u00e9\u003d","verb":"create",`+
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
		strings.ReplaceAll(good, "Timestamp", "Stamp"),
		`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[` + good + `]}`,
		good,
		good[:len(good)-1], // cut at the end
	}, "\n")
	n := 0
	r := all(t, strings.NewReader(log), func(*Event) { n++ })
	want := Skipped{Cut: Lines{2, 4}, NoJSON: Lines{4, 3}, NoEvent: Lines{2, 5}, EventList: Lines{1, 15}, Incomplete: Lines{2, 9}, NoTime: Lines{1, 14}}
	if n != 4 || r.Beta != 1 || r.OneTime != 1 || r.Skipped != want || r.Lines != 17 {
		t.Errorf("%d events, %d of v1beta1, %d with one time, %+v of %d lines, want 4, 1, 1, %+v of 17", n, r.Beta, r.OneTime, r.Skipped, r.Lines, want)
	}
}

func TestEventsNeedNotBeLines(t *testing.T) {
	indent := func(text string) string {
		var b bytes.Buffer
		if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
			t.Fatal(err)
		}
		return b.String() + "\n"
	}
	good := event("{}")
	for name, log := range map[string]string{
		"several lines":               indent(good) + indent(good),
		"one line":                    good + " " + good,
		"after a cut one":             indent(good)[:100] + "\n" + indent(good) + good[:100] + "\nE1124 killed\n" + good,
		"two gzip members":            string(zipped(t, []byte(indent(good)))) + string(zipped(t, []byte(good))),
		"longer than the read buffer": indent(event(`{"data":"`+strings.Repeat("x", 2*bufferSize)+`"}`)) + good,
	} {
		n := 0
		r := all(t, strings.NewReader(log), func(*Event) { n++ })
		want := int64(0)
		if name == "after a cut one" {
			want = 3 // two cut events and a line that is not JSON
		}
		if n != 2 || r.Skipped.Total() != want {
			t.Errorf("%s: %d events, skipped %+v", name, n, r.Skipped)
		}
	}
}

func TestMissingTimesAndObjectsAreDerived(t *testing.T) {
	const received, stage = `,"requestReceivedTimestamp":"2026-11-24T10:00:00.000001Z"`, `,"stageTimestamp":"2026-11-24T10:00:00.000002Z"`
	for _, c := range []struct {
		time, instead string
		want          int64
	}{{received, "", 2}, {received, `,"requestReceivedTimestamp":null`, 2}, {stage, "", 1}} {
		n := 0
		all(t, strings.NewReader(strings.Replace(event("{}"), c.time, c.instead, 1)), func(e *Event) {
			n++
			if !e.OneTime || e.Received != e.At || e.At%10 != c.want {
				t.Errorf("%q instead of %s: %+v", c.instead, c.time, e)
			}
		})
		if n != 1 {
			t.Errorf("%q instead of %s: %d events", c.instead, c.time, n)
		}
	}
	for uri, want := range map[string]string{
		"/api/v1/pods?limit=5":                                  "pods / of /v1/",
		"/api/v1/namespaces/shop/pods/web/log":                  "pods shop/web of /v1/log",
		"/apis/apps/v1/namespaces/shop/deployments":             "deployments shop/ of apps/v1/",
		"/api/v1/namespaces":                                    "namespaces / of /v1/",
		"/api/v1/namespaces/shop/finalize":                      "namespaces shop/shop of /v1/finalize",
		"/api/v1/watch/namespaces/shop/pods":                    "pods shop/ of /v1/",
		"/apis/storage.k8s.io/v1/storageclasses/fast":           "storageclasses /fast of storage.k8s.io/v1/",
		"/apis/apps/v1":                                         " / of apps/v1/",
		"/readyz":                                               " / of //",
		"/apis/apps/v1/namespaces/shop/deployments/web/scale?a": "deployments shop/web of apps/v1/scale",
	} {
		n := 0
		all(t, strings.NewReader(strings.Replace(event("{}"), `"/x"`, `"`+uri+`"`, 1)), func(e *Event) {
			n++
			o := &e.Object
			if got := fmt.Sprintf("%s %s/%s of %s/%s/%s", o.Resource, o.Namespace, o.Name, o.Group, o.Version, o.Subresource); got != want {
				t.Errorf("%s: %s, want %s", uri, got, want)
			}
		})
		if n != 1 {
			t.Errorf("%s: %d events", uri, n)
		}
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

// FuzzReader checks that the reader never fails, and counts each line once and no record twice.
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
		if skipped := r.Skipped.Total(); r.Lines != lines || n+skipped > lines+int64(bytes.Count(log, []byte("}"))) {
			t.Errorf("read %d events and skipped %d of %d lines; the log has %d", n, skipped, r.Lines, lines)
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
