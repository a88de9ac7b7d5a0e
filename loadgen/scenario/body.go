package scenario

import (
	"encoding/json"
	"fmt"

	"github.com/stormglass/stormglass/loadgen/internal/template"
)

// bodyTurns is the number of different request bodies that are rendered for an operation. The requests use them in a cycle.
const bodyTurns = 64

// RenderBodies renders all bodyTurns request bodies of an operation as JSON.
func RenderBodies(body any) ([][]byte, error) {
	t, err := template.ParseValue(body)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for turn := range bodyTurns {
		value, err := t.Value(map[string]any{"Turn": turn}, 0, uint64(turn))
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encode the value as JSON: %w", err)
		}
		all = append(all, data)
	}
	return all, nil
}
