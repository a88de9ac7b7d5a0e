package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/stormglass/stormglass/loadgen/internal/scratch"
	"github.com/stormglass/stormglass/loadgen/result"
)

// A cleanup removes recorded objects that have lost their label, and keeps objects that another client created. If a
// finalizer holds an object, the error contains the command that removes the finalizer. For an object that is being
// deleted without a finalizer, such as a namespace, the error contains no command.
func TestRecordedObjectsAreRemoved(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}
	object := func(name string, finalizers ...string) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Finalizers: finalizers},
		}
		if len(finalizers) > 0 || name == "ending" {
			o.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}
		return o
	}
	objects := []runtime.Object{object("stripped"), object("theirs"), object("held", "example.com/hold"), object("ending")}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := metadatafake.NewSimpleMetadataClient(scheme, objects...)
	client.PrependReactor("delete", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		name := a.(clienttesting.DeleteAction).GetName()
		return name == "held" || name == "ending", nil, nil
	})
	var m made
	for _, name := range []string{"stripped", "held", "gone", "ending"} {
		m.add(resource, "PriorityClass", types.UID("uid-"+name))
	}
	c := cleanerOf(nil, "r1")
	c.metadata, c.made = client, &m
	err := c.removeMade(t.Context())
	want := "delete PriorityClass ending, held: not gone yet; finalizers block the deletion of held (example.com/hold): `kubectl patch priorityclasses.scheduling.k8s.io held --type=merge -p '{\"metadata\":{\"finalizers\":null}}'`"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v, want the suffix\n%s", err, want)
	}
	if _, err := client.Resource(resource).Get(t.Context(), "stripped", metav1.GetOptions{}); err == nil {
		t.Error("the cleanup did not remove the recorded object")
	}
	if _, err := client.Resource(resource).Get(t.Context(), "theirs", metav1.GetOptions{}); err != nil {
		t.Errorf("the cleanup removed the object of another client: %v", err)
	}
}

// If the user may not restore the label of a namespace, the cleanup still removes the objects that have the label.
func TestRefusedLabelsDelayNoRemoval(t *testing.T) {
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	stripped := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "stripped", UID: "uid-stripped"}}
	client := metadatafake.NewSimpleMetadataClient(scheme, stripped)
	client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(namespaces.GroupResource(), "stripped", errors.New("no"))
	})
	var m made
	m.add(namespaces, "Namespace", "uid-stripped")
	all := inhabited()
	c := cleanerOf(all, "r1")
	c.metadata, c.made, c.devices = client, &m, true
	if err := c.attempt(t.Context()); err == nil || !strings.Contains(err.Error(), "label namespaces stripped") {
		t.Errorf("the error does not report the refused patch: %v", err)
	}
	if _, err := client.Resource(namespaces).Get(t.Context(), "stripped", metav1.GetOptions{}); err == nil {
		t.Error("the cleanup did not remove the namespace without its label")
	}
	if left := strings.Join(present(t, all), " "); strings.Contains(left, "r1") {
		t.Errorf("left: %s", left)
	}
}

// The recorder records an object only if the response says that a cluster-scoped object was created. Clients read the
// response unchanged.
func TestCreationsAreRecorded(t *testing.T) {
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string // "resource kind"; "" if the recorder records nothing
	}{
		{"POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"uid":"u"}}`, 201, "/v1, Resource=namespaces Namespace"},
		{"POST", "/k8s/clusters/c-1/apis/example.com/v1/things?fieldManager=x", `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"uid":"u"}}`, 201, "example.com/v1, Resource=things Thing"},
		{"PATCH", "/apis/example.com/v1/things/a", `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"uid":"u"}}`, 201, "example.com/v1, Resource=things Thing"},
		{"PATCH", "/apis/example.com/v1/things/a", `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"uid":"u"}}`, 200, ""},
		{"POST", "/apis/example.com/v1/things?dryRun=All", `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"uid":"u"}}`, 201, ""},
		{"POST", "/api/v1/namespaces/a/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"uid":"u"}}`, 201, ""},
		{"POST", "/apis/apps/v1/namespaces/a/deployments", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"uid":"u"}}`, 201, ""},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","metadata":{}}`, 201, ""},
	} {
		var m made
		request, err := http.NewRequestWithContext(t.Context(), c.method, "https://127.0.0.1"+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := recorder{answers{c.status, c.body}, &m}.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); err != nil || string(body) != c.body {
			t.Errorf("%s: the client reads the body %q, %v", c.path, body, err)
		}
		got := ""
		for r, k := range m.resources() {
			got = r.String() + " " + k.kind
		}
		if got != c.want {
			t.Errorf("%s %s: recorded %q, want %q", c.method, c.path, got, c.want)
		}
	}
}

type answers struct {
	status int
	body   string
}

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

const killed = "0123456789" // the ID of the killed run

