package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
)

// proxyTimeout is the time limit for the connection that proxyCause opens to get a proxy's error.
const proxyTimeout = 5 * time.Second

// checkHTTP2 opens an HTTP/2 connection in the same way as the load and the nodes. If it returns an error, the run does
// not start.
func (t *Target) checkHTTP2(ctx context.Context) error {
	to, err := apiclient.New(t.Admin, &apiclient.Roots{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	conn, err := to.Connect(ctx, h2conn.Options{})
	if err != nil {
		return explain(err)
	}
	conn.Close()
	return nil
}

// proxyCause returns the cause of err, the error of a first request. If a proxy caused err, the result is the proxy's own
// error; otherwise it is err. proxyCause connects once more, because net/http reports only the status text of a proxy's
// refusal.
func (t *Target) proxyCause(ctx context.Context, err error) error {
	via, chosen := apiclient.Proxy(t.Admin)
	if chosen != nil || via == nil || errors.As(err, new(apierrors.APIStatus)) || errors.As(err, new(*pluginError)) || ctx.Err() != nil {
		return errors.Join(err, chosen)
	}
	dial, unusable := apiclient.Dialer(t.Admin)
	if unusable != nil {
		return unusable
	}
	p, unusable := newProbe(t.Admin)
	if unusable != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, proxyTimeout)
	defer cancel()
	conn, refused := dial(ctx, "tcp", p.address)
	if refused == nil {
		conn.Close()
		return err
	}
	if ofProxy(refused) == nil {
		return err
	}
	return refused
}

// noteProxy adds a note to t.Notes, and a deviation from the default settings to t.Cluster, if the connections go
// through a proxy. The measurements then include the proxy.
func (t *Target) noteProxy() {
	via, err := apiclient.Proxy(t.Admin)
	if err != nil || via == nil {
		return
	}
	const delay = "the proxy adds its delay to every latency and carries one connection for each simulated node"
	t.Notes = append(t.Notes, fmt.Sprintf("all connections go through the proxy %s: %s", via.Redacted(), delay))
	t.Cluster.Deviations = slices.Concat(t.Cluster.Deviations, []control.Deviation{{
		Component: "loadgen", Setting: "proxy", Value: via.Redacted(), Default: "(unset)", Reason: delay,
	}})
}
