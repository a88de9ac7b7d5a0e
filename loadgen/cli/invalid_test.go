package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/goldenscript"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
)

var update = flag.Bool("update", false, "rewrite the expected errors in testdata/invalid")

// TestInvalidScenarios holds, for each script in testdata/invalid, a scenario, the
// exact output of `validate` for it, and, where the hint can be followed word by word,
// a change that makes the scenario valid.
func TestInvalidScenarios(t *testing.T) {
	goldenscript.Each(t, "testdata/invalid/*.txtar", *update, func(t *testing.T, script *txtar.Archive) string {
		text := string(script.Files[0].Data)
		code, said := validate(t, text)
		if code != 2 {
			t.Errorf("exit code %d, want 2", code)
		}
		if len(script.Files) > 2 {
			for line := range strings.Lines(string(script.Files[2].Data)) {
				text = mend(t, text, line)
			}
			if code, said := validate(t, text); code != 0 {
				t.Errorf("after the hint was followed:\n%s", said)
			}
		}
		return said
	})
}

// TestAcceptedScenarios holds scenarios that a stricter check would refuse by mistake.
func TestAcceptedScenarios(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/valid/accepted.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range ar.Files {
		if code, said := validate(t, string(f.Data)); code != 0 {
			t.Errorf("%s: exit code %d\n%s", f.Name, code, said)
		}
	}
}

func TestValidateReadsStandardInput(t *testing.T) {
	text := "apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: piped\nphases: [{name: a, for: 30}]\n"
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), []string{"validate", "-"}, strings.NewReader(text), &stdout, &stderr)
	if want := "loadgen: stdin:4: phases.a.for: \"30\" has no unit (write 30s, 30ms or 30m)\n"; code != 2 || stderr.String() != want {
		t.Errorf("exit code %d, %q, want %q", code, stderr.String(), want)
	}
}

// withTemplate is a scenario with the objects in FILE.
const withTemplate = "apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: x\nobjects: [{templates: [{file: FILE}]}]\n" +
	"phases: [{name: p, for: 10s, load: [{kind: requests, verb: list, resource: configmaps, rate: 5/s}]}]\ngates: [{name: g, objective: request-latency, max: 5s}]\n"

