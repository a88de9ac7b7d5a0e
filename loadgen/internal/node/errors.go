package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func isCertificateError(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	return errors.As(err, &verification) || errors.As(err, &authority)
}

// hint adds what to do about an error that ended the start.
func hint(err error) error {
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w (the cluster does not accept the nodes' identity: another client CA signed it?)", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w (fidelity %q needs an identity system:node:NAME per node; %q needs rights on nodes, leases, pods, pods/status and serviceaccounts/token)", err, Kubelet, Shared)
	case isCertificateError(err):
		return fmt.Errorf("%w (the kubeconfig's certificate authority does not match the server's)", err)
	}
	return err
}
