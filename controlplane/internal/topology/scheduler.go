package topology

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/service"
)

// SchedulerConfig returns the KubeSchedulerConfiguration of a plane: the user's configuration, if any, completed with
// the other fields of cfg, the extender and the kubeconfig.
func SchedulerConfig(cfg control.Scheduler, l Layout, p Ports) ([]byte, error) {
	data, err := yaml.Marshal(schedulerDocument(cfg, l, p))
	if err != nil {
		return nil, fmt.Errorf("scheduler.config: %w", err)
	}
	return data, nil
}

func schedulerDocument(cfg control.Scheduler, l Layout, p Ports) map[string]any {
	doc := map[string]any{}
	maps.Copy(doc, cfg.Config)
	if _, ok := doc["apiVersion"]; !ok {
		doc["apiVersion"] = "kubescheduler.config.k8s.io/v1"
	}
	doc["kind"] = "KubeSchedulerConfiguration"

	connection := map[string]any{}
	if c, ok := doc["clientConnection"].(map[string]any); ok {
		connection = maps.Clone(c)
	}
	connection["kubeconfig"] = l.Kubeconfig(pki.Scheduler)
	if cfg.QPS != 0 {
		connection["qps"] = cfg.QPS
	}
	if cfg.Burst > 0 {
		connection["burst"] = cfg.Burst
	}
	doc["clientConnection"] = connection
	if cfg.PercentageOfNodesToScore > 0 {
		doc["percentageOfNodesToScore"] = cfg.PercentageOfNodesToScore
	}
	if cfg.HasExtender() {
		others, _ := doc["extenders"].([]any)
		doc["extenders"] = append(slices.Clone(others), extender(cfg, l, p))
	}
	return doc
}

// extender returns the entry for scheduler-extender in a KubeSchedulerConfiguration. With it, the scheduler sends the
// extender only the names of nodes.
func extender(cfg control.Scheduler, l Layout, p Ports) map[string]any {
	keys := l.PKI()
	return map[string]any{
		"urlPrefix": URL(p[control.ComponentName(control.KindSchedulerExtender, 0)]), "filterVerb": service.FilterVerb,
		"prioritizeVerb": service.PrioritizeVerb, "weight": 1, "httpTimeout": "5s", "nodeCacheCapable": true,
		"ignorable": cfg.Extender == control.ExtenderIgnorable, "enableHTTPS": true,
		"tlsConfig": map[string]any{"certFile": keys.Cert(pki.ServicesClient), "keyFile": keys.Key(pki.ServicesClient), "caFile": keys.Cert(pki.ServerCA)},
	}
}

// schedulerDeviations returns the user's scheduler settings that differ from upstream's defaults. They come from the
// fields of the config and from its KubeSchedulerConfiguration.
func (m maker) schedulerDeviations() []control.Deviation {
	var deviations []control.Deviation
	cfg := m.cfg.Scheduler
	if cfg.HasExtender() {
		deviations = append(deviations, control.Deviation{
			Component: control.KindScheduler, Setting: "extenders", Value: control.KindSchedulerExtender, Default: unset,
			Reason: "scheduler.extender: the scheduler calls " + control.KindSchedulerExtender + " for each pod (" + cfg.Extender + ")",
		})
		cfg.Extender = ""
	}
	doc := schedulerDocument(cfg, m.layout, m.ports)
	note := func(setting string, value any) {
		d := control.Deviation{
			Component: control.KindScheduler, Setting: setting, Value: display(value),
			Default: cmp.Or(schedulerDefault(setting), unset), Reason: byUser,
		}
		if d.Value != d.Default {
			deviations = append(deviations, d)
		}
	}
	connection, _ := doc["clientConnection"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(connection)) {
		if name != "kubeconfig" {
			note("clientConnection."+name, connection[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		switch name {
		case "apiVersion", "kind", "clientConnection":
		default:
			note(name, doc[name])
		}
	}
	return deviations
}

// schedulerDefault returns upstream's default of a field of KubeSchedulerConfiguration, as in
// SetDefaults_KubeSchedulerConfiguration.
func schedulerDefault(field string) string {
	return map[string]string{
		"clientConnection.qps": "50", "clientConnection.burst": "100", "parallelism": "16",
		"percentageOfNodesToScore": "0 (adaptive)", "podInitialBackoffSeconds": "1", "podMaxBackoffSeconds": "10",
	}[field]
}

func display(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}
