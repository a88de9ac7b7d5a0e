package scenario

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/internal/userfile"
)

//go:embed catalogue
var catalogue embed.FS

// Names lists the built-in scenarios, such as "rollout-500" and "features/WatchList", in alphabetical order.
func Names() (names []string) {
	_ = fs.WalkDir(catalogue, "catalogue", func(path string, f fs.DirEntry, err error) error { // embedded files give no error
		if name, ok := strings.CutSuffix(path, ".yaml"); ok {
			names = append(names, strings.TrimPrefix(name, "catalogue/"))
		}
		return err
	})
	slices.Sort(names) // WalkDir sorted them with the ending, which gives another order
	return names
}

// featurePrefix is the name prefix of scenarios that compare a feature gate off and on.
const featurePrefix = "features/"

// Source returns the text of a built-in scenario.
func Source(name string) ([]byte, error) {
	data, err := catalogue.ReadFile("catalogue/" + name + ".yaml")
	if err != nil {
		return nil, unknown(name)
	}
	return data, nil
}

const recordingEnding = ".recording.gz"

// RecordingSource returns a recording of the catalogue, by its file name. Built-in replays use such recordings.
func RecordingSource(file string) ([]byte, error) {
	if !strings.HasSuffix(file, recordingEnding) {
		return nil, fs.ErrNotExist
	}
	return catalogue.ReadFile("catalogue/" + file)
}

func unknown(name string) error {
	hint := strictyaml.Hint(name, Names(), "`loadgen scenarios` lists the built-in ones; a file needs a path or a .yaml ending")
	return fmt.Errorf("no scenario %q (%s)", name, hint)
}

// Read reads a built-in scenario by name, or a scenario file by path, and the files of its replays and templates. It
// applies the "path=value" overrides, sets defaults and validates the scenario. The returned error joins all errors,
// one line each.
func Read(nameOrFile string, overrides []string) (*Scenario, error) {
	return ReadContext(context.Background(), nameOrFile, overrides)
}

// ReadContext is like Read. If ctx ends while kubectl builds a kustomization, it ends kubectl and returns the cause.
func ReadContext(ctx context.Context, nameOrFile string, overrides []string) (*Scenario, error) {
	if data, err := Source(nameOrFile); err == nil {
		s, err := Parse(nameOrFile+".yaml", data, overrides)
		if err != nil {
			return nil, err
		}
		return s, s.readReplays("")
	}
	data, err := userfile.Read(nameOrFile, userfile.Text)
	if errors.Is(err, fs.ErrNotExist) && (!strings.ContainsAny(nameOrFile, "/.") || strings.HasPrefix(nameOrFile, featurePrefix)) {
		return nil, unknown(nameOrFile)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: cannot read the scenario: %w (`loadgen scenarios` lists the built-in ones; - is standard input)", nameOrFile, err)
	}
	s, err := Parse(nameOrFile, data, overrides)
	if err != nil {
		return nil, err
	}
	return s, s.readFiles(ctx, filepath.Dir(nameOrFile))
}

// ReadStdin is like Read for a scenario on standard input. Relative paths in the scenario are relative to the working
// directory.
func ReadStdin(ctx context.Context, stdin io.Reader, overrides []string) (*Scenario, error) {
	data, err := userfile.Stdin(ctx, stdin, userfile.Text)
	if err != nil {
		return nil, fmt.Errorf("stdin: cannot read the scenario: %w", err)
	}
	s, err := Parse("stdin", data, overrides)
	if err != nil {
		return nil, err
	}
	return s, s.readFiles(ctx, ".")
}

func (s *Scenario) readFiles(ctx context.Context, dir string) error {
	return errors.Join(s.readReplays(dir), s.readTemplates(ctx, dir))
}

// Parse reads a scenario from data. Errors report file as its file name.
func Parse(file string, data []byte, overrides []string) (*Scenario, error) {
	s, err := parseAll(file, data, overrides)
	if len(overrides) == 0 {
		return s, err
	}
	original, without := parseAll(file, data, nil)
	if err != nil {
		return nil, strictyaml.BlameOverrides(err, without, overrides)
	}
	s.original, s.overrides = original, overrides
	return s, nil
}

// Check calls `check` with the scenario. If the scenario's overrides cause an error, the error names them.
func (s *Scenario) Check(check func(*Scenario) error) error {
	err := check(s)
	if err == nil || s.original == nil {
		return err
	}
	return strictyaml.BlameOverrides(err, check(s.original), s.overrides)
}

func parseAll(file string, data []byte, overrides []string) (*Scenario, error) {
	s, err := parse(&Scenario{}, file, data, overrides, nil)
	if err != nil {
		return nil, err
	}
	if err := s.parseVariants(file, data, overrides); err != nil {
		return nil, err
	}
	return s, nil
}

