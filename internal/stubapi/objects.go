package stubapi

import (
	"fmt"
	"strings"
)

var configMaps = resources[0]

// Fill makes ConfigMaps PREFIX-0 to PREFIX-(n-1), each with a payload of size
// bytes and the labels.
func (s *Server) Fill(namespace, prefix string, n, size int, labels map[string]string) {
	some := map[string]any{}
	for k, v := range labels {
		some[k] = v
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	for i := range n {
		at := place{configMaps, namespace, fmt.Sprintf("%s-%d", prefix, i)}
		s.store.put(at, added, map[string]any{
			"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"labels": some},
			"data": map[string]any{"payload": strings.Repeat("x", size)},
		})
	}
}

// Touch writes a ConfigMap, which must be there, with another payload of the
// same size. It returns the version.
func (s *Server) Touch(namespace, name string) uint64 {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	old := s.store.of(configMaps).byKey[namespace+"/"+name]
	data, _ := old.fields["data"].(map[string]any)
	payload, _ := data["payload"].(string)
	text := fmt.Sprintf("%020d", s.store.rv)
	if len(payload) >= len(text) {
		payload = text + payload[len(text):]
	}
	return s.store.put(place{configMaps, namespace, name}, modified, merged(old.fields, map[string]any{
		"data": map[string]any{"payload": payload},
	})).rv
}
