package object

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func TestVariant(t *testing.T) {
	for want, x := range map[string]scenario.Operation{
		"":                       {Verb: "list", Resource: "pods", Weight: 3, Form: "object", Encoding: "json", Scope: "namespace"},
		"rv=0":                   {ResourceVersion: "0"},
		"rv=exact limit=500":     {ResourceVersion: "exact", Limit: 500},
		"limit=500 allPages":     {Limit: 500, AllPages: true},
		"table":                  {Form: "table"},
		"metadata protobuf":      {Form: "metadata", Encoding: "protobuf"},
		"cluster labels=app=web": {Scope: "cluster", LabelSelector: "app=web"},
		"fields=metadata.name=x": {FieldSelector: "metadata.name=x"},
	} {
		if got := variant(x); got != want {
			t.Errorf("%+v is %q, want %q", x, got, want)
		}
	}
}
