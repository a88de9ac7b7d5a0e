package scenario

import (
	"fmt"
	"testing"
)

func TestShapesIsTheFormerNameOfPools(t *testing.T) {
	s, err := Parse("mine.yaml", []byte("apiVersion: "+APIVersion+"\nkind: "+Kind+"\nname: x\nnodes:\n  count: 9\n  shapes: [{name: a, weight: 2}, {name: b}]\nphases: [{name: a, for: 30s}]\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.Warnings()); got != "[mine.yaml:6: nodes.shapes: the field shapes is deprecated (rename it to pools)]" {
		t.Errorf("warnings %s", got)
	}
}
