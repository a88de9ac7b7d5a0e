package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/restore"
)

// revisionBump is added to the snapshot's revision. Clients that saw later ones
// than the snapshot's then never see one twice with another content: their
// watches are told that theirs is compacted, and they list anew. A billion is what
// etcd's documentation advises for Kubernetes: more than a cluster writes between
// two snapshots.
const revisionBump = 1_000_000_000

// RestoreEtcd takes etcd back to a snapshot:
//
//  1. the snapshot becomes fresh data for each member, of a new cluster, beside
//     what is in use: what is wrong with it is found before anything stops;
//  2. everything is stopped, as at the plane's end;
//  3. the data changes places, and everything is started as at the plane's
//     start;
//  4. when all is ready the change is final and the old data is removed. If
//     anything fails before, it takes its place again.
//
// It is refused while faults are in force, and faults are refused meanwhile.
func (p *Plane) RestoreEtcd(ctx context.Context, file string) (control.Restored, error) {
	allow, err := p.faults.Exclude("etcd is being restored")
	if err != nil {
		return control.Restored{}, err
	}
	defer allow()
	return p.restore(ctx, file)
}

// restore is RestoreEtcd for whoever keeps faults away.
func (p *Plane) restore(ctx context.Context, file string) (control.Restored, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.closing, func() { cancel(errors.New("the plane is ending")) })()
	members, release, err := p.claimAll()
	if err != nil {
		return control.Restored{}, err
	}
	defer release()
	data := etcdData(p.layout, p.opts.Config)
	defer func() { p.tell(data.DropFresh()) }() // it only takes space
	if err := p.unpack(ctx, file); err != nil {
		return control.Restored{}, err
	}
	begun := time.Now()
	p.setState(control.Starting, "")
	p.progress("restoring etcd from %s", file)
	if err := p.swap(ctx, members, data); err != nil {
		p.progress("restore etcd: %v; going back to what it held", err)
		return control.Restored{}, errors.Join(fmt.Errorf("restore etcd: %w", err), p.swapBack(members, data))
	}
	p.tell(data.Clean()) // the next start tries again
	p.setState(control.Ready, "")
	r := control.Restored{Down: time.Since(begun), Members: p.etcdNames()}
	p.progress("%-26s restored after %.1f s", "etcd", r.Down.Seconds())
	return r, p.publish()
}

// serveRestore answers on the control socket. A client that leaves ends the
// restore: what etcd held before comes back.
func (p *Plane) serveRestore(w http.ResponseWriter, r *http.Request) {
	var ask control.Restore
	err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&ask)
	status, answer := http.StatusOK, any(nil)
	if err != nil {
		status, answer = http.StatusBadRequest, control.FaultRefusal{Error: err.Error()}
	} else if restored, err := p.RestoreEtcd(r.Context(), ask.File); err != nil {
		status, answer = http.StatusConflict, control.FaultRefusal{Error: err.Error()}
	} else {
		answer = restored
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // a client that left is its own affair
}

// claimAll keeps all components from being ended or started by anybody else.
func (p *Plane) claimAll() (members []*member, release func(), err error) {
	p.mu.Lock()
	members = slices.Clone(p.members)
	settled := p.settled
	p.mu.Unlock()
	if !settled {
		return nil, nil, errors.New("the plane is not ready")
	}
	for _, m := range members {
		m.change.Lock()
	}
	return members, func() {
		for _, m := range members {
			m.change.Unlock()
		}
	}, nil
}

func (p *Plane) etcdNames() (names []string) {
	for _, etcd := range p.plan.Of(control.KindEtcd) {
		names = append(names, etcd.Name)
	}
	return names
}

// unpack makes each member's data of the snapshot.
func (p *Plane) unpack(ctx context.Context, file string) error {
	if err := etcdData(p.layout, p.opts.Config).DropFresh(); err != nil {
		return err
	}
	token := "stormglass-" + time.Now().UTC().Format("20060102T150405.000000000")
	var cluster []string
	for _, etcd := range p.plan.Of(control.KindEtcd) {
		cluster = append(cluster, etcd.Name+"="+etcd.Peer)
	}
	for _, etcd := range p.plan.Of(control.KindEtcd) {
		err := p.tool(ctx, nil, "etcdutl", "snapshot", "restore", file,
			"--name="+etcd.Name, "--data-dir="+restore.Fresh(p.layout.Data(etcd.Name)),
			"--initial-cluster="+strings.Join(cluster, ","), "--initial-cluster-token="+token, "--initial-advertise-peer-urls="+etcd.Peer,
			fmt.Sprintf("--bump-revision=%d", revisionBump), "--mark-compacted")
		if err != nil {
			return fmt.Errorf("restore %s for %s: %w", file, etcd.Name, err)
		}
	}
	return nil
}

