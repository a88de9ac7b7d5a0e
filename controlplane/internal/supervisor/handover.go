package supervisor

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/leadership"
	"github.com/stormglass/stormglass/controlplane/internal/process"
)

// Under the feature gate CoordinatedLeaderElection, an API server that prefers another candidate marks the Lease of a
// scheduler or controller manager (spec.preferredHolder). The holder then stops renewing the Lease (client-go,
// tryCoordinatedRenew) and exits once its renew deadline has passed. Its kubelet restarts it. This sequence is called a
// handover.

// leaseMarked returns the beginning of the line that an API server logs when it sets spec.preferredHolder of the Lease
// of a kind of component.
func leaseMarked(kind string) string {
	return "Lease " + metav1.NamespaceSystem + "/" + kind + " holder changed from "
}

// leaseLost is the message, in lower case, that the holder of a lease logs when it loses the lease and exits.
const leaseLost = "leaderelection lost"

// handoverWithin is the maximum time from the moment at which an API server last sets spec.preferredHolder of a Lease
// to the exit of the Lease's holder. The exit follows after a renew deadline, which is 10 s by default.
const handoverWithin = time.Minute

// handedOver reports whether a process ended because it handed over its lease. log is the output of the process, and
// apiServers holds the output of each API server.
func handedOver(kind string, exit process.Exit, started time.Time, log string, apiServers []string) bool {
	if exit.Signal != "" || !slices.Contains(control.ElectedKinds(), kind) || !strings.Contains(strings.ToLower(log), leaseLost) {
		return false
	}
	mark := leaseMarked(kind)
	return slices.ContainsFunc(apiServers, func(log string) bool {
		for line := range strings.Lines(log) {
			if !strings.Contains(line, mark) {
				continue
			}
			at := leadership.LineTime(line, exit.At)
			if !at.Before(started.Truncate(time.Microsecond)) && exit.At.Sub(at) < handoverWithin {
				return true
			}
		}
		return false
	})
}

// handedOver reports whether a process ended because it handed over its lease. The process must have ended.
func (s *Supervisor) handedOver(kind string, i *instance) bool {
	if !slices.Contains(control.ElectedKinds(), kind) {
		return false
	}
	s.mu.Lock()
	var servers []*process.Child
	for _, c := range s.components {
		if c.process.Kind == control.KindAPIServer {
			servers = append(servers, c.child)
		}
	}
	s.mu.Unlock()
	var logs []string
	for _, child := range servers {
		logs = append(logs, child.Tail(quotedTail))
	}
	return handedOver(kind, i.child.Exit(), i.child.Started, i.child.Output(), logs)
}

// A full etcd database also prevents the renewal of Leases, so schedulers and controller managers exit. The load may
// have filled the database on purpose, or the user may be looking for the cause. Therefore the plane keeps running and
// restarts these components, as their kubelet would.

// databaseFull is the error with which etcd rejects a write when its quota is used up.
const databaseFull = "mvcc: database space exceeded"

// leftByFullDatabase reports whether a process lost its lease because etcd's database was full. log is the output of
// the process.
func leftByFullDatabase(kind string, exit process.Exit, log string) bool {
	return exit.Signal == "" && slices.Contains(control.ElectedKinds(), kind) && strings.Contains(strings.ToLower(log), leaseLost) && strings.Contains(log, databaseFull)
}
