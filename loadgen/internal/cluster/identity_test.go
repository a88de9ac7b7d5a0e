package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/node"
)

// tokens makes a cluster issue token-1, token-2, ..., each valid for an hour. It rejects the nth request if refuse(n)
// returns true.
func tokens(c *fake.Clientset, refuse func(n int) bool) <-chan int {
	given := make(chan int, 8)
	n := 0
	c.PrependReactor("create", "serviceaccounts", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "token" {
			return false, nil, nil
		}
		n++
		defer func() { given <- n }()
		if refuse(n) {
			return true, nil, fmt.Errorf("not now")
		}
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{
			Token: fmt.Sprintf("token-%d", n), ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour)),
		}}, nil
	})
	return given
}

func TestTokenIsRenewedBeforeExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fake.NewClientset()
		given := tokens(c, func(n int) bool { return n == 2 })
		began := time.Now()
		i, err := newIdentity(t.Context(), c, "ns")
		if err != nil {
			t.Fatal(err)
		}
		holds := func(want string, after time.Duration) {
			t.Helper()
			synctest.Wait()
			got, err := os.ReadFile(i.tokenFile)
			if err != nil || string(got) != want || time.Since(began) != after {
				t.Errorf("after %s the file contains %q (%v), want %q after %s", time.Since(began), got, err, want, after)
			}
		}
		<-given
		holds("token-1", 0)
		<-given // rejected: the old token is valid for another 12 minutes
		holds("token-1", 48*time.Minute)
		<-given
		holds("token-3", 48*time.Minute+node.TokenRetry)
		if info, err := os.Stat(i.tokenFile); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode of the token file %v (%v), want 0600", info.Mode(), err)
		}
		for range 2 {
			if err := i.close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := os.Stat(i.scratch.Path); !os.IsNotExist(err) {
			t.Errorf("the token's directory still exists: %v", err)
		}
	})
}

func TestLoadRunsAsAServiceAccountOfItsOwn(t *testing.T) {
	c := fake.NewClientset(&corev1.ServiceAccount{ObjectMeta: named("stormglass-3f9a", "default", "")})
	tokens(c, func(int) bool { return false })
	target := staging()
	target.Admin = &rest.Config{
		Host: "https://10.0.0.1:6443", BearerToken: "of-the-admin",
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca"), CertData: []byte("admin"), KeyData: []byte("admin")},
	}
	var err error
	if target.needs, err = loadNeeds(newLookup(c.Discovery(), parsed(t, quiet)), target.Namespace); err != nil {
		t.Fatal(err)
	}
	if err := target.makeNamespaces(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := target.makeIdentity(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	load := target.Load
	if load.BearerToken != "" || load.CertData != nil || load.KeyData != nil || string(load.CAData) != "ca" {
		t.Errorf("Load has the admin's credentials: %v", load)
	}
	if s := target.Scrape[0]; s.TokenFile != load.BearerTokenFile || s.CAFile == "" {
		t.Errorf("the scrape target of the API server is %+v, want the load's token and a CA file", s)
	}
	for _, made := range []string{"clusterroles stormglass-3f9a", "clusterrolebindings stormglass-3f9a", "namespaces stormglass-3f9a"} {
		if !strings.Contains(strings.Join(present(t, c), "\n"), made) {
			t.Errorf("Setup did not create %s", made)
		}
	}
	if err := target.cleanup(t.Context(), cleanerOf(c, target.runID)); err != nil {
		t.Fatal(err)
	}
	if left := present(t, c); len(left) != 0 {
		t.Errorf("objects left after the cleanup: %v", left)
	}
	if _, err := os.Stat(load.BearerTokenFile); !os.IsNotExist(err) {
		t.Errorf("the token file still exists: %v", err)
	}
}

func TestSetupErrorsNameVerbAndObject(t *testing.T) {
	c := fake.NewClientset(&corev1.ServiceAccount{ObjectMeta: named("stormglass-3f9a", "default", "")})
	c.PrependReactor("create", "clusterrolebindings", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, fmt.Errorf("the webhook says no")
	})
	err := staging().setup(t.Context(), c)
	if err == nil || err.Error() != "create clusterrolebinding stormglass-3f9a: the webhook says no" {
		t.Errorf("got %v", err)
	}
}

func TestFromPlaneNamesMissingCredentials(t *testing.T) {
	admin := kubeconfig(t, "https://127.0.0.1:1", nil, "x")
	for want, c := range map[string]control.Cluster{
		`cluster.json lists no kubeconfig of user "loadgen"`: {Dir: "plane", Kubeconfigs: map[string]string{"admin": admin}},
		"read the nodes' CA": {Dir: "plane", Kubeconfigs: map[string]string{"admin": admin, "loadgen": admin}, NodeCA: control.KeyPair{CertFile: filepath.Join(t.TempDir(), "none")}},
	} {
		if _, err := FromPlane(c, "r1", parsed(t, quiet)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A run waits for the default ServiceAccount before it creates objects for which controllers may create pods.
func TestCreatesPodsEarly(t *testing.T) {
	for load, want := range map[string]bool{
		"{name: a, kind: requests, verb: get, rate: 1/s}":                   false,
		"{name: a, kind: requests, verb: list, resource: nodes, rate: 1/s}": false,
		"{name: a, kind: watches, count: 2, rate: 1/s}":                     false,
		"{name: a, kind: history}":                                          false,
		"{name: a, kind: requests, verb: get, resource: pods, rate: 1/s}":   true,
		"{name: a, kind: requests, verb: create, resource: deployments.apps, rate: 1/s, object: {apiVersion: apps/v1, kind: Deployment}}": true,
		"{name: a, kind: custom, rate: 1/s}": true,
	} {
		target := staging()
		target.plan = parsed(t, "phases: [{name: steady, for: 10s, load: ["+load+"]}]\n")
		if got := target.createsPodsEarly(); got != want {
			t.Errorf("%s: %v, want %v", load, got, want)
		}
	}
}
