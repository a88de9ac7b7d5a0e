package control

import (
	"slices"
	"strings"
)

// coordinatedGate is the feature gate with which API servers elect the leaders of schedulers and controller managers.
// coordinatedAPI is the API that this election needs.
const (
	coordinatedGate = "CoordinatedLeaderElection"
	coordinatedAPI  = "coordination.k8s.io/v1beta1"
)

// coordinatedProblems finds configs in which no scheduler or controller manager would become the leader: the feature
// gate CoordinatedLeaderElection is on, but API servers do not serve the API of lease candidates, or the gate is off in
// the API servers.
func (c Config) coordinatedProblems() []Problem {
	served, path := c.gateOf(KindAPIServer, coordinatedGate)
	if served && !c.Serves(coordinatedAPI) {
		return []Problem{{
			path, coordinatedGate + " needs " + coordinatedAPI + ", which API servers do not serve by default, so no leader would be elected",
			"set apiServer.flags.runtime-config: " + coordinatedAPI + "=true",
		}}
	}
	for _, kind := range []string{KindControllerManager, KindScheduler} {
		if on, path := c.gateOf(kind, coordinatedGate); on && !served {
			return []Problem{{
				path, coordinatedGate + " is on in " + kind + " but off in the API servers, so no leader would be elected",
				"set featureGates." + coordinatedGate + ": true, for all components",
			}}
		}
	}
	return nil
}

// gateOf reports whether the config turns on a beta feature gate for a kind of component. It also returns the path of
// the field that sets the gate.
func (c Config) gateOf(kind, gate string) (on bool, path string) {
	for _, gate := range []string{gate, "AllBeta"} {
		for _, section := range c.FlagSections() {
			if section.Kind != kind {
				continue
			}
			for setting := range strings.SplitSeq(section.Flags[gatesFlag], ",") {
				if name, value, _ := strings.Cut(strings.TrimSpace(setting), "="); strings.TrimPrefix(name, "kube:") == gate {
					return value == "true", section.Path + "." + gatesFlag
				}
			}
		}
		if on, set := c.FeatureGates[gate]; set {
			return on, "featureGates." + gate
		}
	}
	return false, ""
}

// Serves reports whether API servers serve a version of Kubernetes' APIs, such as "apps/v1". By default, they serve no
// alpha and no beta versions.
func (c Config) Serves(groupVersion string) bool {
	level := "alpha"
	if strings.Contains(groupVersion, "beta") {
		level = "beta"
	} else if !strings.Contains(groupVersion, level) {
		return true
	}
	return slices.ContainsFunc(strings.Split(c.APIServer.Flags["runtime-config"], ","), func(setting string) bool {
		name, value, set := strings.Cut(strings.TrimSpace(setting), "=")
		return (!set || value == "true") && (slices.Contains([]string{groupVersion, "api/" + level, "api/all"}, name) || strings.HasPrefix(name, groupVersion+"/"))
	})
}