// tool runs one of etcd's tools, with more in its environment.
func (p *Plane) tool(ctx context.Context, more []string, name string, args ...string) error {
	child, err := p.spawner.Start(process.Spec{
		Name: name, Path: p.layout.Program(name), Args: append([]string{name}, args...),
		Env: append(environment(), more...), Log: p.layout.Log(name), Hold: p.dir.lock,
	})
	if err != nil {
		return err
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		child.Stop(0, nil)
		return context.Cause(ctx)
	}
	if exit := child.Exit(); exit.Code != 0 {
		lines := child.LastLines(8)
		for _, line := range lines {
			if message, found := strings.CutPrefix(line, "Error: "); found {
				return errors.New(message)
			}
		}
		return fmt.Errorf("%s %s: %s", name, exit, strings.Join(lines, " "))
	}
	return nil
}

// swap stops everything, puts the restored data in its place and starts
// everything. The members are claimed. When it gives no error there is no way
// back.
func (p *Plane) swap(ctx context.Context, members []*member, data restore.Members) error {
	p.stopAll(members, ctx.Done())
	if err := data.Swap(); err != nil {
		return err
	}
	if err := p.startAll(ctx, members); err != nil {
		return err
	}
	return data.Commit()
}

// swapBack goes back to what etcd held before.
func (p *Plane) swapBack(members []*member, data restore.Members) error {
	p.stopAll(members, p.closing.Done())
	err := data.PutBack()
	if err == nil && p.closing.Err() == nil {
		err = p.startAll(p.closing, members)
	}
	if err == nil {
		p.setState(control.Ready, "")
		return p.publish()
	}
	err = fmt.Errorf("go back to what etcd held: %w", err)
	p.fail(err)
	return err
}

// stopAll stops processes in order, as a plane's end does, and lets the plane
// live on.
func (p *Plane) stopAll(members []*member, now <-chan struct{}) {
	p.mu.Lock()
	for _, m := range members {
		m.expected = true
	}
	p.mu.Unlock()
	p.stopInOrder(members, now)
}

// startAll starts all components again, as a plane's start does.
func (p *Plane) startAll(ctx context.Context, members []*member) error {
	for _, kinds := range [][]string{{control.KindEtcd}, {control.KindAPIServer}, {control.KindScheduler, control.KindControllerManager}} {
		if kinds[0] == control.KindScheduler {
			if err := p.probe.deleteLeases(ctx); err != nil {
				return err
			}
		}
		begun := time.Now()
		group, ctx := errgroup.WithContext(ctx)
		for _, m := range members {
			if slices.Contains(kinds, m.process.Kind) {
				group.Go(func() error { return p.startOver(ctx, m, begun) })
			}
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	// From here on an end is the plane's.
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range members {
		m.expected = false
		select {
		case <-m.child.Done():
			return p.diedError(m.process.Name, m.life)
		default:
		}
	}
	return nil
}

// startOver starts one component that was stopped, and waits until it is ready.
func (p *Plane) startOver(ctx context.Context, m *member, begun time.Time) error {
	l, err := p.spawn(m, nil)
	if err != nil {
		return err
	}
	l.expected = true // until all are ready its end is an error of the restore
	p.begin(m, l)
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, errNotReady)
	defer cancel()
	err = p.untilReady(ctx, m, l, begun, func() error {
		select {
		case <-l.child.Done():
			return p.startError(m)
		default:
			return nil
		}
	})
	switch {
	case err == nil:
		p.tellReady(m, l)
	case context.Cause(ctx) == errNotReady:
		err = fmt.Errorf("%s is not ready after %v: %w%s", m.process.Name, readyWithin, err, endOf(l, p.layout.Log(m.process.Name)))
	}
	return err
}
