package recording

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func header(requests int64) Header {
	return Header{
		Start: time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC), Length: 60e6, Requests: requests,
		Actors: []Actor{{Name: "system:serviceaccount:shop:operator", UserAgent: "shop-operator/v0.4.1 (linux/amd64)"}, {Name: "jane", As: "root"}},
		Source: "a test", Dropped: map[string]int64{"kubelets": 7}, Notes: []string{"audit.log: 1 of 3 lines are not JSON"},
	}
}

func requests() []Request {
	return []Request{
		{At: 0, Verb: "watch", Version: "v1", Resource: "pods", LabelSelector: "app in (a,b)", ResourceVersion: "17", InitialEvents: true, Took: 60e6, Code: 200},
		{At: 5, Actor: 1, Verb: "list", Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", FieldSelector: "metadata.name=<x>", Limit: 500, Paged: true, Took: 1200, Code: 200},
		{At: 5, Actor: 1, Verb: "patch", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Namespace: "shop", Name: "web", PatchType: "application/merge-patch+json", Size: 42, Code: 409, DryRun: true},
	}
}

func write(t *testing.T, path string, h Header, all []Request) {
	t.Helper()
	err := Write(path, h, func(write func(*Request) error) error {
		for i := range all {
			if err := write(&all[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRecordingIsReadAsItWasWritten(t *testing.T) {
	for _, name := range []string{"storm.recording", "storm.recording.gz"} {
		path := filepath.Join(t.TempDir(), name)
		write(t, path, header(3), requests())
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if zipped := string(data[:2]) == "\x1f\x8b"; zipped != strings.HasSuffix(name, ".gz") {
			t.Errorf("%s: compressed %t", name, zipped)
		}
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		want := header(3)
		want.Format = Version
		if got := r.Header(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: header\n%+v, want\n%+v", name, got, want)
		}
		var got []Request
		for {
			var request Request
			err := r.Next(&request)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, request)
		}
		if !reflect.DeepEqual(got, requests()) {
			t.Errorf("%s: requests\n%+v, want\n%+v", name, got, requests())
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRecordingThatIsNotWholeLeavesNoFile(t *testing.T) {
	for what, spoil := range map[string]func(write func(*Request) error) error{
		"no request": func(func(*Request) error) error { return nil },
		"not in order": func(write func(*Request) error) error {
			all := requests()
			return errors.Join(write(&all[1]), write(&all[0]))
		},
	} {
		dir := t.TempDir()
		if err := Write(filepath.Join(dir, "storm.recording"), header(3), spoil); err == nil {
			t.Errorf("%s: Write returns no error", what)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: left %v", what, left)
		}
	}
}

// Earlier releases wrote the version of the format as "trace".
func TestFilesOfEarlierReleasesAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.trace")
	old := strings.Replace(line1, `"recording":1`, `"trace":1`, 1)
	if err := os.WriteFile(path, []byte(strings.Replace(old, `"requests":2`, `"requests":0`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if h := r.Header(); h.Format != Version || h.Trace != 0 {
		t.Errorf("header %+v", h)
	}
}

const line1 = `{"recording":1,"start":"2026-11-24T10:00:00Z","length":60000000,"requests":2,"actors":[{"name":"jane"}],"source":"a test","hashed":true}` + "\n"

func TestBadRecordingIsNamedByLineAndField(t *testing.T) {
	get := func(with string) string {
		return `{"actor":0,"verb":"get","version":"v1","resource":"pods",` + with + "}\n"
	}
	for content, want := range map[string]string{
		"":                        "recording FILE: it is empty (create one with `loadgen record`)",
		"\n\n":                    "recording FILE: it is empty (create one with `loadgen record`)",
		`{"kind":"Event"}` + "\n": "FILE:1: unknown field \"kind\" (is this a recording? create one with `loadgen record`)",
		"hello\n":                 "FILE:1: invalid character 'h' looking for beginning of value (is this a recording? create one with `loadgen record`)",
		`{"recording":2}` + "\n":  "FILE:1: recording: format 2 is unknown (this program reads 1)",
		`{"recording":1}` + "\n":  "FILE:1: start: the time is missing",
		strings.Replace(line1, "60000000", "18446744073709552", 1): "FILE:1: length: 18446744073709552 is out of bounds (from 0 to 2678400000000: 31 days)",
		line1 + get(`"at":1`):                                       "FILE:2: the recording ends after 1 of 2 requests (the file is truncated)",
		line1 + get(`"at":1`)[:40]:                                  "FILE:2: the line ends within its JSON object (the file is truncated)",
		line1 + get(`"at":1,"a":2`):                                 `FILE:2: unknown field "a"`,
		line1 + get(`"at":"1"`):                                     "FILE:2: at: cannot be a string",
		line1 + get(`"at":-1`):                                      "FILE:2: at: -1 is negative",
		line1 + "\n" + get(`"at":60000001`):                         "FILE:3: at: 60000001 plus took 0 exceeds the length of 60000000 in line 1",
		line1 + get(`"at":9`) + get(`"at":8`):                       "FILE:3: at: 8 is before the previous request, at 9 (requests must be in chronological order)",
		line1 + get(`"at":1`) + get(`"at":2`) + get(`"at":3`):       "FILE:4: the file has more requests than line 1 says (2)",
		line1 + strings.TrimSpace(get(`"at":1`)) + get(`"at":2`):    "FILE:2: unexpected data after the JSON object (each line must contain exactly one object)",
		line1 + `{"at":1,"actor":1,"verb":"get"}`:                   "FILE:2: actor: 1 is out of bounds (line 1 lists 1 actors, counted from 0)",
		line1 + `{"at":1,"verb":"read"}`:                            `FILE:2: verb: "read" is unknown (get, list, watch, create, update, patch, delete, deletecollection)`,
		line1 + `[]`:                                                "FILE:2: expected a JSON object, found array",
		line1 + get(`"at":1`) + strings.Repeat(" ", 2<<20) + "\n{}": "FILE:3: the line is longer than 1 MiB",
		"\x1f\x8b\x08junkjunkjunk":                                  "recording FILE: the gzip header is truncated or damaged",
	} {
		_, err := LoadData("FILE", []byte(content))
		if err == nil {
			t.Errorf("%.300q: no error, want %s", content, want)
			continue
		}
		if err.Error() != want {
			t.Errorf("%.300q:\n got %s\nwant %s", content, err, want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestCutCompressedRecordingIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "storm.recording.gz")
	write(t, path, header(3), requests())
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, keep := range []int{len(data) / 2, len(data) - 4} {
		if _, err := LoadData(path, data[:keep]); err == nil || !strings.Contains(err.Error(), "truncated or damaged") {
			t.Errorf("cut to %d bytes: %v", keep, err)
		}
	}
}

func TestSummaryCountsByVerbResourceAndActor(t *testing.T) {
	tally := NewTally()
	for _, r := range requests() {
		tally.Add(&r, r.At)
	}
	s := tally.Summary(60e6)
	if s.Requests != 3 || s.Rate != 0.05 {
		t.Errorf("%d requests, %g per second", s.Requests, s.Rate)
	}
	if got := s.ByVerb(); len(got) != 3 || got[0].Of != "list" || got[0].Requests != 1 {
		t.Errorf("by verb %+v", got)
	}
	if got := s.ByResource(); len(got) != 3 || got[1].Of != "deployments.apps/scale" {
		t.Errorf("by resource %+v", got)
	}
	if got := s.ByActor(); len(got) != 2 || got[0] != (Share[int]{1, 2, 2.0 / 60}) {
		t.Errorf("by actor %+v", got)
	}
	if s.Watches != (Lengths{1, 60e6, 60e6, 60e6}) {
		t.Errorf("watches %+v", s.Watches)
	}
}

func TestLengthsOfWatchesAreQuantiles(t *testing.T) {
	tally := NewTally()
	for n := range Micros(200) {
		tally.Add(&Request{Verb: "watch", Took: (200 - n) * 1e6}, 0)
	}
	tally.Add(&Request{Verb: "get", Took: 1e9}, 0)
	if got, want := tally.Summary(300e6).Watches, (Lengths{200, 100e6, 198e6, 200e6}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := threeDigits(123456); got != 123000 {
		t.Errorf("three digits of 123456: %d", got)
	}
}

func TestDispersionTellsBurstsFromEvenArrivals(t *testing.T) {
	const seconds, perSecond = 2000, 50
	const seed = 4
	r := rand.New(rand.NewPCG(seed, 0))
	request := Request{Verb: "get", Resource: "pods"}
	for _, c := range []struct {
		name     string
		at       func(i int) Micros
		from, to float64
	}{
		{"even", func(i int) Micros { return Micros(i) * 1e6 / perSecond }, 0, 0},
		{"at random", func(int) Micros { return Micros(r.Float64() * seconds * 1e6) }, 0.9, 1.1},
		{"all of ten seconds at once", func(i int) Micros { return Micros(i/(10*perSecond)) * 10e6 }, 440, 460},
	} {
		tally := NewTally()
		for i := range seconds * perSecond {
			tally.Add(&request, c.at(i))
		}
		if d := tally.Summary(seconds * 1e6).Dispersion; d < c.from || d > c.to {
			t.Errorf("%s (seed %d): dispersion %g, want %g to %g", c.name, seed, d, c.from, c.to)
		}
	}
}
