package cluster

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Nodes get certificates if the cluster signs them and the user may request and approve them. Otherwise nodes get
// tokens if the user may create them. If the scenario requires one kind, nodes never get the other.
func TestCredentialsFollowWhatTheClusterGives(t *testing.T) {
	const auto, certificate, token = scenario.IdentityAuto, scenario.IdentityCertificate, scenario.IdentityToken
	mayNotSign, mayNotMake, unsigned := errors.New("alice lacks approve"), errors.New("alice lacks serviceaccounts"), errors.New("none was\nsigned")
	for name, c := range map[string]struct {
		credentials
		probe  error // nil: the cluster signs the certificate
		probed bool
		tokens string // the reason for tokens; "" means certificates
		err    string
	}{
		"the cluster signs":             {credentials{want: auto}, nil, true, "", ""},
		"it does not":                   {credentials{want: auto}, unsigned, true, "the cluster does not issue client certificates to nodes: none was signed", ""},
		"the user may not approve":      {credentials{want: auto, noCertificates: mayNotSign}, nil, false, "alice lacks approve", ""},
		"no tokens, but it signs":       {credentials{want: auto, noTokens: mayNotMake}, nil, true, "", ""},
		"no tokens, and it does not":    {credentials{want: auto, noTokens: mayNotMake}, unsigned, true, "", "client certificates to nodes: none was signed; and tokens of ServiceAccounts cannot be used instead: alice lacks serviceaccounts"},
		"the user may do neither":       {credentials{want: auto, noCertificates: mayNotSign, noTokens: mayNotMake}, nil, false, "", "alice lacks serviceaccounts"},
		"certificates alone":            {credentials{want: certificate}, unsigned, true, "", "none was signed (to use tokens of ServiceAccounts, set nodes.identity=token"},
		"certificates, not permitted":   {credentials{want: certificate, noCertificates: mayNotSign}, nil, false, "", "alice lacks approve"},
		"tokens alone":                  {credentials{want: token}, nil, false, "as nodes.identity says", ""},
		"tokens alone, and not allowed": {credentials{want: token, noTokens: mayNotMake}, nil, false, "", "alice lacks serviceaccounts"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.permitted()
			probed := err == nil && !c.chosen
			if probed {
				err = c.tried(c.probe)
			}
			if probed != c.probed || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("requested a certificate: %v; error %v", probed, err)
			}
			if err == nil && (!c.chosen || c.credentials.tokens != (c.tokens != "") || c.why != c.tokens) {
				t.Errorf("%+v", c.credentials)
			}
		})
	}
}

