package target

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// reachTimeout bounds the first request to a cluster.
const reachTimeout = 10 * time.Second

// Config reads a kubeconfig and returns the client configuration of a
// context ("" means the current one) and the name of its cluster.
func Config(path, contextName string) (*rest.Config, string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return nil, "", fmt.Errorf("kubeconfig %s: %w (--kubeconfig takes the file that kubectl uses)", path, err)
	}
	file, err := clientcmd.Load(data)
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: %s (is it a kubeconfig?)", path, oneLine(err))
	}
	names := strings.Join(slices.Sorted(maps.Keys(file.Contexts)), ", ")
	if contextName == "" {
		contextName = file.CurrentContext
	}
	if contextName == "" {
		return nil, "", fmt.Errorf("kubeconfig %s: no current-context (choose one with --context: %s)", path, names)
	}
	chosen, ok := file.Contexts[contextName]
	if !ok {
		return nil, "", fmt.Errorf("kubeconfig %s: no context %q (it has: %s)", path, contextName, names)
	}
	dangling := func(kind, name string) error {
		return fmt.Errorf("kubeconfig %s: context %q names the %s %q, which is not in the file", path, contextName, kind, name)
	}
	if file.Clusters[chosen.Cluster] == nil {
		return nil, "", dangling("cluster", chosen.Cluster)
	}
	if chosen.AuthInfo != "" && file.AuthInfos[chosen.AuthInfo] == nil {
		return nil, "", dangling("user", chosen.AuthInfo)
	}
	for _, cluster := range file.Clusters {
		cluster.LocationOfOrigin = path // relative paths are relative to the file
	}
	for _, user := range file.AuthInfos {
		user.LocationOfOrigin = path
	}
	if err := clientcmd.ResolveLocalPaths(file); err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: %s", path, oneLine(err))
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*file, contextName, nil, nil).ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: context %q: %s", path, contextName, oneLine(err))
	}
	cfg.QPS = -1 // a limiter in the client would hide what is offered
	return cfg, chosen.Cluster, nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// FromKubeconfig makes a target of a user's cluster. It changes nothing
// there: it looks whether the cluster answers, who we are, and whether we may
// do all that the scenario will need. Each error is one line with a hint.
func FromKubeconfig(ctx context.Context, path, contextName, runID string, s *scenario.Scenario) (*Target, error) {
	cfg, name, err := Config(path, contextName)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %s", path, oneLine(err))
	}
	t := newTarget(runID, s)
	t.Admin = cfg
	t.Cluster = result.Cluster{Name: name, Server: cfg.Host}
	reach, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	user, err := t.reach(reach, client)
	if err != nil {
		return nil, fmt.Errorf("cluster %s (%s): %w", name, cfg.Host, explain(err))
	}
	if t.needs, err = loadNeeds(client.Discovery(), t.Namespace, s); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	if err := checkAccess(ctx, client, append(adminNeeds(t.Namespace, s), t.needs...)); err != nil {
		return nil, fmt.Errorf("cluster %s: %s %w", name, user, err)
	}
	t.offer(apiServerScrape(cfg))
	t.Notes = append(t.Notes, differences(s.ControlPlane)...)
	t.scrapeNotes = t.apiServers(reach, client)
	t.Notes = append(t.Notes, t.scrapeNotes...)
	if s.Nodes.Count > 0 {
		t.Notes = append(t.Notes, "DaemonSets that tolerate every taint place a pod on each simulated node too; those pods go with the nodes")
	}
	return t, nil
}

// reach asks for the version, which is open to most, and who we are, which is
// not.
func (t *Target) reach(ctx context.Context, client kubernetes.Interface) (user string, err error) {
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := getJSON(ctx, client, "/version", &version); err != nil {
		return "", err
	}
	t.KubernetesVersion = version.GitVersion
	self, err := client.AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "the user of the kubeconfig", nil // before Kubernetes 1.28
	case err != nil:
		return "", err
	}
	return self.Status.UserInfo.Username, nil
}

// explain says in the words of a person what a failed first request means.
func explain(err error) error {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var verify *tls.CertificateVerificationError
	var dns *net.DNSError
	var netErr net.Error
	switch {
	case errors.As(err, &authority):
		return errors.New("its certificate is signed by an authority that the kubeconfig does not trust (certificate-authority-data of another cluster?)")
	case errors.As(err, &host):
		return fmt.Errorf("%s (tls-server-name in the kubeconfig sets the name to verify)", oneLine(host))
	case errors.As(err, &verify):
		return fmt.Errorf("its certificate is not valid: %s", oneLine(verify.Err))
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("connection refused (is the cluster up, is the address right?)")
	case errors.As(err, &dns):
		return fmt.Errorf("no such host %s (is the address right, is the VPN up?)", dns.Name)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return fmt.Errorf("no answer within %s (is a firewall or VPN in between?)", reachTimeout)
	case apierrors.IsUnauthorized(err):
		return errors.New("401 Unauthorized: it does not accept the credentials (have they expired?)")
	}
	return errors.New(oneLine(err))
}

// getJSON reads a path that is no API resource.
func getJSON(ctx context.Context, client kubernetes.Interface, path string, into any) error {
	data, err := client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return errors.New("it does not answer like a Kubernetes API server (is the address right?)")
	}
	return nil
}
