package component

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cloudcontrollers "k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/names"
	"k8s.io/component-base/version"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer/modes"
	admission "k8s.io/kubernetes/pkg/kubeapiserver/options"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"

	"github.com/stormglass/stormglass/controlplane/control"
)

var update = flag.Bool("update", false, "rewrite the table of controlplane/control/flags")

// usageGate matches a feature gate in the usage text of the flag feature-gates.
var usageGate = regexp.MustCompile(`(?m)^([A-Za-z0-9]+)=true\|false`)

// gatesOf returns the feature gates that a component accepts. The value is "gate", or the only value of a locked gate.
// Kubernetes' usage omits gates that are GA or deprecated. etcd's usage would omit them too, but etcd has no such
// gates.
func gatesOf(kind, usage string) map[string]string {
	gates := map[string]string{}
	if kind == control.KindMetricsServer {
		return nil // the component has the flag, but no feature gates
	}
	if kind == control.KindEtcd {
		for _, found := range usageGate.FindAllStringSubmatch(usage, -1) {
			gates[found[1]] = "gate"
		}
		return gates
	}
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		gates[string(name)] = "gate"
		if spec.LockToDefault {
			gates[string(name)] = strconv.FormatBool(spec.Default)
		}
	}
	return gates
}

// TestFlagsOfTheComponentsAreKnown checks that the table of flags, feature gates and plugins that `loadgen validate`
// uses matches the components.
func TestFlagsOfTheComponentsAreKnown(t *testing.T) {
	var b bytes.Buffer
	fmt.Fprintln(&b, "# Flags of the components with the type of their value and what it is at least, from the components themselves:")
	fmt.Fprintln(&b, "# go test ./controlplane/internal/component -run Flags -update")
	for _, section := range (control.Config{}).FlagSections() {
		kind := section.Kind
		set, err := flagsOf(kind)
		if err != nil {
			t.Fatal(err)
		}
		set.VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || f.Name == "version" {
				return // with these flags, the component does nothing else
			}
			fmt.Fprintf(&b, "%s %s %s%s\n", kind, f.Name, f.Value.Type(), limit(t, kind, f))
			if f.Name != "feature-gates" {
				return
			}
			gates := gatesOf(kind, f.Usage)
			for _, name := range slices.Sorted(maps.Keys(gates)) {
				fmt.Fprintf(&b, "%s feature-gates/%s %s\n", kind, name, gates[name])
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(plugins.NewInTreeRegistry())) {
		fmt.Fprintf(&b, "%s plugins/%s plugin\n", control.KindScheduler, name)
	}
	for _, name := range slices.Sorted(slices.Values(append(controllers.KnownControllers(), slices.Collect(maps.Keys(controllers.ControllerAliases()))...))) {
		fmt.Fprintf(&b, "%s controllers/%s controller\n", control.KindControllerManager, name)
	}
	for _, name := range slices.Sorted(slices.Values(append(cloudcontrollers.ControllerNames(cloudcontrollers.DefaultInitFuncConstructors), slices.Collect(maps.Keys(names.CCMControllerAliases()))...))) {
		fmt.Fprintf(&b, "%s controllers/%s controller\n", control.KindCloudControllerManager, name)
	}
	for _, name := range slices.Sorted(slices.Values(admission.AllOrderedPlugins)) {
		fmt.Fprintf(&b, "%s admission-plugins/%s plugin\n", control.KindAPIServer, name)
	}
	for _, name := range slices.Sorted(slices.Values(modes.AuthorizationModeChoices)) {
		fmt.Fprintf(&b, "%s authorization-modes/%s mode\n", control.KindAPIServer, name)
	}
	file := "../../control/flags/" + version.DefaultKubeBinaryVersion + ".txt"
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Split(string(have), "\n"), strings.Split(b.String(), "\n"); !slices.Equal(got, want) {
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("%s does not contain %q (go test ./controlplane/internal/component -run Flags -update)", file, line)
			}
		}
		for _, line := range got {
			if !slices.Contains(want, line) {
				t.Errorf("%s contains %q, which the component no longer has", file, line)
			}
		}
	}
}
