package controlplane

import (
	"context"
	"os"
	"path/filepath"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Rehearse takes a snapshot of etcd and restores it, as RestoreEtcd does. The
// snapshot is removed again.
func (p *Plane) Rehearse(ctx context.Context) error {
	dir, err := os.MkdirTemp(p.layout.Dir, "rehearsal-")
	if err != nil {
		return err
	}
	defer func() { p.tell(os.RemoveAll(dir)) }() // it only takes space
	file := filepath.Join(dir, "etcd.db")
	p.mu.Lock()
	etcd := p.cluster.Etcd
	p.mu.Unlock()
	err = etcd.AnyMember(ctx, func(member control.EtcdClient) error {
		return p.tool(ctx, member.Environment(), "etcdctl", "snapshot", "save", file)
	})
	if err != nil {
		return err
	}
	_, err = p.restore(ctx, file)
	return err
}