// A run requests a certificate only after the user has confirmed the plan. Until then, the plan names both
// alternatives.
func TestNodesTakeTokensWhereNothingIsSigned(t *testing.T) {
	s := newStub(t) // serves no certificatesigningrequests
	nodes := func(set string) *plan.Plan { return parsed(t, "nodes: {count: 2"+set+"}\n"+quiet) }
	target := func(set string) *Target {
		t.Helper()
		made, err := FromKubeconfig(t.Context(), Kubeconfig{Files: s.kubeconfig(t, goodToken)}, "r1", nodes(set), func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	both := target("")
	if plan := both.Plan().String(); !strings.Contains(plan, "each with a client certificate that the cluster signs, or with a token") || strings.Contains(plan, "Node authorizer") {
		t.Errorf("the plan:\n%s", plan)
	}
	told, err := both.ChooseCredentials(t.Context())
	if err != nil || !strings.HasPrefix(told, "each node has a token of a ServiceAccount and no client certificate (the cluster does not issue client certificates to nodes: create certificatesigningrequests for sg-r1-try: ") || strings.Contains(told, "\n") {
		t.Errorf("%q, %v", told, err)
	}
	d := both.Cluster.Deviations
	if len(d) != 1 || d[0].Component != "kubelet" || d[0].Setting != "identity" || !strings.Contains(d[0].Reason, "instead of the Node authorizer") {
		t.Errorf("deviations %+v", d)
	}
	if _, err := target(", identity: certificate").ChooseCredentials(t.Context()); err == nil || !strings.Contains(err.Error(), "cluster staging: the cluster does not issue client certificates to nodes: ") {
		t.Errorf("error with nodes.identity=certificate: %v", err)
	}
	tokens := target(", identity: token")
	if plan := tokens.Plan().String(); !strings.Contains(plan, "each with a token of a separate ServiceAccount in namespace stormglass-r1-nodes") || !strings.Contains(plan, "instead of the Node authorizer") {
		t.Errorf("the plan:\n%s", plan)
	}
	if told, err := tokens.ChooseCredentials(t.Context()); err != nil || !strings.Contains(told, "(as nodes.identity says)") {
		t.Errorf("%q, %v", told, err)
	}
	if told, err := target(", fidelity: shared").ChooseCredentials(t.Context()); told != "" || err != nil {
		t.Errorf("ChooseCredentials with nodes.fidelity=shared = %q, %v; want no text and no error", told, err)
	}
}

// Nodes renew a certificate at 70% of its validity; a run ends before that. Nodes that run until Ctrl-C get the longest
// validity.
func TestCertificatesLastAsLongAsTheRun(t *testing.T) {
	const week = 7 * 24 * time.Hour
	for name, c := range map[string]struct {
		phases string
		alone  bool
		want   time.Duration
	}{
		"phases":             {"{name: a, for: 10m}, {name: b, for: 5m}", false, (15*time.Minute + aroundPhases) * 3 / 2},
		"a condition":        {"{name: a, until: {resource: pods, condition: Ready, count: 1}, within: 1h}", false, (time.Hour + aroundPhases) * 3 / 2},
		"more than a week":   {"{name: a, for: 24h}, {name: b, for: 24h}, {name: c, for: 24h}, {name: d, for: 24h}, {name: e, for: 24h}, {name: f, for: 24h}, {name: g, for: 24h}", false, week},
		"nodes until Ctrl-C": {"{name: nodes, for: 24h}", true, week},
	} {
		asked := make(chan *int32, 1)
		target := newTarget("r1", parsed(t, "nodes: {count: 1}\nphases: ["+c.phases+"]\n"))
		target.NodesAlone = c.alone
		target.Admin = stubapi.ServeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var request certificatesv1.CertificateSigningRequest
			body, err := io.ReadAll(r.Body)
			if err == nil {
				_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, &request)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			asked <- request.Spec.ExpirationSeconds
			w.WriteHeader(http.StatusForbidden)
		}))
		ids, _ := target.Identities(scenario.Nodes{Fidelity: node.Kubelet})
		if _, err := ids.For(t.Context(), "sg-r1-0"); err == nil {
			t.Fatalf("%s: For succeeds although the server signs no certificates", name)
		}
		var got time.Duration
		if seconds := <-asked; seconds != nil {
			got = time.Duration(*seconds) * time.Second
		}
		if got != c.want {
			t.Errorf("%s: requested validity %s, want %s", name, got, c.want)
		}
	}
}

// If the user may not approve certificates, nodes get tokens. If the user may not create ServiceAccounts, they get
// certificates.
func TestCredentialsFollowThePermissions(t *testing.T) {
	for denied, want := range map[string]string{
		"approve signers":                 "each with a token of a separate ServiceAccount in namespace stormglass-r1-nodes",
		"deletecollection resourceslices": "each with a client certificate that the cluster signs\n",
	} {
		s := newStub(t)
		s.denies = func(what string) bool { return what == denied }
		yaml := "nodes: {count: 2}\n" + quiet
		target, err := FromKubeconfig(t.Context(), Kubeconfig{Files: s.kubeconfig(t, goodToken)}, "r1", parsed(t, yaml), func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		if plan := target.Plan().String(); !strings.Contains(plan, want) {
			t.Errorf("without the permission to %s, the plan says\n%s", denied, plan)
		}
	}
}
