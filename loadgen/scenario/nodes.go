package scenario

import "fmt"

// ForNodes is a scenario of nothing but simulated nodes.
func ForNodes(count int, fidelity string, overrides []string) (*Scenario, error) {
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\nname: nodes\nphases: [{name: nodes, for: 24h}]\n", APIVersion, Kind)
	sets := []string{fmt.Sprintf("nodes.count=%d", count), "nodes.fidelity=" + fidelity}
	return Parse("nodes", []byte(text), append(sets, overrides...))
}
