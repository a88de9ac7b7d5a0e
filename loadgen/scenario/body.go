package scenario

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/loadgen/internal/template"
)

// bodyTurns is how many different bodies an operation has, which follow each other again and again.
const bodyTurns = 64

// RenderBodies renders the body of an operation for each turn, as JSON.
func RenderBodies(body any) ([][]byte, error) {
	text, err := yaml.Marshal(map[string]any{"body": body})
	if err != nil {
		return nil, fmt.Errorf("write it as YAML: %w", err)
	}
	t, err := template.Parse(string(text))
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for turn := range bodyTurns {
		documents, err := t.Documents(map[string]any{"Turn": turn}, 0, uint64(turn))
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(documents[0]["body"])
		if err != nil {
			return nil, fmt.Errorf("write it as JSON: %w", err)
		}
		all = append(all, data)
	}
	return all, nil
}
