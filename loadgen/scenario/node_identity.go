package scenario

import "cmp"

// How simulated nodes authenticate to the API server: values of Nodes.Identity.
const (
	IdentityCertificate = "certificate"
	IdentityToken       = "token"
	IdentityAuto        = "auto"
)

// Identities lists the values of Nodes.Identity.
func Identities() []string { return []string{IdentityAuto, IdentityCertificate, IdentityToken} }

// IdentityKind is Identity with its default.
func (n Nodes) IdentityKind() string { return cmp.Or(n.Identity, IdentityAuto) }
