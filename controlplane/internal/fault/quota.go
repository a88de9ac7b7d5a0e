package fault

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
)

// noSpace is the alarm that etcd raises when a write exceeds the quota.
const noSpace = "NOSPACE"

// lowerQuota restarts the etcd members with a small backend quota, one after another, so that there is always a quorum.
// It restarts the leader last, so that the leadership moves only once.
//
// lowerQuota kills the members, because a graceful stop would wait 7 seconds for the API servers' watches, which do not
// end. No acknowledged write is lost: each one is in the member's write-ahead log.
func (m *Manager) lowerQuota(ctx context.Context, _ string, f control.Fault, t target) (effect, error) {
	leader, err := m.host.Leader(ctx, control.KindEtcd)
	if err != nil {
		return effect{}, err
	}
	order := slices.DeleteFunc(slices.Clone(t.names), func(name string) bool { return name == leader })
	order = append(order, leader)
	e := effect{undo: func(ctx context.Context) error { return m.freeSpace(ctx, order) }}
	return e, m.restartInTurn(ctx, order, control.Flags{"quota-backend-bytes": strconv.FormatInt(f.Quota, 10)})
}

// freeSpace recovers from NOSPACE as an operator would: it restores the old quota, disarms the alarms, compacts and
// defragments. It restores the quota first, because with the small quota the next write would raise the alarm again.
func (m *Manager) freeSpace(ctx context.Context, members []string) error {
	if err := m.restartInTurn(ctx, members, nil); err != nil {
		return err
	}
	call := func(ctx context.Context, path string, in, out any) error {
		return m.host.Etcd(ctx, members[0], path, in, out)
	}
	if _, err := Disarm(ctx, call); err != nil {
		return err
	}
	if err := m.compact(ctx, members[0]); err != nil {
		return err
	}
	for _, name := range members { // one at a time: a member does not respond while it defragments
		if err := m.host.Etcd(ctx, name, "/v3/maintenance/defragment", struct{}{}, &struct{}{}); err != nil {
			return fmt.Errorf("defragment %s: %w", name, err)
		}
	}
	return nil
}

// restartInTurn kills the members and starts them with flags that override their own flags, one member after another.
// It continues with the next member when the previous one serves again.
func (m *Manager) restartInTurn(ctx context.Context, members []string, flags control.Flags) error {
	for _, name := range members {
		if err := m.host.Kill(ctx, name); err != nil {
			return err
		}
		if err := m.host.Start(ctx, name, flags); err != nil {
			return err
		}
		turn, cancel := context.WithTimeout(ctx, turnWithin)
		err := m.host.AwaitReady(turn, name)
		cancel()
		if err != nil {
			return fmt.Errorf("%s is not ready after its restart: %w", name, err)
		}
	}
	return nil
}

// Disarm disarms all NOSPACE alarms of etcd. raised reports whether there were any alarms.
func Disarm(ctx context.Context, call func(ctx context.Context, path string, in, out any) error) (raised bool, err error) {
	const path = "/v3/maintenance/alarm"
	var list struct {
		Alarms []struct {
			MemberID string `json:"memberID"`
			Alarm    string `json:"alarm"`
		} `json:"alarms"`
	}
	if err := call(ctx, path, map[string]string{"action": "GET"}, &list); err != nil {
		return false, fmt.Errorf("list alarms: %w", err)
	}
	for _, a := range list.Alarms {
		if a.Alarm != noSpace {
			continue
		}
		ask := map[string]string{"action": "DEACTIVATE", "memberID": a.MemberID, "alarm": noSpace}
		if err := call(ctx, path, ask, &struct{}{}); err != nil {
			return raised, fmt.Errorf("disarm %s: %w", noSpace, err)
		}
		raised = true
	}
	return raised, nil
}

func (m *Manager) compact(ctx context.Context, member string) error {
	var status struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := m.host.Etcd(ctx, member, "/v3/maintenance/status", struct{}{}, &status); err != nil {
		return fmt.Errorf("get the revision: %w", err)
	}
	ask := map[string]any{"revision": status.Header.Revision, "physical": true}
	err := m.host.Etcd(ctx, member, "/v3/kv/compaction", ask, &struct{}{})
	if err != nil && !strings.Contains(err.Error(), "required revision has been compacted") { // an API server compacted first
		return fmt.Errorf("compact to revision %s: %w", status.Header.Revision, err)
	}
	return nil
}
