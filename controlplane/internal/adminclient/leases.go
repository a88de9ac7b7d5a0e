package adminclient

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// LeaseTaken returns nil when a component of a kind has taken the lease since a
// time. It is a component of this plane: DeleteLeases has removed older leases.
func (c *Client) LeaseTaken(ctx context.Context, kind string, since time.Time) error {
	lease, err := c.kube.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, kind, metav1.GetOptions{})
	if err != nil {
		return err
	}
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.AcquireTime == nil || spec.AcquireTime.Before(&metav1.MicroTime{Time: since}) {
		return fmt.Errorf("nobody has got the lease %s", lease.Name)
	}
	return nil
}

// DeleteLeases deletes the leases of the scheduler and the controller manager, whose
// holders must be dead: new leaders would wait 15 s for them.
func (c *Client) DeleteLeases(ctx context.Context) error {
	for _, kind := range []string{control.KindScheduler, control.KindControllerManager} {
		err := c.kube.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(ctx, kind, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete the lease of the last %s: %w", kind, err)
		}
	}
	return nil
}

// HoldsLease reports whether a leader-elected component holds its kind's lease. It
// asks the component: the holder's name in the lease is the host's and a random part.
func (c *Client) HoldsLease(ctx context.Context, proc topology.Process) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, proc.Address+"/metrics", nil)
	if err != nil {
		return false, err
	}
	resp, err := c.components.Do(req)
	if err != nil {
		return false, fmt.Errorf("%s: %w", proc.Name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("%s: GET /metrics: %s", proc.Name, resp.Status)
	}
	return masterStatus(resp.Body, proc.Kind)
}

// masterStatus reads leader_election_master_status of a lease; false while a
// component has not taken part in an election.
func masterStatus(metrics io.Reader, lease string) (leads bool, err error) {
	series := fmt.Sprintf("leader_election_master_status{name=%q} ", lease)
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), series); found {
			return value == "1", nil
		}
	}
	return false, lines.Err()
}
