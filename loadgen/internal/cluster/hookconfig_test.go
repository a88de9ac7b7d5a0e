package cluster

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestKubeconfigOfHooksHasTheSameIdentity(t *testing.T) {
	want := &rest.Config{
		Host: "https://10.0.0.1:6443", BearerToken: "secret",
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca"), ServerName: "api"},
		Impersonate:     rest.ImpersonationConfig{UserName: "ann", Groups: []string{"ops"}, Extra: map[string][]string{}},
	}
	target := &Target{Admin: want, Namespace: "stormglass-x"}
	file, remove, err := target.WriteKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, nil)
	got, err := loaded.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if namespace, _, err := loaded.Namespace(); err != nil || namespace != "stormglass-x" {
		t.Errorf("namespace %s, want stormglass-x (%v)", namespace, err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig still exists: %v", err)
	}
}

func TestPlanListsCommandsAndProfiles(t *testing.T) {
	s := parsed(t, `
phases:
- name: storm
  for: 30s
  before: [{run: [sh, -c, "echo \e[8mhidden"]}]
  after: [{run: [./save.sh]}]
  profiles: [{component: kube-apiserver, kind: cpu}, {component: etcd, kind: heap}]
`)
	text := planOn(s).String()
	const want = `Runs      on this machine, as you, before storm: sh -c "echo \x1b[8mhidden"
          on this machine, as you, after storm: ./save.sh
Profiles  cpu of kube-apiserver in phase storm, heap of etcd in phase storm, if the cluster permits them
`
	if !strings.Contains(text, want) {
		t.Errorf("the plan is\n%s\nwant in it\n%s", text, want)
	}
}
