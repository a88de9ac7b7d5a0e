package control_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
)

func TestReleaseProblems(t *testing.T) {
	two := control.APIServer{Replicas: 2}
	for name, c := range map[string]struct {
		config control.Config
		want   string // part of a problem's "path: msg (hint)"; "" means no problem
	}{
		"the newest":                       {control.Config{}, ""},
		"an older one":                     {control.Config{Version: "1.35"}, ""},
		"none of that name":                {control.Config{Version: "1.3"}, `version: unknown version "1.3"`},
		"a patch version":                  {control.Config{Version: "v1.36.3"}, `(did you mean "1.36"?)`},
		"controllers one older":            {control.Config{Versions: map[string]string{"kube-controller-manager": "1.36"}}, ""},
		"controllers two older":            {control.Config{Versions: map[string]string{"kube-controller-manager": "1.35"}}, "versions: kube-controller-manager-0 with version 1.35 is more than one minor version older than kube-apiserver-0 with version 1.37"},
		"a scheduler newer than the API":   {control.Config{Version: "1.36", Versions: map[string]string{"kube-scheduler-0": "1.37"}}, "versions: kube-scheduler-0 with version 1.37 is newer than kube-apiserver-0 with version 1.36"},
		"API servers one apart":            {control.Config{Version: "1.36", APIServer: two, Versions: map[string]string{"kube-apiserver-1": "1.37"}}, ""},
		"API servers two apart":            {control.Config{Version: "1.35", APIServer: two, Versions: map[string]string{"kube-apiserver-1": "1.37"}}, "versions: kube-apiserver-0 has version 1.35 and kube-apiserver-1 has version 1.37"},
		"controllers newer than the older": {control.Config{APIServer: two, Versions: map[string]string{"kube-apiserver-1": "1.36"}}, "is newer than kube-apiserver-1 with version 1.36"},
		"etcd of an older release":         {control.Config{Versions: map[string]string{"etcd": "1.36"}}, ""},
		"a component that has none":        {control.Config{Versions: map[string]string{"kms-plugin": "1.36"}}, `versions.kms-plugin: "kms-plugin" is not a component whose version can be set`},
		"a component that is not there":    {control.Config{Versions: map[string]string{"etcd-3": "1.36"}}, "versions.etcd-3: there is no etcd-3 (there is etcd-0)"},
		"very many":                        {control.Config{APIServer: control.APIServer{Replicas: 2_000_000_000}}, "apiServer.replicas: 2000000000 is out of bounds"},
		"emulation":                        {control.Config{EmulatedVersion: "1.36"}, ""},
		"emulation of a newer version":     {control.Config{Version: "1.36", EmulatedVersion: "1.37"}, "emulatedVersion: kube-apiserver-0 with version 1.36 cannot emulate a newer version"},
		"emulation too far back":           {control.Config{EmulatedVersion: "1.33"}, "can emulate only 1.34 and newer versions"},
		"emulation of a patch version":     {control.Config{EmulatedVersion: "1.36.1"}, `emulatedVersion: "1.36.1" is not a minor version`},
	} {
		var all []string
		for _, p := range c.config.Problems() {
			all = append(all, p.Path+": "+p.Msg+" ("+p.Hint+")")
		}
		if got := strings.Join(all, "; "); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got problems %s", name, got)
		}
	}
}

// A feature gate is known only in the releases that have it. The message names a release or component that has it.
func TestGatesOfReleases(t *testing.T) {
	for name, c := range map[string]struct {
		config control.Config
		want   string
	}{
		"there in both":           {control.Config{Version: "1.36", FeatureGates: map[string]bool{"WatchList": false}}, ""},
		"removed since":           {control.Config{FeatureGates: map[string]bool{"BtreeWatchCache": false}}, `"BtreeWatchCache", but kube-apiserver of Kubernetes 1.36 has it`},
		"not there yet":           {control.Config{Version: "1.36", FeatureGates: map[string]bool{"EtcdRangeStream": true}}, `"EtcdRangeStream", but kube-apiserver of Kubernetes 1.37 has it`},
		"of another":              {control.Config{Scheduler: control.Scheduler{Flags: control.Flags{"feature-gates": "FastLeaseKeepAlive=true"}}}, "etcd has this gate"},
		"removed, as a flag":      {control.Config{APIServer: control.APIServer{Flags: control.Flags{"feature-gates": "BtreeWatchCache=true"}}}, "1.36 has it"},
		"not in the emulated one": {control.Config{EmulatedVersion: "1.36", FeatureGates: map[string]bool{"EtcdRangeStream": true}}, `"EtcdRangeStream", but kube-apiserver of Kubernetes 1.37 has it`},
		"in one of two kinds":     {control.Config{Versions: map[string]string{"kube-controller-manager": "1.36"}, FeatureGates: map[string]bool{"EtcdRangeStream": true}}, ""},
	} {
		var all []string
		for _, p := range c.config.Problems() {
			all = append(all, p.Path+": "+p.Msg+" ("+p.Hint+")")
		}
		if got := strings.Join(all, "; "); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got problems %s", name, got)
		}
	}
	mixed := control.Config{Versions: map[string]string{"kube-controller-manager": "1.36"}, FeatureGates: map[string]bool{"WatchList": false}}
	for kind, minor := range map[string]string{control.KindAPIServer: "1.37", control.KindControllerManager: "1.36"} {
		r, _ := control.ReleaseOf(minor)
		if got := mixed.FlagsOf(kind, r)["feature-gates"]; got != "WatchList=false" {
			t.Errorf("feature gates of %s = %q, want WatchList=false", kind, got)
		}
	}
}

// The table of releases must contain the versions in the go.mod file of each release.
func TestReleasesAreThoseOfTheirModules(t *testing.T) {
	for _, r := range control.Releases() {
		module, ldflags := "../versions/"+r.Minor+"/release.mod", "../versions/"+r.Minor+"/ldflags"
		if r == control.Newest() {
			module, ldflags = "../../go.mod", "../../tools/ldflags"
		}
		for file, want := range map[string][]string{
			module:  {"k8s.io/kubernetes " + r.Kubernetes + "\n", "go.etcd.io/etcd/server/v3 v" + r.Etcd + "\n"},
			ldflags: {"version.gitVersion=" + r.Kubernetes + " ", "version.gitMinor=" + strings.TrimPrefix(r.Minor, "1.") + " "},
		} {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Error(err)
				continue
			}
			for _, w := range want {
				if !strings.Contains(string(text), w) {
					t.Errorf("%s does not contain %q", file, w)
				}
			}
		}
	}
}