// Each command refuses a FIFO, a device, a directory or a huge file immediately and in one line, as an argument and
// where a file names another file. Without the checks, commands wait for a writer of the FIFO.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	const usage, environment = exitcode.Usage, exitcode.Environment
	commands := map[string]int{
		"validate special": usage, "validate -f special": usage, "validate object.yaml": usage, "validate kustomized.yaml": usage, "validate kustomized-base.yaml": usage,
		"run ./special": usage, "run rollout-demo --kubeconfig special --out out -q": environment, "run rollout-demo --controlplane special --out out -q": environment,
		"run rollout-demo --controlplane special --dry-run": environment, "ab ci-gate --b nodes.count=5 --controlplane special --dry-run": environment,
		"capacity capacity-writes --controlplane special --dry-run": environment, "capacity capacity-writes --b controlPlane.etcd.members=3 --controlplane special --dry-run": environment,
		"run api-mix --abort-rules special --abort-on alert=X --dry-run":                                                                    usage,
		"run api-mix --kubeconfig k.yaml --prometheus http://127.0.0.1:1 --prometheus-http-config special --yes":                            usage,
		"run api-mix --kubeconfig k.yaml --trace --trace-file special --yes":                                                                usage,
		"run api-mix --kubeconfig k.yaml --trace --trace-listen 127.0.0.1:0 --trace-token-file special --yes":                               usage,
		"run api-mix --kubeconfig k.yaml --trace --trace-listen :0 --trace-client-ca k.yaml --trace-cert special --trace-key special --yes": usage,
		"export RUN --format remote-write --remote-write http://127.0.0.1:1/x --remote-write-header-file special":                           usage,
		"export RUN --format remote-write --remote-write http://127.0.0.1:1/x --remote-write-http-config special":                           usage,

		"ab ci-gate --a special --dry-run": usage, "ab ci-gate --b special --dry-run": usage, "ab ci-gate --against special --dry-run": usage,
		"ab ci-gate --b nodes.count=5 --controlplane special --out out -q":               environment,
		"capacity capacity-writes --a special --b controlPlane.etcd.members=3 --dry-run": usage,
		"capacity capacity-writes --b special --dry-run":                                 usage,
		"capacity capacity-writes --controlplane special --out out -q":                   environment,
		"capacity compare special special":                                               usage,

		"nodes --count 1 --controlplane special -q": environment, "nodes --count 1 --kubeconfig special -q": environment,
		"cleanup --kubeconfig special -q": environment, "cleanup special --kubeconfig k.yaml -q": usage, "cleanup --kubeconfig k.yaml --certificate-authority special -q": environment,
		"worker --coordinator 127.0.0.1:1 --ca special --token special --index 0": usage,

		"import clusterloader2 special": usage, "import clusterloader2 module.yaml": usage, "import clusterloader2 include.yaml": usage, "import clusterloader2 bundle.yaml": usage,
		"import clusterloader2 bundle.yaml --testoverrides special": usage,
		"import kube-burner special":                                usage, "import kube-burner template.yaml": usage, "import kube-burner jobs.yaml --user-data special": usage,
		"import kube-burner jobs.yaml --alert-profile special": usage, "import kube-burner jobs.yaml --metrics-profile special": usage,
		"import kwok special": usage,

		"record audit special --out x.recording": usage, "record simkube special --out x.recording": usage, "record compare special special": usage,

		"report special": usage, "diagnose special": usage, "gate special --rules k.yaml": usage, "gate RUN --rules special": usage, "compare special special": usage,
		"trend special": usage, "alerts prove special": usage, "query special up": usage, "serve special": usage, "export special --format openmetrics": usage,
		"baseline save main special": usage, "baseline show main --baselines special": usage, "baseline list --baselines special": usage,
	}
	const jobs = "jobs:\n- {name: j, jobIterations: 2, qps: 10, burst: 10, namespace: n, objects: [{objectTemplate: FILE, replicas: 1}]}\n"
	files := map[string]string{
		"object.yaml": strings.ReplaceAll(withTemplate, "FILE", "special"), "kustomized.yaml": strings.ReplaceAll(withTemplate, "FILE", "overlay"), "kustomized-base.yaml": strings.ReplaceAll(withTemplate, "FILE", "outer"),
		"overlay/kustomization.yaml": "resources: [cm.yaml]\n", "outer/kustomization.yaml": "resources: [../overlay]\n", "overlay/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'c-{{.Iteration}}'}\n",
		"module.yaml": "name: x\nsteps: [{module: {path: special}}]\n", "include.yaml": "#{{IncludeFile \"special\"}}\nname: x\nsteps: []\n",
		"bundle.yaml": "name: x\nnamespace: {number: 1}\ntuningSets: [{name: t, qpsLoad: {qps: 5}}]\nsteps:\n- name: s\n  phases:\n" +
			"  - {namespaceRange: {min: 1, max: 1}, replicasPerNamespace: 2, tuningSet: t, objectBundle: [{basename: b, objectTemplatePath: special}]}\n",
		"template.yaml": strings.ReplaceAll(jobs, "FILE", "special"), "jobs.yaml": strings.ReplaceAll(jobs, "FILE", "overlay/cm.yaml"),
		"k.yaml": "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n",
	}
	pipe, huge := filepath.Join(t.TempDir(), "pipe"), filepath.Join(t.TempDir(), "huge")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(huge, nil, 0o600), os.Truncate(huge, 1<<40)); err != nil {
		t.Fatal(err)
	}
	run := archivetest.SoundRun(t)
	t.Setenv("GOGC", "100") // otherwise record audit changes it for all tests
	for kind, file := range map[string]string{"pipe": pipe, "device": "/dev/zero", "directory": t.TempDir(), "huge file": huge} {
		t.Run(kind, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for name, text := range files {
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.Symlink(file, "special"), os.Symlink(file, "overlay/special")); err != nil {
				t.Fatal(err)
			}
			for text, want := range commands {
				kustomized, log := strings.HasPrefix(text, "validate kustomized"), strings.HasPrefix(text, "record audit") || strings.Contains(text, "--trace-file")
				if kind == "directory" && (kustomized || text == "serve special") || kind == "huge file" && log {
					continue // a kustomization may have directories, serve waits for runs, and logs of requests or spans have any size
				}
				var stdout, stderr bytes.Buffer
				code := execute(t.Context(), strings.Fields(strings.ReplaceAll(text, "RUN", run)), strings.NewReader(""), &stdout, &stderr)
				if code != want || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), "special") {
					t.Errorf("%s: exit code %d, want %d and one line:\n%s", text, code, want, stderr.String())
				}
			}
		})
	}
}

