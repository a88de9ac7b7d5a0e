package control_test

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Without the API that CoordinatedLeaderElection needs, a start would wait for leaders forever. Problems must report
// this.
func TestCoordinatedLeaderElection(t *testing.T) {
	on, off := map[string]bool{"CoordinatedLeaderElection": true}, map[string]bool{"CoordinatedLeaderElection": false}
	served := func(runtimeConfig string) control.APIServer {
		return control.APIServer{Flags: control.Flags{"runtime-config": runtimeConfig}}
	}
	gate := func(value string) control.Flags {
		return control.Flags{"feature-gates": value}
	}
	const needs = "set apiServer.flags.runtime-config: coordination.k8s.io/v1beta1=true"
	for name, c := range map[string]struct {
		config control.Config
		want   string
	}{
		"off":                       {control.Config{FeatureGates: off}, ""},
		"on":                        {control.Config{FeatureGates: on, APIServer: served("coordination.k8s.io/v1beta1=true")}, ""},
		"on, with all beta APIs":    {control.Config{FeatureGates: on, APIServer: served("api/alpha=false, api/beta=true")}, ""},
		"its API without a value":   {control.Config{FeatureGates: on, APIServer: served("coordination.k8s.io/v1beta1")}, ""},
		"without its API":           {control.Config{FeatureGates: on}, "featureGates.CoordinatedLeaderElection: " + needs},
		"its API switched off":      {control.Config{FeatureGates: on, APIServer: served("coordination.k8s.io/v1beta1=false")}, "featureGates.CoordinatedLeaderElection: " + needs},
		"another API":               {control.Config{FeatureGates: on, APIServer: served("scheduling.k8s.io/v1beta1=true")}, "featureGates.CoordinatedLeaderElection: " + needs},
		"of all beta gates":         {control.Config{FeatureGates: map[string]bool{"AllBeta": true}}, "featureGates.AllBeta: " + needs},
		"all beta gates but it":     {control.Config{FeatureGates: map[string]bool{"AllBeta": true, "CoordinatedLeaderElection": false}}, ""},
		"by a flag":                 {control.Config{APIServer: control.APIServer{Flags: gate("CoordinatedLeaderElection=true")}}, "apiServer.flags.feature-gates: " + needs},
		"in the scheduler alone":    {control.Config{Scheduler: control.Scheduler{Flags: gate("CoordinatedLeaderElection=true")}}, "scheduler.flags.feature-gates: set featureGates.CoordinatedLeaderElection: true, for all components"},
		"on, and not in one kind":   {control.Config{FeatureGates: on, APIServer: served("api/all=true"), Scheduler: control.Scheduler{Flags: gate("CoordinatedLeaderElection=false")}}, ""},
		"off, and on in one kind":   {control.Config{FeatureGates: off, ControllerManager: control.ControllerManager{Flags: gate("kube:CoordinatedLeaderElection=true")}}, "controllerManager.flags.feature-gates: set"},
		"on by a flag against off":  {control.Config{FeatureGates: off, APIServer: control.APIServer{Flags: control.Flags{"feature-gates": "CoordinatedLeaderElection=true", "runtime-config": "api/all=true"}}}, ""},
		"an older version, as well": {control.Config{Version: "1.35", FeatureGates: on}, "featureGates.CoordinatedLeaderElection: " + needs},
	} {
		var got []string
		for _, p := range c.config.Problems() {
			got = append(got, p.Path+": "+p.Hint)
		}
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
			t.Errorf("%s: got problems %q, want %q", name, got, c.want)
		}
	}
}
