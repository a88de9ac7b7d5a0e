package capture

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

// names replaces names by hashes. Equal names get equal hashes. A reader cannot guess a name and compare its hash,
// because each recording has a random key that is not stored. The zero value keeps all names.
type names struct {
	mac      hash.Hash
	encoding *base32.Encoding
	// known caches hashes. It is cleared when it is full.
	known map[string]string
}

// maxKnown is the maximum number of cached hashes.
const maxKnown = 1 << 14

func newNames() *names {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return &names{
		mac: hmac.New(sha256.New, key), encoding: base32.NewEncoding(alphabet).WithPadding(base32.NoPadding), known: map[string]string{},
	}
}

// alphabet contains only characters that are valid in Kubernetes names.
const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

// hash returns a hash of name. The hash has 14 characters and is a valid name for every Kubernetes object. hash keeps
// an empty name and the names of namespaces that every cluster has.
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
	if len(n.known) >= maxKnown {
		clear(n.known)
	}
	n.known[name] = hashed
	return hashed
}

// object hashes the name of an object. It keeps names that contain an API group, because the recording shows the group
// elsewhere.
func (n *names) object(group, resource, name string) string {
	if group == "apiextensions.k8s.io" && resource == "customresourcedefinitions" || group == "apiregistration.k8s.io" && resource == "apiservices" {
		return name
	}
	return n.hash(name)
}

// user hashes a user name. In the user names of service accounts and nodes, it hashes only the namespace and the name
// of the account or node. It keeps other user names that begin with "system:".
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

// labelSelector hashes the values in a label selector. If the selector is invalid, it hashes the whole string.
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

// fieldSelector hashes those values in a field selector that may be names. If the selector is invalid, it hashes the
// whole string.
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

// isKind reports whether the values of a field need no hash because Kubernetes defines them, such as phases and kinds.
func isKind(field string) bool {
	switch field {
	case "status.phase", "type", "reason", "reportingComponent", "source", "spec.unschedulable", "spec.restartPolicy", "spec.schedulerName",
		"spec.hostNetwork", "status.successful", "spec.signerName", "involvedObject.kind", "involvedObject.apiVersion", "regarding.kind",
		"regarding.apiVersion":
		return true
	}
	return false
}
