package recording

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"hash"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// names replaces names by hashes with a key that is drawn for each recording and not kept, so
// that equal names stay equal and nobody can guess them. The zero value keeps names.
type names struct {
	mac      hash.Hash
	encoding *base32.Encoding
	// known are hashes made before; it is emptied when it is full.
	known map[string]string
}

// mostKnown bounds the hashes that are remembered.
const mostKnown = 1 << 14

func newNames() *names {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return &names{
		mac: hmac.New(sha256.New, key), encoding: base32.NewEncoding(alphabet).WithPadding(base32.NoPadding), known: map[string]string{},
	}
}

// alphabet is that of Kubernetes' names.
const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

// hash is a name of 14 characters that is valid wherever a name of Kubernetes is. The empty
// name stays, and those of the namespaces that every cluster has.
func (n *names) hash(name string) string {
	if n.mac == nil {
		return name
	}
	switch name {
	case "", "default", "kube-system", "kube-public", "kube-node-lease":
		return name
	}
	if hashed, ok := n.known[name]; ok {
		return hashed
	}
	n.mac.Reset()
	n.mac.Write([]byte(name))
	var sum [sha256.Size]byte
	hashed := "x" + n.encoding.EncodeToString(n.mac.Sum(sum[:0])[:8])
	if len(n.known) >= mostKnown {
		clear(n.known)
	}
	n.known[name] = hashed
	return hashed
}

// object is the hash of an object's name; those that are made of a group's name, which the
// trace has anyway, stay.
func (n *names) object(group, resource, name string) string {
	if group == "apiextensions.k8s.io" && resource == "customresourcedefinitions" || group == "apiregistration.k8s.io" && resource == "apiservices" {
		return name
	}
	return n.hash(name)
}

// user is the hash of a user; of a service account and a node only the names within are
// hashed, and other names that begin with system: stay.
func (n *names) user(name string) string {
	if n.mac == nil {
		return name
	}
	if rest, ok := strings.CutPrefix(name, "system:serviceaccount:"); ok {
		namespace, account, _ := strings.Cut(rest, ":")
		return "system:serviceaccount:" + n.hash(namespace) + ":" + n.hash(account)
	}
	if rest, ok := strings.CutPrefix(name, "system:node:"); ok {
		return "system:node:" + n.hash(rest)
	}
	if strings.HasPrefix(name, "system:") || name == unknownUser {
		return name
	}
	return n.hash(name)
}

// labelSelector hashes the values in a selector; one that no API server would take is hashed
// as a whole.
func (n *names) labelSelector(text string) string {
	if n.mac == nil || text == "" {
		return text
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return n.hash(text)
	}
	requirements, _ := selector.Requirements()
	var parts []string
	for _, r := range requirements {
		var values []string
		for value := range r.Values() {
			if r.Operator() != selection.GreaterThan && r.Operator() != selection.LessThan {
				value = n.hash(value)
			}
			values = append(values, value)
		}
		hashed, err := labels.NewRequirement(r.Key(), r.Operator(), values)
		if err != nil {
			return n.hash(text)
		}
		parts = append(parts, hashed.String())
	}
	return strings.Join(parts, ",")
}

// fieldSelector hashes the values in a selector that are names.
func (n *names) fieldSelector(text string) string {
	if n.mac == nil || text == "" {
		return text
	}
	selector, err := fields.ParseSelector(text)
	if err != nil {
		return n.hash(text)
	}
	var parts []string
	for _, r := range selector.Requirements() {
		value := r.Value
		if !isKind(r.Field) {
			value = n.hash(value)
		}
		parts = append(parts, r.Field+string(r.Operator)+fields.EscapeValue(value))
	}
	return strings.Join(parts, ",")
}

// isKind reports whether a field has one of a few values that Kubernetes names.
func isKind(field string) bool {
	switch field {
	case "status.phase", "type", "reason", "reportingComponent", "source", "spec.unschedulable", "spec.restartPolicy", "spec.schedulerName",
		"spec.hostNetwork", "status.successful", "spec.signerName", "involvedObject.kind", "involvedObject.apiVersion", "regarding.kind",
		"regarding.apiVersion":
		return true
	}
	return false
}