// record records a namespace and a PriorityClass without labels, as a run does.
func record(t *testing.T, dir string) *Target {
	t.Helper()
	run := &Target{runID: killed}
	if err := run.RecordIn(dir); err != nil {
		t.Fatal(err)
	}
	for path, body := range map[string]string{
		"/api/v1/namespaces":                         `{"apiVersion":"v1","kind":"Namespace","metadata":{"uid":"uid-namespaces-stripped"}}`,
		"/apis/scheduling.k8s.io/v1/priorityclasses": `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"uid":"uid-priorityclasses-stripped"}}`,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://127.0.0.1"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := recorder{answers{http.StatusCreated, body}, &run.made}.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	return run
}

// After a run was killed, the cleanup finds objects that have lost their label through the file in the run's directory.
// It keeps other objects.
func TestKilledRunIsRemovedByItsRecord(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(record(t, dir).RecordedIn(), result.CreatedFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(whole, `{"run":"0123456789","ver`...), 0o600); err != nil { // killed during a write
		t.Fatal(err)
	}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object := func(version, kind, plural, name string) runtime.Object {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind}, ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + plural + "-" + name)}}
	}
	objects := []runtime.Object{object("v1", "Node", "nodes", "sg-0123456789-0"), object("v1", "Node", "nodes", "sg-other-0")}
	for _, name := range []string{"stripped", "theirs"} {
		objects = append(objects, object("v1", "Namespace", "namespaces", name), object("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", name))
	}
	for _, dry := range []bool{true, false} {
		left, err := ReadLeftovers(dir)
		if err != nil || left.Run != killed {
			t.Fatal(left.Run, err)
		}
		client := metadatafake.NewSimpleMetadataClient(scheme, objects...)
		c := cleanerOf(inhabited(), left.Run)
		c.metadata, c.made, c.nodePrefix, c.devices, c.removed.DryRun = client, left.made, nodePrefix(left.Run), true, dry
		var log, changed []string
		c.log = func(line string) { log = append(log, line) }
		if err := c.attempt(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, a := range client.Actions() {
			switch a := a.(type) {
			case clienttesting.DeleteAction:
				if uid := a.GetDeleteOptions().Preconditions.UID; !strings.HasSuffix(string(*uid), a.GetName()) {
					t.Errorf("the cleanup deletes %s with UID %s", a.GetName(), *uid)
				}
				changed = append(changed, "delete "+a.GetResource().Resource+" "+a.GetName())
			case clienttesting.PatchAction:
				changed = append(changed, "patch "+a.GetResource().Resource+" "+a.GetName())
			}
		}
		slices.Sort(changed)
		slices.Sort(log)
		got, want := changed, []string{"delete namespaces stripped", "delete priorityclasses stripped", "patch namespaces stripped", "patch nodes sg-0123456789-0"}
		if dry {
			got, want = append(changed, log...), []string{"1 PriorityClass: stripped", "1 namespace: stripped", "1 node: sg-0123456789-0"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("dry run %v: actions %q, want %q", dry, got, want)
		}
	}
}

// A cleanup refuses a file that no run wrote, with an error of one line. Nothing in the file reaches the cluster or the
// terminal.
func TestRecordsAreChecked(t *testing.T) {
	const good = `{"run":"0123456789","version":"v1","resource":"namespaces","kind":"Namespace","uid":"u"}` + "\n"
	change := func(from, to string) string { return good + strings.Replace(good, from, to, 1) }
	var many strings.Builder
	for i := range maxResources + 1 {
		many.WriteString(strings.Replace(good, "namespaces", fmt.Sprintf("r%d", i), 1))
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":               {"", "lists no objects"},
		"first line cut":      {good[:20], "lists no objects"},
		"not JSON":            {"hello\n", "line 1: byte 1"},
		"no UID":              {change(`"u"`, `""`), "line 2: it does not name"},
		"a path":              {change("namespaces", "namespaces/kube-system/secrets"), "line 2: it does not name"},
		"a path in the group": {change(`"version"`, `"group":"../../api","version"`), "line 2: it does not name"},
		"escape sequence":     {change("Namespace\"", `\u001b[2J"`), "line 2: it does not name"},
		"no ID of a run":      {change(killed, "prod"), "line 2: it does not name"},
		"two runs":            {change(killed, "9876543210"), "line 2: the object is not from run 0123456789"},
		"too many resources":  {many.String(), "more than 1000 resources"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, result.CreatedFile), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		refuses(t, name, dir, c.want)
	}
	pipe := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(pipe, result.CreatedFile), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, "a pipe", pipe, "not a regular file")
	refuses(t, "no file", t.TempDir(), result.CreatedFile+" is missing")
	live := t.TempDir()
	record(t, live)
	lock, err := scratch.LockDir(live)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	refuses(t, "a live run", live, "another loadgen process uses this directory")
}

func refuses(t *testing.T, name, dir, want string) {
	t.Helper()
	_, err := ReadLeftovers(dir)
	if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), dir+": ") || strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("%s: error %v, want %q", name, err, want)
	}
}

// The run removes the file when it has removed all its objects. It keeps the file as long as objects may be left.
func TestRecordStaysUntilAllIsRemoved(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		unseen []string
		stays  bool
	}{
		"all removed":         {t.Context(), nil, false},
		"no time":             {ended, nil, true},
		"kinds were not seen": {t.Context(), []string{"nodes"}, true},
	} {
		dir := t.TempDir()
		run := record(t, dir)
		client := inhabited()
		if c.unseen != nil {
			client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no"))
			})
		}
		err := run.cleanup(c.ctx, cleanerOf(client, killed))
		if (err != nil) != (c.ctx == ended) {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, result.CreatedFile)); (err == nil) != c.stays || (run.RecordedIn() != "") != c.stays {
			t.Errorf("%s: stat %v, RecordedIn %q", name, err, run.RecordedIn())
		}
	}
}
