package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/proxytest"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
)

// behind returns a cluster that is reachable only through a proxy.
func behind(t *testing.T) (*proxytest.Proxy, *Target) {
	t.Helper()
	s, p := newStub(t), proxytest.Start(t)
	p.To = s.Listener.Addr().String()
	path := kubeconfigOf(t, fmt.Sprintf("server: 'https://example.com:6443', insecure-skip-tls-verify: true, proxy-url: 'http://me:secret@%s'", p.Addr()), "token: good")
	target, err := FromKubeconfig(t.Context(), Kubeconfig{Files: path}, "r1", parsed(t, quiet), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return p, target
}

// All connections of client-go, the load, the scrapes and the hook commands go through the proxy in the kubeconfig. The
// plan and the record name the proxy without its password.
func TestProxyOfTheKubeconfig(t *testing.T) {
	p, target := behind(t)
	endpoint, err := apiclient.New(target.Admin, &apiclient.Roots{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := endpoint.Connect(t.Context(), h2conn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	asked := p.Asked()
	if len(asked) < 3 || slices.ContainsFunc(asked, func(a string) bool { return a != "example.com:6443" }) {
		t.Errorf("the proxy received requests for %q, want only example.com:6443", asked)
	}
	via := "http://me:secret@" + p.Addr()
	if got := target.Scrape[0].ProxyURL; got != via {
		t.Errorf("the scrape uses the proxy %q", got)
	}
	if got := hookKubeconfig(target.Admin, "ns").Clusters["stormglass"].ProxyURL; got != via {
		t.Errorf("the kubeconfig of commands has proxy-url %q", got)
	}
	text := target.Plan().String() + fmt.Sprint(target.Cluster.Deviations)
	if strings.Contains(text, "secret") || strings.Count(text, "http://me:xxxxx@"+p.Addr()) != 2 {
		t.Errorf("the plan and the deviations do not name the proxy twice without its password:\n%s", text)
	}
}

// A cluster behind a proxy counts as reachable as long as the proxy can connect to it.
func TestLossBehindAProxy(t *testing.T) {
	p, target := behind(t)
	probe, err := newProbe(target.Admin)
	if err != nil {
		t.Fatal(err)
	}
	if err := probe.ask(t.Context()); err != nil {
		t.Error(err)
	}
	if err := probe.dial(t.Context()); err != nil {
		t.Error(err)
	}
	p.Stop()
	for what, err := range map[string]error{"ask": probe.ask(t.Context()), "dial": probe.dial(t.Context())} {
		if err == nil || plainly(err) != "its proxy cannot be used: dial tcp "+p.Addr()+": connect: connection refused" {
			t.Errorf("%s: error %v, described as %q", what, err, plainly(err))
		}
	}
}