// A query that would need unbounded memory is refused before its evaluation.
func TestEndlessQueriesAreRefused(t *testing.T) {
	run := archivetest.SoundRun(t)
	for _, more := range []string{"--range=false", "--range"} {
		var stdout, stderr bytes.Buffer
		code := execute(t.Context(), []string{"query", run, "max_over_time(max_over_time(up[30d:1ms])[30d:1ms])", more}, strings.NewReader(""), &stdout, &stderr)
		if code != exitcode.Usage || !strings.Contains(stderr.String(), "the subquery [30d:1ms] has 2592000000 steps") {
			t.Errorf("%s: exit code %d, %s", more, code, stderr.String())
		}
	}
}

// The response of a receiver that refuses samples is printed without control characters, and not in full.
func TestAnswerOfReceiverIsClean(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no\x1b[2J\u202e"+strings.Repeat(" no", 1<<20), http.StatusBadRequest)
	}))
	defer receiver.Close()
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), []string{"export", archivetest.SoundRun(t), "--format", "remote-write", "--remote-write", receiver.URL}, strings.NewReader(""), &stdout, &stderr)
	if code != exitcode.Environment || !strings.Contains(stderr.String(), "no[2J no") || strings.ContainsAny(stderr.String(), "\x1b\u202e") || stderr.Len() > 10_000 {
		t.Errorf("exit code %d, %d bytes: %.1000q", code, stderr.Len(), stderr.String())
	}
}

// A name of an output is printed without control characters.
func TestNamesOfOutputsAreClean(t *testing.T) {
	run := archivetest.SoundRun(t)
	t.Chdir(t.TempDir())
	jobs := "jobs: [{name: j, jobIterations: 1, qps: 1, burst: 1, namespace: n, objects: [{objectTemplate: cm.yaml, replicas: 1}]}]\n"
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'c-{{.Iteration}}'}\n"
	if err := errors.Join(os.WriteFile("jobs.yaml", []byte(jobs), 0o600), os.WriteFile("cm.yaml", []byte(object), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"export RUN --format openmetrics --out", "export RUN --format blocks --out", "alerts render --out", "import kube-burner jobs.yaml --out",
	} {
		var stdout, stderr bytes.Buffer
		args := append(strings.Fields(strings.ReplaceAll(text, "RUN", run)), fmt.Sprintf("%d\x1b[2J", len(text)))
		code := execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
		if out := stdout.String() + stderr.String(); code != 0 || !strings.Contains(out, "[2J") || strings.Contains(out, "\x1b") {
			t.Errorf("%s: exit code %d, %q", text, code, out)
		}
	}
}

// mend applies one change, written as: "old" => "new".
func mend(t *testing.T, text, change string) string {
	t.Helper()
	before, after, _ := strings.Cut(strings.TrimSpace(change), " => ")
	before, err1 := strconv.Unquote(before)
	after, err2 := strconv.Unquote(after)
	if err1 != nil || err2 != nil || !strings.Contains(text, before) {
		t.Fatalf("%s: not a change of the scenario (%v, %v)", change, err1, err2)
	}
	return strings.ReplaceAll(text, before, after)
}

// validate runs the command on a scenario. It returns the exit code and the errors, without the program's name and the
// directory.
func validate(t *testing.T, text string) (code int, said string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code = execute(t.Context(), []string{"validate", file}, strings.NewReader(""), &stdout, &stderr)
	for line := range strings.Lines(stderr.String()) {
		if !strings.HasPrefix(line, "loadgen: warning: ") {
			said += strings.ReplaceAll(strings.TrimPrefix(line, "loadgen: "), dir+string(filepath.Separator), "")
		}
	}
	return code, said
}
