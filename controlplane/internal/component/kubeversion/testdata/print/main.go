// Print prints the versions that components and clients report, as JSON.
package main

import (
	"encoding/json"
	"os"

	client "k8s.io/client-go/pkg/version"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/version" // kubernetes_build_info
	"k8s.io/component-base/version"

	_ "github.com/stormglass/stormglass/controlplane/internal/component/kubeversion"
)

func main() {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		panic(err)
	}
	metric := map[string]string{}
	for _, f := range families {
		if f.GetName() == "kubernetes_build_info" {
			for _, label := range f.GetMetric()[0].GetLabel() {
				metric[label.GetName()] = label.GetValue()
			}
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"component": version.Get(), "client": client.Get(), "metric": metric}); err != nil {
		panic(err)
	}
}
