package traffic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// seen collects events, each as a line.
type seen struct{ lines []string }

func (s *seen) take(e *event) {
	s.lines = append(s.lines, line(e.kind, e.rv, e.code, string(e.stamp)))
}

func line(kind eventKind, rv uint64, code int, stamp string) string {
	return fmt.Sprintf("%d rv=%d code=%d stamp=%q", kind, rv, code, stamp)
}

// reference reads the same events with encoding/json, up to the first document
// that is not one; ok is false if there is such a document.
func reference(stream []byte) (lines []string, ok bool) {
	d := json.NewDecoder(bytes.NewReader(stream))
	d.UseNumber()
	for {
		var doc any
		switch err := d.Decode(&doc); {
		case err == io.EOF:
			return lines, true
		case err != nil:
			return lines, false
		}
		fields, isObject := doc.(map[string]any)
		if !isObject {
			return lines, false
		}
		kind, _ := fields["type"].(string)
		object, _ := fields["object"].(map[string]any)
		number, _ := object["code"].(json.Number)
		code, _ := strconv.Atoi(string(number))
		metadata, _ := object["metadata"].(map[string]any)
		version, _ := metadata["resourceVersion"].(string)
		rv, _ := strconv.ParseUint(version, 10, 64)
		annotations, _ := metadata["annotations"].(map[string]any)
		stamp, _ := annotations[StampAnnotation].(string)
		lines = append(lines, line(kindOf([]byte(kind)), rv, code, stamp))
	}
}

// scanPieces feeds the stream cut at random places.
func scanPieces(stream []byte, seed uint64) ([]string, error) {
	var got seen
	s := newEventScanner(&got)
	cut := rand.New(rand.NewPCG(seed, 1))
	for len(stream) > 0 {
		n := 1 + cut.IntN(min(len(stream), 40))
		// A copy that is spoiled afterwards: nothing may be kept of a piece.
		piece := bytes.Clone(stream[:n])
		if err := s.feed(piece); err != nil {
			return got.lines, err
		}
		clear(piece)
		stream = stream[n:]
	}
	return got.lines, nil
}

const configMapEvent = `{"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"flood-0","namespace":"storm","uid":"1","resourceVersion":"1234","creationTimestamp":"2026-11-21T00:00:00Z","annotations":{"other":"{\"a\":[\"]\"]}","stormglass.dev/stamp":"run:17"},"managedFields":[{"manager":"loadgen","fieldsV1":{"f:data":{".":{},"f:payload":{}}}}]},"data":{"payload":"} \" ] \\"}}}` + "\n"

var streams = []string{
	configMapEvent,
	configMapEvent + configMapEvent,
	`{"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"99","annotations":{"k8s.io/initial-events-end":"true"}}}}`,
	`{"type":"ERROR","object":{"kind":"Status","status":"Failure","message":"too old resource version: 1 (5)","reason":"Expired","code":410}}`,
	`{"object":{"code":410,"metadata":{"resourceVersion":"1"}},"type":"ADDED","object":{"metadata":{"annotations":{"stormglass.dev/stamp":"a"},"annotations":null}}}`,
	`{"type":"DELETED","object":{"metadata":{"resourceVersion":"7","annotations":{"\u0073tormglass.dev/stamp":"tab\t\ud83d\ude00"}}}}`,
	`{"type":5,"object":[{"metadata":{"resourceVersion":"3"}}]} {} {"type":"ADDED"}`,
	`{"type":"ADDED","object":{"metadata":{"resourceVersion":12},"code":-1e3,"x":[true,false,null,{"y":[]}]}}`,
	`{"type":"ADDED","object":`, `[]`, `{"type" "ADDED"}`, `{"type":"ADDED",}`, "\xff", `{"a":"` + strings.Repeat(`\n`, 3000) + `"}`,
	"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"annotations\":{\"stormglass.dev/stamp\":\"\xff\xfe\"}}}}",
}

func TestScannerReadsAsEncodingJSONDoes(t *testing.T) {
	for _, stream := range streams {
		for seed := range uint64(30) {
			checkScan(t, []byte(stream), seed)
		}
	}
}

func checkScan(t *testing.T, stream []byte, seed uint64) {
	t.Helper()
	want, valid := reference(stream)
	got, err := scanPieces(stream, seed)
	if valid && err != nil {
		t.Fatalf("refused: %v\n%q", err, stream)
	}
	if len(got) < len(want) || valid && len(got) > len(want) {
		t.Fatalf("%d events, encoding/json reads %d\n%q", len(got), len(want), stream)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("event %d: %s\nencoding/json:  %s\n%q", i, got[i], want[i], stream)
		}
	}
}

// Any stream: no crash, and the events that encoding/json reads.
func FuzzScanner(f *testing.F) {
	for i, s := range streams {
		f.Add([]byte(s), uint64(i))
	}
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		if len(stream) > longestKey { // longer strings are refused on purpose
			return
		}
		checkScan(t, stream, seed)
	})
}

func TestScannerRefusesEndlessValues(t *testing.T) {
	var got seen
	s := newEventScanner(&got)
	stream := `{"type":"` + strings.Repeat("x", longestValue+1)
	if err := s.feed([]byte(stream)); err == nil {
		t.Error("a type of 4 KiB is accepted: a stream could fill the memory")
	}
	s = newEventScanner(&got)
	if err := s.feed([]byte(`{"` + strings.Repeat("k", 1<<20) + `":1}`)); err != nil || cap(s.partial) > 1<<16 {
		t.Errorf("a key of 1 MiB: error %v, %d bytes kept", err, cap(s.partial))
	}
}

func TestScannerAllocatesNothingPerEvent(t *testing.T) {
	s := newEventScanner(discard{})
	stream := []byte(configMapEvent)
	if n := testing.AllocsPerRun(100, func() {
		if err := s.feed(stream); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations per event", n)
	}
}

type discard struct{}

func (discard) take(*event) {}

func BenchmarkScanner(b *testing.B) {
	payload := strings.Repeat("0123456789abcdef", 64)
	stream := []byte(strings.Replace(configMapEvent, `} \" ] \\`, payload, 1))
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	s := newEventScanner(discard{})
	for b.Loop() {
		if err := s.feed(stream); err != nil {
			b.Fatal(err)
		}
	}
}
