package deploy_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/deploy/deploytest"
)

// runner simulates a job that uses the action. It has a directory, and the environment that GitHub's runner gives to
// steps.
type runner struct {
	t   *testing.T
	dir string
	env []string
}

func newRunner(t *testing.T) *runner {
	dir := t.TempDir()
	return &runner{t, dir, []string{
		"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + dir,
		"GITHUB_OUTPUT=" + filepath.Join(dir, "output"), "GITHUB_PATH=" + filepath.Join(dir, "path"),
		"GITHUB_STEP_SUMMARY=" + filepath.Join(dir, "summary.md"), "RUNNER_TEMP=" + dir,
		"RUNNER_OS=Linux", "RUNNER_ARCH=X64", "GITHUB_ACTION_PATH=" + dir,
	}}
}

// step runs a script of the action with additional environment variables. It returns the exit code and the output.
func (r *runner) step(script string, env ...string) (code int, said string) {
	r.t.Helper()
	cmd := exec.Command(filepath.Join(deploytest.Root(r.t), "deploy", "github-actions", script))
	cmd.Dir, cmd.Env = r.dir, append(append([]string{}, r.env...), env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		r.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func (r *runner) file(name string) string {
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return string(text)
}

func (r *runner) write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// A tag selects a release. For a branch, a commit or "source", the action builds the programs.
func TestActionChoosesRelease(t *testing.T) {
	for _, c := range []struct{ version, ref, want string }{
		{"", "v1.2.3", "version=v1.2.3\n"},
		{"", "v1.2.3-rc.1", "version=v1.2.3-rc.1\n"},
		{"", "main", "version=source\n"},
		{"", "v1", "version=source\n"},
		{"", "0123456789abcdef0123456789abcdef01234567", "version=source\n"},
		{"", "", "version=source\n"},
		{"1.2.3", "main", "version=v1.2.3\n"},
		{"source", "v1.2.3", "version=source\n"},
	} {
		r := newRunner(t)
		if code, said := r.step("choose.sh", "VERSION="+c.version, "REF="+c.ref); code != 0 || r.file("output") != c.want {
			t.Errorf("version %q of %q: exit %d, %q\n%s", c.version, c.ref, code, r.file("output"), said)
		}
	}
	r := newRunner(t)
	if code, said := r.step("choose.sh", "VERSION=latest", "REF=main"); code != 2 || !strings.Contains(said, `::error::version "latest" is not a release`) {
		t.Errorf("exit %d\n%s", code, said)
	}
}

// release writes a release to the runner's directory and returns its URL. Each program in it prints its name.
func (r *runner) release(version string) (url string) {
	r.t.Helper()
	sums := ""
	for _, program := range []string{"loadgen", "controlplane"} {
		var archive bytes.Buffer
		z := gzip.NewWriter(&archive)
		w := tar.NewWriter(z)
		text := []byte("#!/bin/sh\necho this is " + program + "\n")
		for _, err := range []error{
			w.WriteHeader(&tar.Header{Name: "LICENSE", Mode: 0o644}),
			w.WriteHeader(&tar.Header{Name: program, Mode: 0o755, Size: int64(len(text))}),
		} {
			if err != nil {
				r.t.Fatal(err)
			}
		}
		if _, err := w.Write(text); err != nil {
			r.t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			r.t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			r.t.Fatal(err)
		}
		name := program + "_" + strings.TrimPrefix(version, "v") + "_linux_amd64.tar.gz"
		r.write("releases/"+version+"/"+name, archive.String())
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(archive.Bytes()), name)
	}
	r.write("releases/"+version+"/checksums.txt", sums)
	return "file://" + filepath.Join(r.dir, "releases")
}

func TestActionInstallsRelease(t *testing.T) {
	r := newRunner(t)
	url := r.release("v1.2.3")
	if code, said := r.step("install.sh", "VERSION=v1.2.3", "RELEASES="+url); code != 0 {
		t.Fatalf("exit %d\n%s", code, said)
	}
	bin := strings.TrimSpace(r.file("path"))
	for _, program := range []string{"loadgen", "controlplane"} {
		if out, err := deploytest.Run(t, r.dir, filepath.Join(bin, program)); err != nil || out != "this is "+program+"\n" {
			t.Errorf("%s: %v %q", program, err, out)
		}
	}
}

// If a release is missing, damaged or for another platform, the exit code means a failed environment, the message is
// one line, and nothing is added to PATH.
func TestActionRefusesBadRelease(t *testing.T) {
	const archive = "loadgen_1.2.3_linux_amd64.tar.gz"
	for name, c := range map[string]struct {
		damage func(*runner)
		env    []string
		want   string
	}{
		"of a version that is not there": {env: []string{"VERSION=v9.9.9"}, want: "::error::v9.9.9 has no checksums.txt at file://"},
		"damaged archive": {
			damage: func(r *runner) { r.write("releases/v1.2.3/"+archive, "other") },
			want:   "::error::" + archive + " is not what checksums.txt says",
		},
		"archive without a checksum": {
			damage: func(r *runner) { r.write("releases/v1.2.3/checksums.txt", "") },
			want:   "::error::checksums.txt of v1.2.3 does not name " + archive,
		},
		"checksum of another file": {
			damage: func(r *runner) {
				r.write("releases/v1.2.3/checksums.txt", strings.ReplaceAll(r.file("releases/v1.2.3/checksums.txt"), "loadgen_1.2.3", "xloadgen_1.2.3"))
			},
			want: "::error::checksums.txt of v1.2.3 does not name " + archive,
		},
		"another system":       {env: []string{"RUNNER_OS=Windows"}, want: "::error::no release for Windows (Linux and macOS have one)"},
		"another architecture": {env: []string{"RUNNER_ARCH=ARM"}, want: "::error::no release for ARM (X64 and ARM64 have one)"},
	} {
		r := newRunner(t)
		url := r.release("v1.2.3")
		if c.damage != nil {
			c.damage(r)
		}
		code, said := r.step("install.sh", append([]string{"VERSION=v1.2.3", "RELEASES=" + url}, c.env...)...)
		if code != 4 || !strings.Contains(said, c.want) || r.file("path") != "" {
			t.Errorf("%s: exit %d, PATH %q, want %q\n%s", name, code, r.file("path"), c.want, said)
		}
	}
}

// Without a release, the action builds the programs from its own commit.
func TestActionBuildsSource(t *testing.T) {
	r := newRunner(t)
	r.write("Makefile", "build:\n\tmkdir -p bin && touch bin/loadgen\n")
	if code, said := r.step("install.sh", "VERSION=source", "RELEASES="); code != 0 || r.file("path") != filepath.Join(r.dir, "bin")+"\n" {
		t.Errorf("exit %d, PATH %q\n%s", code, r.file("path"), said)
	}
	if out, err := deploytest.Run(t, deploytest.Root(t), "make", "-n", "build"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The step ends with loadgen's exit code and outputs the verdict. Each line of args is one argument.
func TestActionRuns(t *testing.T) {
	loadgen := buildLoadgen(t)
	for code, verdict := range []string{"pass", "fail", "usage", "undecided", "environment"} {
		for _, against := range []string{"", "baselines/main"} {
			report := "report.html"
			if against != "" {
				report = "ab.html"
			}
			r := newRunner(t)
			r.write("loadgen", "#!/bin/sh\nprintf '%s\\n' \"$@\" >args\nmkdir -p 'my run' && touch 'my run/"+report+"'\nexit "+fmt.Sprint(code)+"\n")
			got, said := r.step("run.sh", "SCENARIO=rollout-demo", "AGAINST="+against, "OUT=my run", "ARGS=--set=nodes.count=10\r\n\n--set=description=two words; $(false)\n")
			if got != code {
				t.Errorf("exit %d, want %d\n%s", got, code, said)
			}
			want := fmt.Sprintf("verdict=%s\nexit-code=%d\nreport=my run/%s\nrun=my run\n", verdict, code, report)
			if r.file("output") != want {
				t.Errorf("outputs:\n%swant:\n%s", r.file("output"), want)
			}
			args := strings.Split(strings.TrimSpace(r.file("args")), "\n")
			wantArgs := []string{"run", "rollout-demo"}
			if against != "" {
				wantArgs = []string{"ab", "rollout-demo", "--a", against}
			}
			wantArgs = append(wantArgs, "--out", "my run", "--summary", filepath.Join(r.dir, "summary.md"), "--set=nodes.count=10", "--set=description=two words; $(false)")
			if strings.Join(args, "\n") != strings.Join(wantArgs, "\n") {
				t.Errorf("arguments %q, want %q", args, wantArgs)
			}
			exists(t, loadgen, args)
		}
	}
}

// If a run wrote no report, the output `report` is empty.
func TestActionWithoutReport(t *testing.T) {
	r := newRunner(t)
	r.write("loadgen", "#!/bin/sh\nexit 2\n")
	if code, said := r.step("run.sh", "SCENARIO=no-such", "AGAINST=", "OUT=run", "ARGS="); code != 2 || !strings.Contains(r.file("output"), "verdict=usage\nexit-code=2\nreport=\n") {
		t.Errorf("exit %d, outputs %q\n%s", code, r.file("output"), said)
	}
}
