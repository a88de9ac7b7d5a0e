package fault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stormglass/stormglass/controlplane/control"
)

// checkMove returns an error if components cannot move to a release because there is no program of that release.
func (m *Manager) checkMove(ctx context.Context, f control.Fault) error {
	to, _ := control.ReleaseOf(f.To)
	if err := m.host.ReleaseAvailable(ctx, to); err != nil {
		return &control.InvalidFault{Problems: []control.Problem{{Path: "to", Msg: err.Error(), Hint: control.BuildHint(to)}}}
	}
	return nil
}

// move restarts components with another release, one after another.
func (m *Manager) move(ctx context.Context, id string, f control.Fault, t target) (effect, error) {
	leader := ""
	if members := ofKind(t.names, control.KindEtcd); len(members) > 1 {
		var err error
		if leader, err = m.host.Leader(ctx, control.KindEtcd); err != nil {
			return effect{}, err
		}
	}
	_, order, problem := f.Moved(m.host.Config(), t.names, leader)
	if problem != nil {
		return effect{}, &control.InvalidFault{Problems: []control.Problem{*problem}}
	}
	to, _ := control.ReleaseOf(f.To)
	if err := m.host.LinkRelease(ctx, to); err != nil {
		return effect{}, err
	}
	down := "" // the component that a failed move has left stopped
	return m.course(func() {
		for i, name := range order {
			err := m.beforeEtcd(order[:i], name, f.Kind, to)
			if err != nil {
				m.markLost(id, errors.Join(err, notMoved(order[i:], to)))
				return
			}
			down = name
			if err := m.moveOne(name, to); err != nil {
				m.markLost(id, errors.Join(err, notMoved(order[i+1:], to)))
				return
			}
			down = ""
		}
		for _, name := range t.same {
			if m.host.Config().ReleaseOf(name) == to {
				continue
			}
			if err := m.host.Move(name, to); err != nil {
				m.markLost(id, err)
			}
		}
	}, func(ctx context.Context) error {
		if down == "" {
			return nil
		}
		return m.startAgain(ctx, down)
	}), nil
}

func ofKind(names []string, kind string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return control.ComponentKind(name) != kind })
}

// notMoved returns an error that names the components that kept their release, or nil if there are no names.
func notMoved(names []string, to control.Release) error {
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("these components were not changed to version %s: %s", to.Minor, strings.Join(names, ", "))
}

// moveOne restarts a component with the program of another release. If the component then does not serve, moveOne
// restarts it with the old program. If the old program does not serve either, for example because etcd's data already
// has a newer storage version, moveOne starts the new program again.
func (m *Manager) moveOne(name string, to control.Release) error {
	kind, from := control.ComponentKind(name), m.host.Config().ReleaseOf(name)
	err := m.serveAs(name, to)
	if err == nil || m.open.Err() != nil {
		return err
	}
	err = fmt.Errorf("%s does not become ready with version %s: %w", name, to.VersionOf(kind), err)
	back := m.serveAs(name, from)
	if back == nil {
		return fmt.Errorf("%w\n%s is ready with version %s again", err, name, from.VersionOf(kind))
	}
	return errors.Join(err, fmt.Errorf("%s does not become ready with the previous version %s either: %w", name, from.VersionOf(kind), back), m.startAs(name, to))
}

// serveAs ends a component, starts it with the program of a release and waits until it serves.
func (m *Manager) serveAs(name string, r control.Release) error {
	if err := m.startAs(name, r); err != nil {
		return err
	}
	return m.awaitTurn(name)
}

// startAs ends a component and starts it with the program of a release.
func (m *Manager) startAs(name string, r control.Release) error {
	ctx, cancel := context.WithTimeout(m.life, undoWithin)
	defer cancel()
	if err := m.host.Stop(ctx, name); err != nil {
		return err
	}
	if err := m.host.Move(name, r); err != nil {
		return err
	}
	return m.startAgain(ctx, name)
}

// dataWithin is the time limit for etcd to lower the storage version of its data. etcd's leader checks for a requested
// downgrade every 5 s.
const dataWithin = time.Minute

