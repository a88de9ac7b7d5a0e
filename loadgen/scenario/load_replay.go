package scenario

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// Replayed contains the fields of a load of kind "replay".
type Replayed struct {
	// Recording: file of requests to replay, written by `loadgen record`; relative to the scenario file
	Recording string `yaml:"recording,omitempty" was:"trace"`
	// Speed: speed of a replay, default 1; 2 halves the times of all requests except lease renewals
	Speed float64 `yaml:"speed,omitempty" zero:"1"`
	// Copies: for a replay, the number of copies of each client in the recording, shifted in time; default 1
	Copies int `yaml:"copies,omitempty" zero:"1"`
	// OnMissing: what a replay does with requests for resources that the API server lacks: "fail" (default) or
	// "drop" (count them, but do not send them)
	OnMissing string `yaml:"onMissing,omitempty"`

	// Recorded is the recording as read from Recording; nil if only the scenario's text was read.
	Recorded *recording.Recording `yaml:"-"`

	data []byte // content of the recording's file
}

// Bounds of a replay.
const (
	minSpeed, maxSpeed = 0.01, 100
	maxCopies          = 100
	maxActors          = 2000 // maximum number of impersonated users in all copies together
	maxNamespaces      = 1000
)

func replayKind() loadKind {
	return loadKind{
		name: "replay", example: "[{kind: replay, recording: tuesday.recording.gz}]", results: []LoadResult{RequestResults, ReplayResults},
		recorded: true,
		fixed:    &refusal{"leave out verb, resource and similar fields", "a replay sends the requests of its recording"},
		fields: func(l *Load) []field {
			return []field{
				{name: "recording", set: l.Recording != ""}, {name: "speed", set: l.Speed != 0},
				{name: "copies", set: l.Copies != 0}, {name: "onMissing", set: l.OnMissing != ""},
			}
		},
		defaults: func(l *Load) {
			orDefault(&l.Speed, 1)
			orDefault(&l.Copies, 1)
			orDefault(&l.OnMissing, "fail")
		},
		validate: func(v *validator, path string, l *Load, _ map[string]*Load) { v.replay(path, l) },
	}
}

func (v *validator) replay(path string, l *Load) {
	if l.Recording == "" {
		v.fail(path+".recording", "write recording: FILE, which `loadgen record audit` writes", "the replay has no recording")
	}
	v.between(path+".speed", l.Speed, minSpeed, maxSpeed)
	v.between(path+".copies", float64(l.Copies), 1, maxCopies)
	v.oneOf(path+".onMissing", l.OnMissing, "fail", "drop")
}

// readRecording reads the recording of a replay. A relative path is relative to dir. If dir is "", the scenario is
// built in, and the path is relative to the catalogue.
func (s *Scenario) readRecording(l PlacedLoad, dir string) error {
	file := l.Recording
	data, err := RecordingSource(file)
	if dir != "" || err != nil {
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		if data, err = userfile.Read(file, userfile.Replay); err != nil {
			return s.Errorf(l.Path+".recording", "a relative path is relative to the directory of the scenario file", "cannot read %s: %v", file, err)
		}
	}
	t, err := recording.LoadData(file, data)
	if err != nil {
		return s.Errorf(l.Path+".recording", "", "%v", err)
	}
	return s.replays(l, t, data)
}

// replays sets t as the recording that the load replays. It returns an error if t is too large.
func (s *Scenario) replays(l PlacedLoad, t *recording.Recording, data []byte) error {
	fail := func(field, hint, format string, args ...any) error {
		return s.Errorf(l.Path+"."+field, hint, format, args...)
	}
	requests, actors, namespaces := len(t.Entries)*l.Copies, len(t.Actors)*l.Copies, len(t.Namespaces)*l.Copies+1
	hint := func(most, each int) string {
		if most < each {
			return "use a smaller recording"
		}
		return fmt.Sprintf("at most %d", most/each)
	}
	switch {
	case requests > maxReplay:
		return fail("copies", hint(maxReplay, len(t.Entries)), "%d copies of a recording with %d requests exceed the maximum of %d requests in a replay", l.Copies, len(t.Entries), maxReplay)
	case actors > maxActors:
		return fail("copies", hint(maxActors, len(t.Actors)), "%d copies of a recording with %d clients exceed the maximum of %d clients in a replay", l.Copies, len(t.Actors), maxActors)
	case namespaces > maxNamespaces:
		return fail("copies", hint(maxNamespaces-1, len(t.Namespaces)), "%d copies of a recording with %d namespaces exceed the maximum of %d namespaces in a replay", l.Copies, len(t.Namespaces), maxNamespaces)
	}
	l.Recorded, l.data = t, data
	return nil
}

func (l *Load) bundleRecording(files map[string][]byte) {
	if l.Recorded == nil {
		return
	}
	name := bundleName("recording-", l.Name, l.data) + ".jsonl"
	if strings.HasPrefix(string(l.data), "\x1f\x8b") {
		name += ".gz"
	}
	l.Recording, files[name] = name, l.data
}

// recordingNamespaces returns the number of namespaces that a replay uses in addition to the run's namespace: one for
// each namespace of the recording in each copy, and one for objects without a namespace.
func (l *Load) recordingNamespaces() int {
	if l.Recorded == nil {
		return 0
	}
	return len(l.Recorded.Namespaces)*l.Copies + 1
}

// Impersonates reports whether the load impersonates users.
func (l *Load) Impersonates() bool { return len(l.Tenants) > 0 || l.kind().recorded }

// ActorUser returns the user name with which the load replays the requests of an actor (a client in the recording).
// `copy` is the number of the recording's copy.
func (l *Load) ActorUser(a recording.Actor, copy int) string {
	name := a.Name
	if a.As != "" {
		name = a.As
	}
	return TenantUser(fmt.Sprintf("%s-%d:%s", l.Name, copy, name))
}

// Users returns the users that the load impersonates.
func (l *Load) Users() []string {
	var all []string
	for _, t := range l.Tenants {
		all = append(all, TenantUser(t.Name))
	}
	if l.Recorded != nil {
		for c := range l.Copies {
			for _, a := range l.Recorded.Actors {
				if user := l.ActorUser(a, c); !slices.Contains(all, user) {
					all = append(all, user)
				}
			}
		}
	}
	return all
}

// Objectives and bounds of the gates that are added to every replay.
const (
	replayRate       = "replay-rate-error"
	replayDispersion = "replay-dispersion-error"
	maxRate          = "1%"
	maxDispersion    = "10%"
)

// addReplayGates adds the gates that judge the fidelity of each replay, except gates that the scenario already has. It
// does not change the scenario of a finished run, which keeps the gates that judged the run.
func (s *Scenario) addReplayGates() {
	if s.recorded {
		return
	}
	for _, l := range s.Loads() {
		if !l.kind().recorded {
			continue
		}
		for _, own := range []struct{ objective, most string }{{replayRate, maxRate}, {replayDispersion, maxDispersion}} {
			has := func(g Gate) bool { return g.Objective == own.objective && (g.Load == "" || g.Load == l.Name) }
			if slices.ContainsFunc(s.Gates, has) {
				continue
			}
			bound := &Bound{}
			if bound.UnmarshalText([]byte(own.most)) != nil {
				continue // the default is a valid bound: see the tests
			}
			g := Gate{Name: l.Name + "-" + strings.TrimPrefix(own.objective, "replay-"), Objective: own.objective, Load: l.Name, Max: bound}
			for slices.ContainsFunc(s.Gates, func(o Gate) bool { return o.Name == g.Name }) {
				g.Name += "-too"
			}
			s.Gates = append(s.Gates, g)
		}
	}
}
