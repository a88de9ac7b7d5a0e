package spans

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// saved writes the kept traces to a run's directory.
func saved(t *testing.T, k *Keeper) (dir string) {
	t.Helper()
	k.Flush()
	dir = t.TempDir()
	if err := (Index{Counts: k.Counts()}).Write(dir, k.Kept()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Times that an int64 cannot hold become the latest time, not a negative one.
func TestLateTimes(t *testing.T) {
	const year2500 = 16_725_225_600_000_000_000
	got, _ := FromProto([]*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{
		TraceId: slices.Repeat([]byte{1}, 16), SpanId: slices.Repeat([]byte{1}, 8), StartTimeUnixNano: year2500, EndTimeUnixNano: year2500 + 1, Events: []*tracepb.Span_Event{{TimeUnixNano: year2500}},
	}}}}}}, "p")
	_, err := ReadOTLP(strings.NewReader(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"01010101010101010101010101010101","spanId":"0101010101010101",`+
		`"startTimeUnixNano":"16725225600000000000","endTimeUnixNano":16725225600000000001,"events":[{"timeUnixNano":"16725225600000000000"}]}]}]}]}`), func(s Span) { got = append(got, s) })
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	for _, s := range got {
		if s.Start != latestTime || s.End != latestTime || len(s.Events) != 1 || s.Events[0].At != latestTime {
			t.Errorf("from %d to %d, events %v", s.Start, s.End, s.Events)
		}
	}
}

// An attribute of any type has the same text as protobuf and as JSON.
func TestValues(t *testing.T) {
	for text, v := range map[string]*commonpb.AnyValue{
		`{"stringValue":"\"a\""}`: {Value: &commonpb.AnyValue_StringValue{StringValue: `"a"`}},
		`{"boolValue":true}`:      {Value: &commonpb.AnyValue_BoolValue{BoolValue: true}},
		`{"intValue":"-5"}`:       {Value: &commonpb.AnyValue_IntValue{IntValue: -5}},
		`{"intValue":7}`:          {Value: &commonpb.AnyValue_IntValue{IntValue: 7}},
		`{"doubleValue":1.5}`:     {Value: &commonpb.AnyValue_DoubleValue{DoubleValue: 1.5}},
		`{}`:                      {},
		`null`:                    nil,
	} {
		var got value
		if err := got.UnmarshalJSON([]byte(text)); err != nil || string(got) != textOf(v) {
			t.Errorf("%s is %q, %v; want %q", text, got, err, textOf(v))
		}
	}
}

// ReadOTLP refuses a line with many small objects, which would take much more memory than the line.
func TestLinesOfManyObjectsAreRefused(t *testing.T) {
	for _, element := range []string{"{},", "null,"} {
		line := `{"resourceSpans":[{"scopeSpans":[{"spans":[` + strings.Repeat(element, maxObjects) + "{}]}]}]}"
		if _, err := ReadOTLP(strings.NewReader(line), func(Span) {}); err == nil || !strings.HasPrefix(err.Error(), "line 1: it has 50") {
			t.Errorf("%s: %v", element, err)
		}
	}
}

func FuzzReadOTLP(f *testing.F) {
	var b bytes.Buffer
	s := span(2, 1, "a", 1, 2)
	s.Link = Link{traceID(7), id(9)}
	s.Attributes, s.Events = []Attribute{{"k", "v"}}, []Event{{"e", 5, []Attribute{{"k", "v"}}}}
	if err := WriteOTLP(&b, []Span{span(1, 0, "a", 1, 2), s}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"intValue":"1"}}]},"scopeSpans":[{"spans":[{"traceId":"01010101010101010101010101010101","spanId":"0101010101010101"}]}]}]}`))
	f.Add([]byte(`{"resourceSpans":null}` + "\n\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		read := func(data []byte) (all []Span) {
			_, err := ReadOTLP(bytes.NewReader(data), func(s Span) {
				s.Limit()
				all = append(all, s)
			})
			if err != nil && !strings.Contains(err.Error(), "line") {
				t.Error(err)
			}
			return all
		}
		all := read(data)
		checkTree(t, all)
		var b bytes.Buffer
		if err := WriteOTLP(&b, all); err != nil {
			t.Fatal(err)
		}
		again := read(b.Bytes())
		if len(again) != len(all) {
			t.Fatalf("%d spans are read back, want %d", len(again), len(all))
		}
		for _, s := range all { // WriteOTLP orders spans by process
			same := func(x Span) bool {
				return x.Trace == s.Trace && x.ID == s.ID && x.Parent == s.Parent && x.Start == s.Start && x.End == s.End && x.Name == s.Name && x.Link == s.Link
			}
			if !slices.ContainsFunc(again, same) {
				t.Fatalf("%+v is not read back", s)
			}
		}
	})
}

func FuzzNewTree(f *testing.F) {
	f.Add([]byte{1, 0, 0, 100, 2, 1, 10, 90, 3, 2, 20, 80})
	f.Add([]byte{1, 2, 0, 100, 2, 1, 10, 90, 3, 3, 80, 20})
	f.Fuzz(func(t *testing.T, data []byte) {
		var all []Span
		for s := range slices.Chunk(data, 4) {
			if len(s) == 4 {
				all = append(all, Span{ID: ID{s[0]}, Parent: ID{s[1]}, Start: int64(s[2]), End: int64(s[3])})
			}
		}
		checkTree(t, all)
	})
}
