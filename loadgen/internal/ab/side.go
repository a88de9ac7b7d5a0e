package ab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Side is one of the two compared configurations, A or B, with its scenario.
type Side struct {
	result.Side
	Scenario *scenario.Scenario
	// file is the side's config file, or "".
	file string
}

// gateSpec matches a feature gate and its value, such as WatchList=false.
var gateSpec = regexp.MustCompile(`^([A-Z][A-Za-z0-9]*)=(true|false)$`)

const specHint = "a controlplane binary, a config file, a baseline directory, a setting such as nodes.count=50, a feature gate such as WatchList=false, variant=NAME or rev=REVISION"

// NewSide parses specs, the values of the flag --a or --b. To get the scenario, it calls read with sets (the settings
// of both sides) and with the settings in specs. NewSide does not build the binary of a git revision; Build does.
func NewSide(ctx context.Context, flag string, specs, sets []string, read func(sets []string) (*scenario.Scenario, error)) (Side, error) {
	s := Side{Side: result.Side{Spec: specs}}
	s.Set = append(s.Set, sets...)
	for _, spec := range specs {
		if err := s.take(ctx, spec); err != nil {
			return s, fmt.Errorf("%s %s: %w", flag, spec, err)
		}
	}
	var err error
	if s.Scenario, err = read(s.Set); err != nil {
		return s, fmt.Errorf("%s: %w", flag, err)
	}
	if s.Variant != "" {
		if s.Scenario, err = s.Scenario.WithVariant(s.Variant); err != nil {
			return s, exitcode.Usagef("%s: %w", flag, err)
		}
	}
	return s, nil
}

func (s *Side) take(ctx context.Context, spec string) error {
	if gate := gateSpec.FindStringSubmatch(spec); gate != nil {
		s.Set = append(s.Set, "controlPlane.featureGates."+gate[1]+"="+gate[2])
		return nil
	}
	key, value, isSetting := strings.Cut(spec, "=")
	switch {
	case isSetting && key == "variant":
		if value == "" {
			return exitcode.Usagef("the name is missing (write variant=NAME)")
		}
		if s.Variant != "" {
			return exitcode.Usagef("variant=%s was already given (specify only one variant)", s.Variant)
		}
		s.Variant = value
		return nil
	case isSetting && key == "rev":
		if s.ControlPlane != "" {
			return exitcode.Usagef("%s was already given (specify only one binary or revision)", s.given())
		}
		return s.revision(ctx, value)
	case isSetting:
		s.Set = append(s.Set, spec)
		return nil
	}
	info, err := os.Stat(spec)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exitcode.Usagef("no such file (give %s)", specHint)
	case err != nil:
		return exitcode.Usagef("%w", userfile.Cause(err))
	case info.IsDir():
		s.Baseline = spec
		return nil
	case !info.Mode().IsRegular():
		return exitcode.Usagef("this is not a regular file (give %s)", specHint)
	case info.Mode().Perm()&0o111 != 0 || isProgram(spec):
		if s.ControlPlane != "" {
			return exitcode.Usagef("%s was already given (specify only one binary or revision)", s.given())
		}
		s.ControlPlane, err = commandline.Program(spec)
		return exitcode.UsageError(err)
	}
	return s.config(spec)
}

// isProgram reports whether a file begins like an ELF file, a Mach-O file or a script. It ignores the executable bit,
// because copying may have removed it.
func isProgram(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4)
	n, _ := io.ReadFull(f, head) // a shorter file is not a program
	return slices.ContainsFunc([]string{"\x7fELF", "\xcf\xfa\xed\xfe", "#!"}, func(magic string) bool { return strings.HasPrefix(string(head[:n]), magic) })
}

// given returns the binary or the revision that the user gave for a side.
func (s *Side) given() string {
	if s.Revision != "" {
		return "rev=" + s.Revision
	}
	return s.ControlPlane
}

// config replaces the controlPlane section of the scenario with the settings in a file.
func (s *Side) config(file string) error {
	if s.file != "" {
		return exitcode.Usagef("%s was already given (specify only one config file)", s.file)
	}
	s.file = file
	text, err := userfile.Read(file, userfile.Text)
	if err != nil {
		return exitcode.Usagef("%w", err)
	}
	var doc yaml.Node
	var settings map[string]any
	err = yaml.Unmarshal(text, &doc)
	if err == nil && len(doc.Content) == 1 && doc.Content[0].Kind == yaml.MappingNode {
		err = doc.Decode(&settings)
	}
	if err != nil {
		return exitcode.Usagef("%s", strings.Join(strings.Fields(err.Error()), " "))
	}
	if settings == nil {
		return exitcode.Usagef("the file has no control plane settings (write the fields that a scenario has under controlPlane:)")
	}
	line, err := json.Marshal(settings) // JSON is also YAML
	if err != nil {
		return exitcode.Usagef("the name of a setting is not a string (write it in quotes)")
	}
	s.Set = append([]string{"controlPlane=" + string(line)}, s.Set...) // later settings override those in the file
	return nil
}

// revision resolves the git revision rev in the repository of the working directory, and sets the path of the binary
// that is built from it.
func (s *Side) revision(ctx context.Context, rev string) error {
	commit, err := git(ctx, "rev-parse", "--verify", "--quiet", rev+"^{commit}")
	var said *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &said) && len(said.Stderr) > 0:
		return exitcode.Usagef("%w", err)
	case errors.Is(err, exec.ErrNotFound):
		return exitcode.Environmentf("rev=REVISION requires git, which is not installed")
	case err != nil:
		return exitcode.Usagef("the git checkout in the working directory has no such revision (run the command in a checkout that has it)")
	}
	s.Revision = commit
	cache, err := os.UserCacheDir()
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	s.ControlPlane = filepath.Join(cache, "stormglass", "builds", commit, "controlplane")
	return nil
}

// Build builds the binary of a side that is a git revision, unless the build already exists. It first calls step to
// announce the build, because a build may take minutes.
func (s *Side) Build(ctx context.Context, step func(string)) (err error) {
	if s.Revision == "" {
		return nil
	}
	if _, err := os.Stat(s.ControlPlane); err == nil {
		return nil
	}
	dir, commit := filepath.Dir(s.ControlPlane), s.Revision
	step("building controlplane from revision " + commit + ", which may take ten minutes")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return exitcode.EnvironmentError(err)
	}
	tree, err := os.MkdirTemp(dir, "tree-")
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	defer func() {
		_, removed := git(context.WithoutCancel(ctx), "worktree", "remove", "--force", tree)
		err = errors.Join(err, removed)
	}()
	if _, err := git(ctx, "worktree", "add", "--detach", "--force", tree, commit); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return exitcode.EnvironmentError(err)
	}
	if err := command(ctx, tree, "make", "build"); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return exitcode.Environmentf("build %s: %w", commit, err)
	}
	return exitcode.EnvironmentError(os.Rename(filepath.Join(tree, "bin", "controlplane"), s.ControlPlane))
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	return strings.TrimSpace(string(out)), saidBy(err)
}

func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that Cancel can end its child processes too
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, lastLine(said.String()))
	}
	return nil
}

// saidBy adds the last line of a program's standard error to the program's error.
func saidBy(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, lastLine(string(exit.Stderr)))
	}
	return err
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
