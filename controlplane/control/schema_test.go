package control_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/schemadoc"
	"github.com/stormglass/stormglass/internal/strictyaml"
)

var update = flag.Bool("update", false, "rewrite schema.json")

// values returns the valid values of fields of a plane's configuration, and the paths of these fields, by "Type.field".
func values() map[string]struct {
	path string
	all  []string
} {
	type field = struct {
		path string
		all  []string
	}
	var minors []string
	for _, r := range control.Releases() {
		minors = append(minors, r.Minor)
	}
	return map[string]field{
		"Config.version":         {"version", minors},
		"Config.networkFaults":   {"networkFaults", []string{control.NetworkFaultsOn, control.NetworkFaultsOff}},
		"Etcd.topology":          {"etcd.topology", []string{control.EtcdStacked, control.EtcdExternal}},
		"APIServer.audit":        {"apiServer.audit", []string{control.AuditOff, control.AuditMetadata}},
		"APIServer.auditWebhook": {"apiServer.auditWebhook", []string{"off", control.AuditWebhookBatch, control.AuditWebhookBlocking}},
		"APIServer.authentication": {"apiServer.authentication", []string{
			control.AuthenticationCertificate, control.AuthenticationServiceAccount, control.AuthenticationBootstrapToken, control.AuthenticationOIDC, control.AuthenticationWebhook,
		}},
		"APIServer.authorization": {"apiServer.authorization", []string{
			control.AuthorizationRBAC, control.AuthorizationWebhook, control.AuthorizationWebhookDeny, control.AuthorizationABAC,
		}},
		"APIServer.encryption":        {"apiServer.encryption", slices.Concat([]string{control.EncryptionOff, control.EncryptionKMS}, control.EncryptionProviders())},
		"APIServer.conversionWebhook": {"apiServer.conversionWebhook", []string{control.ConversionWebhookOff, control.ConversionWebhookOn}},
		"Scheduler.extender":          {"scheduler.extender", []string{control.ExtenderOff, control.ExtenderIgnorable, control.ExtenderRequired}},
	}
}

// TestSchema checks that schema.json matches Config and its comments.
func TestSchema(t *testing.T) {
	fields := map[string]schemadoc.Part{}
	for name, field := range values() {
		fields[name] = schemadoc.Enum(field.all)
	}
	s := schemadoc.Schema{
		File: "schema.json", Title: "Stormglass control plane", Tag: "yaml", Fields: fields,
		Scalars: map[string]schemadoc.Part{
			"Duration": schemadoc.Duration(),
			"Flags":    {"type": "object", "additionalProperties": schemadoc.Part{"type": []string{"string", "number", "boolean"}}, "description": "Command-line flags of a component, by name without dashes"},
		},
	}
	if err := s.Read("."); err != nil {
		t.Fatal(err)
	}
	s.Check(t, "Config", *update)
}

// TestSchemaTakesWhatProblemsTakes sets each field to each of its valid values and to an invalid value. The schema and
// Problems must accept the same values.
func TestSchemaTakesWhatProblemsTakes(t *testing.T) {
	check := schemadoc.Validator(t, control.Schema())
	problem := func(text, path string) bool {
		doc, err := strictyaml.Parse("plane.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var c control.Config
		if err := doc.Decode(&c); err != nil {
			return true
		}
		return slices.ContainsFunc(c.Problems(), func(p control.Problem) bool { return p.Path == path })
	}
	for name, field := range values() {
		for _, value := range append(field.all, "nonsense") {
			text := fmt.Sprintf("%q", value)
			for _, step := range slices.Backward(strings.Split(field.path, ".")) {
				text = fmt.Sprintf("{%s: %s}", step, text)
			}
			refused, err := problem(text, field.path), check([]byte(text))
			if refused != (err != nil) || refused != (value == "nonsense") {
				t.Errorf("%s: %s: refused by Problems: %t; error of the schema: %v", name, text, refused, err)
			}
		}
	}
}

func TestSchemaOfConfigFiles(t *testing.T) {
	check := schemadoc.Validator(t, control.Schema())
	for text, valid := range map[string]bool{
		"{}": true,
		"{version: 1.36, etcd: {members: 3, flags: {snapshot-count: 5000}}, featureGates: {WatchList: false}}": true,
		"{cloudControllerManager: {replicas: 1, cloud: {delay: 20ms, throttle: 5}}}":                           true,
		"{controllerManager: {qps: -1}, scheduler: {config: {profiles: [{schedulerName: x}]}}}":                true,
		"{etcd: {member: 3}}":                              false,
		"{etcd: {members: 0}}":                             false,
		"{etcd: {members: three}}":                         false,
		"{etcd: {flags: {a: [b]}}}":                        false,
		"{featureGates: {WatchList: maybe}}":               false,
		"{cloudControllerManager: {cloud: {delay: 20}}}":   false,
		"{cloudControllerManager: {cloud: {throttle: 0}}}": false,
		"{controllerManager: [1]}":                         false,
	} {
		if err := check([]byte(text)); (err == nil) != valid {
			t.Errorf("%s: error %v", text, err)
		}
	}
}
