package scenario

import "cmp"

// Values of Nodes.Identity: how simulated nodes authenticate to the API server.
const (
	IdentityCertificate = "certificate"
	IdentityToken       = "token"
	IdentityAuto        = "auto"
)

// Identities lists the values of Nodes.Identity.
func Identities() []string { return []string{IdentityAuto, IdentityCertificate, IdentityToken} }

// IdentityKind returns Identity, or the default IdentityAuto if Identity is empty.
func (n Nodes) IdentityKind() string { return cmp.Or(n.Identity, IdentityAuto) }
