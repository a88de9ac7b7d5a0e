package cluster

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// Recorded objects are removed without their label. An object that another client made stays, and an
// object that a finalizer holds is reported with the command that removes it.
func TestRecordedObjectsAreRemoved(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}
	object := func(name string, finalizers ...string) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Finalizers: finalizers},
		}
		if len(finalizers) > 0 {
			o.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}
		return o
	}
	objects := []runtime.Object{object("stripped"), object("theirs"), object("held", "example.com/hold")}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := metadatafake.NewSimpleMetadataClient(scheme, objects...)
	client.PrependReactor("delete", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.(clienttesting.DeleteAction).GetName() == "held", nil, nil
	})
	var m made
	for _, name := range []string{"stripped", "held", "gone"} {
		m.add(resource, "PriorityClass", types.UID("uid-"+name))
	}
	c := cleanerOf(nil, "r1")
	c.metadata, c.made = client, &m
	err := c.removeMade(t.Context())
	want := "delete PriorityClass held: not gone yet; finalizers block the deletion of held (example.com/hold): `kubectl patch priorityclasses.scheduling.k8s.io held --type=merge -p '{\"metadata\":{\"finalizers\":null}}'`"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not say\n%s", err, want)
	}
	if _, err := client.Resource(resource).Get(t.Context(), "stripped", metav1.GetOptions{}); err == nil {
		t.Error("the recorded object is left")
	}
	if _, err := client.Resource(resource).Get(t.Context(), "theirs", metav1.GetOptions{}); err != nil {
		t.Errorf("the object of others: %v", err)
	}
}

// A user who may not restore the label of a namespace can still remove what has the label.
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
		t.Errorf("the refusal is not reported: %v", err)
	}
	if _, err := client.Resource(namespaces).Get(t.Context(), "stripped", metav1.GetOptions{}); err == nil {
		t.Error("the namespace without its label is left")
	}
	if left := strings.Join(present(t, all), " "); strings.Contains(left, "r1") {
		t.Errorf("left: %s", left)
	}
}

// Only answers that say that an object without a namespace was created are recorded, and clients read them unchanged.
func TestCreationsAreRecorded(t *testing.T) {
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string // "resource kind"; "" for nothing
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
			t.Errorf("%s: the client reads %q, %v", c.path, body, err)
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
