package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// probeTimeout is the time limit for the first certificate that a cluster signs. A working signer needs about a second.
// Without a signer, the request stays pending forever.
const probeTimeout = 15 * time.Second

// credentials decides how simulated nodes authenticate: by client certificates or by tokens of ServiceAccounts.
type credentials struct {
	want string // how the scenario wants nodes to authenticate: one of scenario.Identities
	// noCertificates and noTokens are the reasons why the user may not create certificates or tokens. Nil means that
	// the user may.
	noCertificates, noTokens error

	chosen bool
	tokens bool
	why    string // why tokens were chosen
}

// permitted chooses tokens if the scenario requires them, or if the user may not create certificates. It returns an
// error if the user may not create any credentials that the scenario accepts.
func (c *credentials) permitted() error {
	switch {
	case c.want == scenario.IdentityToken && c.noTokens != nil, c.want == scenario.IdentityAuto && c.noTokens != nil && c.noCertificates != nil:
		return c.noTokens
	case c.want == scenario.IdentityCertificate && c.noCertificates != nil:
		return c.noCertificates
	case c.want == scenario.IdentityToken:
		c.choose("as nodes.identity says")
	case c.noCertificates != nil:
		c.choose(c.noCertificates.Error())
	}
	return nil
}

func (c *credentials) choose(why string) { c.chosen, c.tokens, c.why = true, true, why }

// tried chooses the credentials after the first request for a certificate. It chooses certificates if err, the error of
// that request, is nil, and otherwise tokens. It returns an error if tokens are needed but the scenario requires
// certificates or the user may not create tokens.
func (c *credentials) tried(err error) error {
	const remedy = "to use tokens of ServiceAccounts, set nodes.identity=token; to let all nodes use the identity of the load, set nodes.fidelity=shared"
	switch {
	case err == nil:
		c.chosen = true
	case c.want == scenario.IdentityCertificate:
		return fmt.Errorf("the cluster does not issue client certificates to nodes: %s (%s)", oneLine(err), remedy)
	case c.noTokens != nil:
		return fmt.Errorf("the cluster does not issue client certificates to nodes: %s; and tokens of ServiceAccounts cannot be used instead: %w", oneLine(err), c.noTokens)
	default:
		c.choose("the cluster does not issue client certificates to nodes: " + oneLine(err))
	}
	return nil
}

// difference describes how nodes that authenticate with tokens differ from real kubelets. The plan, the log and the
// report contain it.
const difference = "RBAC instead of the Node authorizer permits the requests of nodes; NodeRestriction does not apply; priority and fairness assigns their requests to workload-low " +
	"instead of node-high and system; pods outside the run's namespaces start without tokens, ConfigMaps and Secrets"

// String says in one line why tokens were chosen. It returns "" if certificates were chosen.
func (c credentials) String() string {
	if !c.tokens {
		return ""
	}
	return fmt.Sprintf("each node has a token of a ServiceAccount and no client certificate (%s): %s", c.why, difference)
}

// ownIdentities reports whether each node has its own identity.
func (t *Target) ownIdentities() bool {
	n := t.plan.Nodes
	return n.Count > 0 && n.Fidelity != node.Shared
}

// checkCredentials checks whether the user may create client certificates or tokens for the nodes. An error begins with
// the user's name.
func (t *Target) checkCredentials(ctx context.Context, client kubernetes.Interface, user string) error {
	s := t.plan
	if !t.ownIdentities() {
		t.credentials.chosen = true
		return nil
	}
	t.credentials.want = s.Nodes.IdentityKind()
	ask := func(needs []need) (refused error, err error) {
		missing, err := missingAccess(ctx, client, needs)
		if err != nil {
			return nil, fmt.Errorf("%s %w", user, err)
		}
		if len(missing) > 0 {
			refused = fmt.Errorf("%s %s", user, lacking(missing))
		}
		return refused, nil
	}
	var err error
	if t.credentials.want != scenario.IdentityToken {
		if t.credentials.noCertificates, err = ask(signedNeeds(s)); err != nil {
			return err
		}
	}
	if t.credentials.want != scenario.IdentityCertificate {
		if t.credentials.noTokens, err = ask(accountNeeds(t.accountNamespace(), t.Namespace, s)); err != nil {
			return err
		}
	}
	return t.credentials.permitted()
}

// identityText says how the nodes authenticate, for the plan.
func (t *Target) identityText(s *plan.Plan) string {
	const signed = "each with a client certificate that the cluster signs"
	account := "a token of a separate ServiceAccount in namespace " + t.accountNamespace()
	switch c := t.credentials; {
	case s.Nodes.Fidelity == node.Shared:
		return "all with the identity of the load"
	case c.tokens:
		return "each with " + account
	case c.want == scenario.IdentityAuto && c.noTokens == nil && !c.chosen:
		return signed + ", or with " + account + " if the cluster does not sign a test certificate before the start"
	}
	return signed
}

// ChooseCredentials decides whether the nodes authenticate by certificates or tokens. Call it before creating anything
// else in the cluster. If the user has the permissions for both, ChooseCredentials requests one certificate as a test,
// and deletes the request. If it chooses tokens, it records this as a deviation from the defaults, and `told` describes
// the choice in one line; otherwise `told` is "".
func (t *Target) ChooseCredentials(ctx context.Context) (told string, err error) {
	c := &t.credentials
	if !c.chosen {
		done := t.waiting("the cluster to sign a client certificate for a node")
		err := t.tryCertificates(ctx)
		done()
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err := c.tried(err); err != nil {
			return "", fmt.Errorf("cluster %s: %w", t.Cluster.Name, err)
		}
	}
	if c.tokens {
		t.Cluster.Deviations = slices.Concat(t.Cluster.Deviations, []control.Deviation{{Component: "kubelet", Setting: "identity", Value: "token of a ServiceAccount", Default: "client certificate", Reason: c.why + "; " + difference}})
	}
	return c.String(), nil
}

func (t *Target) tryCertificates(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := node.TryCertificates(ctx, t.Admin, t.Labels, t.NodePrefix()+"try", t.plan.Nodes.KubeProxy)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no certificate was signed within %s (signer %s)", probeTimeout, kubeletSigner)
	}
	return err
}

// NodePrefix returns the prefix of the nodes' names.
func (t *Target) NodePrefix() string { return nodePrefix(t.runID) }

func nodePrefix(runID string) string { return "sg-" + runID + "-" }