// ParseRecorded reads the scenario of a finished run.
func ParseRecorded(file string, data []byte) (*Scenario, error) {
	return parse(&Scenario{recorded: true}, file, data, nil, nil)
}

// ReadRecorded reads the scenario of a run directory and the files that its loads need.
func ReadRecorded(file string) (*Scenario, error) {
	data, err := userfile.Read(file, userfile.Text)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot read the scenario: %w", file, err)
	}
	s, err := ParseRecorded(file, data)
	if err != nil {
		return nil, err
	}
	return s, s.readFiles(context.Background(), filepath.Dir(file))
}

// Recorded reports whether the scenario is from a finished run.
func (s *Scenario) Recorded() bool { return s.recorded }

// parse reads a scenario into s. overlay, if not nil, sets the fields of the variant s.Variant in the document.
func parse(s *Scenario, file string, data []byte, overrides []string, overlay func(*strictyaml.Document) error) (*Scenario, error) {
	doc, err := strictyaml.Parse(file, data)
	if err != nil {
		return nil, err
	}
	for _, o := range overrides {
		if err := doc.Set(o); err != nil {
			return nil, err
		}
	}
	if overlay != nil {
		if err := overlay(doc); err != nil {
			return nil, err
		}
	}
	variant := s.Variant
	s.doc = doc
	if err := doc.Decode(s); err != nil {
		return nil, err
	}
	if overlay != nil {
		s.Variant, s.Variants = variant, nil
	}
	s.setDefaults()
	if err := s.validate(); err != nil {
		return nil, err
	}
	if overlay != nil {
		s.keepGates()
	}
	return s, nil
}

// Errorf returns an error at a field of the scenario's file: "FILE:LINE: PATH:
// MESSAGE (HINT)". List items appear by name or number: "gates.recovered.max".
func (s *Scenario) Errorf(path, hint, format string, args ...any) error {
	if s.doc == nil {
		s.doc = &strictyaml.Document{File: s.Name} // built in code: there are no lines
	}
	return s.doc.Errorf(path, hint, format, args...)
}

// Written reports whether the scenario's file, or an override, sets the field at path.
func (s *Scenario) Written(path string) bool { return s.doc != nil && s.doc.Written(path) }

// Resolved returns the scenario with overrides and defaults applied, as YAML for Parse.
func (s *Scenario) Resolved() ([]byte, error) { return yaml.Marshal(s) }

// DropGates removes gates by name from the scenario and its variants.
func (s *Scenario) DropGates(names []string) error {
	for _, name := range names {
		named := func(g Gate) bool { return g.Name == name }
		before := len(s.Gates)
		if s.Gates = slices.DeleteFunc(s.Gates, named); len(s.Gates) == before {
			known := strings.Join(namesOf(s.Gates, func(g Gate) string { return g.Name }), ", ")
			return fmt.Errorf("--without-gate %s: scenario %s has no such gate (it has %s)", name, s.Name, known)
		}
		for _, v := range s.variants {
			v.Gates = slices.DeleteFunc(v.Gates, named)
		}
	}
	return nil
}

// Phase returns the phase with the given name, or nil.
func (s *Scenario) Phase(name string) *Phase {
	if i := slices.Index(s.PhaseNames(), name); i >= 0 {
		return &s.Phases[i]
	}
	return nil
}

// PhaseNames lists the names of the phases in order.
func (s *Scenario) PhaseNames() []string {
	return namesOf(s.Phases, func(p Phase) string { return p.Name })
}

// Loads lists all loads with their paths, background loads first.
func (s *Scenario) Loads() []PlacedLoad {
	var all []PlacedLoad
	for i := range s.Background {
		all = append(all, PlacedLoad{Load: &s.Background[i], Path: fmt.Sprintf("background[%d]", i)})
	}
	for i := range s.Phases {
		p := &s.Phases[i]
		for j := range p.Load {
			all = append(all, PlacedLoad{Load: &p.Load[j], Phase: p.Name, Path: fmt.Sprintf("phases[%d].load[%d]", i, j)})
		}
	}
	return all
}

// PlacedLoad is a load with its location in the scenario.
type PlacedLoad struct {
	*Load
	// Phase is the name of the load's phase; empty for a background load.
	Phase string
	// Path is the path of the load in the scenario.
	Path string
}

// ForNodes returns a scenario that contains only simulated nodes.
func ForNodes(count int, fidelity string, overrides []string) (*Scenario, error) {
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\nname: nodes\nphases: [{name: nodes, for: 24h}]\n", APIVersion, Kind)
	sets := []string{fmt.Sprintf("nodes.count=%d", count), "nodes.fidelity=" + fidelity}
	return Parse("nodes", []byte(text), append(sets, overrides...))
}
