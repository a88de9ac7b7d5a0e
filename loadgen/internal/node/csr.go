package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/retry"
)

// csrTimeout is the time limit for obtaining a signed certificate. It is long because the controller manager's
// --kube-api-qps limits the rate of signatures.
const csrTimeout = 5 * time.Minute

// shortestLife is the shortest certificate lifetime that the CSR API allows.
const shortestLife = 10 * time.Minute

type csrSigner struct {
	admin  *rest.Config
	labels map[string]string
	life   time.Duration
}

// NewCSRSigner returns an Authority that obtains its certificates from the CSR API of a cluster (signer
// kubernetes.io/kube-apiserver-client-kubelet). The Authority creates, approves, awaits and deletes
// CertificateSigningRequests as admin. It gives them the labels, so that a cleanup finds the requests of a killed run.
// life is how long certificates are valid, at most a week; 0 means a week.
func NewCSRSigner(admin *rest.Config, labels map[string]string, life time.Duration) Authority {
	if life <= 0 || life > certLife {
		life = certLife
	}
	return &csrSigner{admin: admin, labels: labels, life: life}
}

func (s *csrSigner) For(ctx context.Context, node string) (*rest.Config, error) {
	return s.client(ctx, node, subject(node), certificatesv1.KubeAPIServerClientKubeletSignerName)
}

// ForProxies returns the client configuration that all kube-proxies share. The admin must be permitted to approve
// requests to the signer kubernetes.io/kube-apiserver-client, because the kubelets' signer signs only for nodes.
func (s *csrSigner) ForProxies(ctx context.Context) (*rest.Config, error) {
	return s.client(ctx, "kube-proxy", pkix.Name{CommonName: proxyUser}, certificatesv1.KubeAPIServerClientSignerName)
}

func (s *csrSigner) client(ctx context.Context, name string, subject pkix.Name, signer string) (*rest.Config, error) {
	key, certificate, err := s.request(ctx, name, subject, nil, signer, certificatesv1.UsageClientAuth)
	if err != nil {
		return nil, err
	}
	base, err := serverOnly(s.admin)
	if err != nil {
		return nil, err
	}
	return withCert(base, key, certificate)
}

// TryCertificates returns a one-line error unless the cluster signs client certificates for nodes and its API server
// accepts them. If proxies is true, it also tries certificates for kube-proxies. It requests a certificate for the
// named node, and deletes the request. The node must not exist.
func TryCertificates(ctx context.Context, admin *rest.Config, labels map[string]string, node string, proxies bool) error {
	signer := NewCSRSigner(admin, labels, shortestLife)
	config, err := signer.For(ctx, node)
	if err == nil {
		err = accepted(ctx, config, authorizationv1.ResourceAttributes{Verb: "create", Resource: "nodes"})
	}
	if err != nil || !proxies {
		return err
	}
	if config, err = signer.ForProxies(ctx); err != nil {
		return err
	}
	return accepted(ctx, config, authorizationv1.ResourceAttributes{Verb: "watch", Resource: "services"})
}

// accepted returns an error unless the API server accepts the client certificate in config and grants the certificate's
// user the permission that `right` describes.
func accepted(ctx context.Context, config *rest.Config, right authorizationv1.ResourceAttributes) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		return errors.New("the API server does not accept the certificate that the cluster has signed (was it signed by a different client CA?)")
	case err != nil:
		return fmt.Errorf("use the certificate that the cluster has signed: %w", err)
	case !answer.Status.Allowed:
		return fmt.Errorf("the certificate that the cluster has signed does not permit a client to %s %s (is the Node authorizer enabled?)", right.Verb, right.Resource)
	}
	return nil
}

// Serve returns a serving certificate of a node. The admin must be permitted to approve requests to the signer
// kubernetes.io/kubelet-serving.
func (s *csrSigner) Serve(ctx context.Context, node string, addresses []netip.Addr) (*tls.Certificate, error) {
	key, certificate, err := s.request(ctx, node, subject(node), addresses, certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth)
	if err != nil {
		return nil, err
	}
	return pair(key, certificate)
}

// request creates a key and obtains a certificate for the key and the given subject from a signer. name is part of the
// CSR's name and of error messages.
func (s *csrSigner) request(ctx context.Context, name string, subject pkix.Name, addresses []netip.Addr, signer string, usage certificatesv1.KeyUsage) (key *ecdsa.PrivateKey, certificate []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, csrTimeout)
	defer cancel()
	// By default, client-go limits the rate of a client's requests. A QPS of -1 disables this limit.
	unlimited := rest.CopyConfig(s.admin)
	unlimited.QPS = -1
	client, err := kubernetes.NewForConfig(unlimited)
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate for %s: %w", name, err)
	}
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, fmt.Errorf("generate a key for %s: %w", name, err)
	}
	request, err := cert.MakeCSR(key, &subject, nil, netIPs(addresses))
	if err != nil {
		return nil, nil, fmt.Errorf("create a certificate request for %s: %w", name, err)
	}
	certificate, err = s.sign(ctx, client, name, signer, usage, request)
	return key, certificate, err
}

func (s *csrSigner) sign(ctx context.Context, client kubernetes.Interface, name, signer string, usage certificatesv1.KeyUsage, request []byte) ([]byte, error) {
	requests := client.CertificatesV1().CertificateSigningRequests()
	seconds := int32(s.life / time.Second)
	made, err := requests.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-", Labels: s.labels},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: signer, ExpirationSeconds: &seconds,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create certificatesigningrequests for %s: %w", name, err)
	}
	defer func() {
		// Delete the request even if the run was interrupted: no request may stay behind.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = requests.Delete(ctx, made.Name, metav1.DeleteOptions{}) // after an error, a later cleanup finds the request by its labels
	}()
	// The cluster's own approver may have updated the new request already.
	newest := made
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		if newest == nil {
			if newest, err = requests.Get(ctx, made.Name, metav1.GetOptions{}); err != nil {
				return err
			}
		}
		if slices.ContainsFunc(newest.Status.Conditions, isApproval) {
			return nil
		}
		if i := slices.IndexFunc(newest.Status.Conditions, isDenial); i >= 0 {
			c := newest.Status.Conditions[i]
			return fmt.Errorf("an approver of the cluster has denied the request: %s", strings.TrimSpace(c.Reason+" "+c.Message))
		}
		newest.Status.Conditions = append(newest.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
			Reason: "StormglassNode", Message: "a simulated node of a load test",
		})
		_, err = requests.UpdateApproval(ctx, made.Name, newest, metav1.UpdateOptions{})
		newest = nil
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("approve certificatesigningrequests %s: %w", made.Name, err)
	}
	certificate, err := csr.WaitForCertificate(ctx, client, made.Name, made.UID)
	if err != nil {
		return nil, fmt.Errorf("wait for the certificate of certificatesigningrequests %s (is a signer for %s running?): %w",
			made.Name, signer, err)
	}
	return certificate, nil
}

func isDenial(c certificatesv1.CertificateSigningRequestCondition) bool {
	return c.Type == certificatesv1.CertificateDenied
}

func isApproval(c certificatesv1.CertificateSigningRequestCondition) bool {
	return c.Type == certificatesv1.CertificateApproved
}
