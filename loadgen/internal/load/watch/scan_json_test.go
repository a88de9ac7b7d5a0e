package watch

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

func (s *seen) take(e *event) error {
	s.lines = append(s.lines, line(e))
	return nil
}

func line(e *event) string {
	return fmt.Sprintf("%d rv=%d code=%d ends=%v name=%x namespace=%x stamp=%q", e.kind, e.rv, e.code, e.ends, e.name, e.namespace, e.stamp)
}

// reference reads the same events with encoding/json, up to the first invalid document. ok is false if there is one.
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
		var e event
		kind, _ := fields["type"].(string)
		e.kind = kindOf([]byte(kind))
		object, _ := fields["object"].(map[string]any)
		number, _ := object["code"].(json.Number)
		e.code, _ = strconv.Atoi(string(number))
		metadata, _ := object["metadata"].(map[string]any)
		version, _ := metadata["resourceVersion"].(string)
		e.rv, _ = strconv.ParseUint(version, 10, 64)
		if e.rv == 1<<64-1 && version != "18446744073709551615" {
			e.rv = 0 // ParseUint returns the maximum for a version that is too large
		}
		if len(version) > 20 {
			e.rv = 0 // leading zeros, which no server writes
		}
		if name, ok := metadata["name"].(string); ok {
			e.name = hash([]byte(name))
		}
		if namespace, ok := metadata["namespace"].(string); ok {
			e.namespace = hash([]byte(namespace))
		}
		annotations, _ := metadata["annotations"].(map[string]any)
		stamp, _ := annotations[StampAnnotation].(string)
		e.stamp = []byte(stamp)
		e.ends = annotations[endAnnotation] == "true"
		lines = append(lines, line(&e))
	}
}

// scanPieces feeds the stream, split at random places, to a scanner.
func scanPieces(s scanner, stream []byte, seed uint64) error {
	cut := rand.New(rand.NewPCG(seed, 1))
	for len(stream) > 0 {
		n := 1 + cut.IntN(min(len(stream), 40))
		// Feed a copy and overwrite it afterwards: the scanner must not keep references to a piece.
		piece := bytes.Clone(stream[:n])
		if err := s.feed(piece); err != nil {
			return err
		}
		clear(piece)
		stream = stream[n:]
	}
	if !s.idle() {
		return io.ErrUnexpectedEOF
	}
	return nil
}

const configMapEvent = `{"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"flood-0","namespace":"storm","uid":"1","resourceVersion":"1234","creationTimestamp":"2026-11-21T00:00:00Z","annotations":{"other":"{\"a\":[\"]\"]}","stormglass.dev/stamp":"run:17"},"managedFields":[{"manager":"loadgen","fieldsV1":{"f:data":{".":{},"f:payload":{}}}}]},"data":{"payload":"} \" ] \\"}}}` + "\n"