// beforeEtcd prepares the etcd cluster if `name`, the next component to move, is an etcd member and `moved` contains no
// member yet. For a downgrade it lowers the storage version of the data. For an upgrade it cancels an unfinished
// downgrade.
func (m *Manager) beforeEtcd(moved []string, name, kind string, to control.Release) error {
	if control.ComponentKind(name) != control.KindEtcd || len(ofKind(moved, control.KindEtcd)) > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(m.open, dataWithin)
	defer cancel()
	minor := to.Etcd[:strings.LastIndex(to.Etcd, ".")]
	if kind == control.FaultUpgrade {
		return m.etcdDowngrade(ctx, name, "CANCEL", minor)
	}
	older, err := m.etcdIsOlder(ctx, minor)
	if err != nil || older {
		return err
	}
	if err := m.etcdDowngrade(ctx, name, "ENABLE", minor); err != nil {
		return err
	}
	if err := m.awaitOlderData(ctx, minor); err != nil {
		undo, cancel := context.WithTimeout(m.life, undoWithin)
		defer cancel()
		return errors.Join(err, m.etcdDowngrade(undo, name, "CANCEL", minor))
	}
	return nil
}

// etcdDowngrade sends a request to etcd: "ENABLE" prepares the cluster for members of an older version, and "CANCEL"
// cancels the preparation.
func (m *Manager) etcdDowngrade(ctx context.Context, member, action, minor string) error {
	err := m.host.Etcd(ctx, member, "/v3/maintenance/downgrade", map[string]string{"action": action, "version": minor}, &struct{}{})
	if err != nil {
		return fmt.Errorf("etcd: downgrade %s: %w", strings.ToLower(action), err)
	}
	return nil
}

// etcdForm is the part of an etcd member's status about versions: the member's version, the storage version of its
// data, and its pending downgrade.
type etcdForm struct {
	Version        string `json:"version"`
	StorageVersion string `json:"storageVersion"`
	DowngradeInfo  struct {
		Enabled       bool   `json:"enabled"`
		TargetVersion string `json:"targetVersion"`
	} `json:"downgradeInfo"`
}

func (m *Manager) etcdForms(ctx context.Context) (all map[string]etcdForm, err error) {
	all = map[string]etcdForm{}
	for _, member := range m.host.Config().ComponentsOf(control.KindEtcd) {
		var form etcdForm
		if err := m.host.Etcd(ctx, member, "/v3/maintenance/status", struct{}{}, &form); err != nil {
			return nil, fmt.Errorf("%s: %w", member, err)
		}
		all[member] = form
	}
	return all, nil
}

// etcdIsOlder reports whether the cluster is already prepared for the older version `minor`: the data of all members
// has that storage version, and at least one member has that version or a pending downgrade to it. A prepared cluster
// refuses another request to downgrade.
func (m *Manager) etcdIsOlder(ctx context.Context, minor string) (bool, error) {
	forms, err := m.etcdForms(ctx)
	if err != nil {
		return false, err
	}
	told := false
	for _, form := range forms {
		if !strings.HasPrefix(form.StorageVersion, minor+".") {
			return false, nil
		}
		told = told || strings.HasPrefix(form.Version, minor+".") || form.DowngradeInfo.Enabled && strings.HasPrefix(form.DowngradeInfo.TargetVersion, minor)
	}
	return told, nil
}

// awaitOlderData waits until the data of all members has the older storage version minor.
func (m *Manager) awaitOlderData(ctx context.Context, minor string) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, time.Second/2, true, func(ctx context.Context) (bool, error) {
		var forms map[string]etcdForm
		if forms, last = m.etcdForms(ctx); last != nil {
			return false, nil
		}
		for _, member := range slices.Sorted(maps.Keys(forms)) {
			if form := forms[member]; !strings.HasPrefix(form.StorageVersion, minor+".") {
				last = fmt.Errorf("%s has storage version %s", member, form.StorageVersion)
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("etcd did not reach storage version %s within %s: %w", minor, dataWithin, last)
	}
	return nil
}
