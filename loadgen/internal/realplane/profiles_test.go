package realplane

import (
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Every component of a bundled plane serves its profiles. A user's cluster serves them only to users with the required
// right.
func TestComponentsGiveProfiles(t *testing.T) {
	s, err := scenario.Parse("test.yaml", []byte("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: test\nphases: [{name: a, for: 1s}]\n"), nil)
	must(t, err)
	ours, err := cluster.FromPlane(plane.Cluster(), "r9", plan.Of(s))
	must(t, err)
	sources, err := ours.ProfileSources()
	must(t, err)
	var kinds []string
	for _, source := range sources {
		kinds = append(kinds, source.Kind)
		for _, kind := range []string{"heap", "goroutine"} {
			if _, err := source.Take(t.Context(), kind, 0); err != nil {
				t.Errorf("%s of %s: %v", kind, source.Component, err)
			}
		}
	}
	for _, kind := range []string{control.KindEtcd, control.KindAPIServer, control.KindScheduler, control.KindControllerManager} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("no profiles of %s among %v", kind, kinds)
		}
	}
	refused := func(user, want string) {
		theirs := &cluster.Target{}
		theirs.Admin = loadConfig(t)
		if user == "scraper" {
			theirs.Scrape = ours.Scrape[:0:0]
			for _, scrape := range ours.Scrape {
				if scrape.Job == control.KindScheduler {
					theirs.Scrape = append(theirs.Scrape, scrape)
				}
			}
		}
		sources, err := theirs.ProfileSources()
		must(t, err)
		_, err = sources[0].Take(t.Context(), "heap", 0)
		if said := errorText(err); !strings.HasPrefix(said, want) || want == "" && err != nil {
			t.Errorf("%s: %v", user, err)
		}
	}
	refused("cluster-admin", "")
	refused("scraper", "403 Forbidden: the user is not permitted to get the URL /debug/pprof/heap")
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