var streams = []string{
	configMapEvent,
	configMapEvent + configMapEvent,
	`{"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"99","annotations":{"k8s.io/initial-events-end":"true"}}}}`,
	`{"type":"ERROR","object":{"kind":"Status","status":"Failure","message":"too old resource version: 1 (5)","reason":"Expired","code":410}}`,
	`{"object":{"code":410,"metadata":{"resourceVersion":"1","name":"a","namespace":"b"}},"type":"ADDED","object":{"metadata":{"annotations":{"stormglass.dev/stamp":"a"},"annotations":null}}}`,
	`{"type":"DELETED","object":{"metadata":{"resourceVersion":"7","annotations":{"\u0073tormglass.dev/stamp":"tab\t\ud83d\ude00"}}}}`,
	`{"type":5,"object":[{"metadata":{"resourceVersion":"3"}}]} {} {"type":"ADDED"}`,
	`{"type":"ADDED","object":{"metadata":{"resourceVersion":12},"code":-1e3,"x":[true,false,null,{"y":[]}]}}`,
	`{"type":"ADDED","object":`, `[]`, `{"type" "ADDED"}`, `{"type":"ADDED",}`, "\xff", `{"a":"` + strings.Repeat(`\n`, 90) + `"}`,
	"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"annotations\":{\"stormglass.dev/stamp\":\"\xff\xfe\"}}}}",
	// Errors of encoding/json within values that are not read.
	`{"a":[1,]}`, `{"a":{"b":}}`, `{"a":{"b" 1}}`, `{"a":[}`, `{"a":{]}`, `{"a":nul}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":1e}`,
	`{"a":"\x"}`, `{"a":"\u12g4"}`, "{\"a\":\"\x01\"}", "{\"a\":\"\n\"}", `{"a":+1}`, `{"a":tru` + "\x65}", `{"a":[[],{}],"b":{}}`, `{,}`, `{"a":1 2}`,
	`{"a":0,"b":-0,"c":1.5,"d":2E+7,"e":[-0.0e-1]}`,
	`{"a":` + strings.Repeat(`[{"b":`, 40) + `1` + strings.Repeat(`}]`, 40) + `}`,
	`{"a":` + strings.Repeat(`[{"b":`, 40) + `1` + strings.Repeat(`]}`, 40) + `}`,
	`{"type":"ADDED","object":{"metadata":{"resourceVersion":"18446744073709551616"}}} {"object":{"metadata":{"resourceVersion":"-1"}}}`,
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
	var got seen
	err := scanPieces(newJSON(&got, levelEvent), stream, seed)
	if valid != (err == nil) {
		t.Fatalf("error %v; encoding/json takes it: %v\n%q", err, valid, stream)
	}
	if len(got.lines) != len(want) {
		t.Fatalf("%d events, encoding/json reads %d\n%q", len(got.lines), len(want), stream)
	}
	for i := range want {
		if got.lines[i] != want[i] {
			t.Fatalf("event %d: %s\nencoding/json:  %s\n%q", i, got.lines[i], want[i], stream)
		}
	}
}

// For any stream, split anywhere, the scanner finds the events that encoding/json reads, and fails if encoding/json fails.
func FuzzJSON(f *testing.F) {
	for i, s := range streams {
		f.Add([]byte(s), uint64(i))
	}
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		if len(stream) > longestValue { // longer strings are refused on purpose
			return
		}
		checkScan(t, stream, seed)
	})
}

func TestNestingIsBoundedAsInEncodingJSON(t *testing.T) {
	for _, depth := range []int{9_999, 10_000} { // and the document itself
		stream := []byte(`{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`)
		_, valid := reference(stream)
		var got seen
		s := newJSON(&got, levelEvent)
		if err := s.feed(stream); valid != (err == nil) {
			t.Errorf("depth %d: error %v; encoding/json takes it: %v", depth, err, valid)
		}
	}
}

func TestScannerRefusesEndlessValues(t *testing.T) {
	var got seen
	s := newJSON(&got, levelEvent)
	stream := `{"type":"` + strings.Repeat("x", longestValue+1)
	if err := s.feed([]byte(stream)); err == nil {
		t.Error("the scanner accepts a type of 4 KiB: a stream could fill the memory")
	}
}

func TestScannersAllocateNothingPerEvent(t *testing.T) {
	for name, c := range map[string]struct {
		scanner
		stream []byte
	}{
		"json":     {newJSON(discard{}, levelEvent), []byte(configMapEvent)},
		"protobuf": {newProto(discard{}, levelEvent), protoEventOf(t, "MODIFIED", testMeta())},
	} {
		half := len(c.stream) / 2
		feed := func() {
			for _, p := range [][]byte{c.stream, c.stream[:half], c.stream[half:]} {
				if err := c.feed(p); err != nil {
					t.Fatal(err)
				}
			}
		}
		feed() // its buffers grow to what it needs
		if n := testing.AllocsPerRun(100, feed); n > 0 {
			t.Errorf("%s: %v allocations for two events", name, n)
		}
	}
}

type discard struct{}

func (discard) take(*event) error { return nil }

func BenchmarkScanJSON(b *testing.B) {
	payload := strings.Repeat("0123456789abcdef", 64)
	benchmarkScan(b, newJSON(discard{}, levelEvent), []byte(strings.Replace(configMapEvent, `} \" ] \\`, payload, 1)))
}

func benchmarkScan(b *testing.B, s scanner, stream []byte) {
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.feed(stream); err != nil {
			b.Fatal(err)
		}
	}
}
