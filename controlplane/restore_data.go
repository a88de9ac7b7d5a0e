package controlplane

import (
	"fmt"
	"path/filepath"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/restore"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// etcdData are the data directories of a config's members.
func etcdData(l topology.Layout, cfg control.Config) (m restore.Members) {
	for i := range cfg.Count(control.KindEtcd) {
		m = append(m, l.Data(control.ComponentName(control.KindEtcd, i)))
	}
	return m
}

// finishRestore ends a restore that a supervisor did not live to end.
func finishRestore(l topology.Layout, cfg control.Config) error {
	if err := etcdData(l, cfg).Recover(); err != nil {
		return fmt.Errorf("end a restore that was broken off in %s: %w", filepath.Join(l.Dir, "data"), err)
	}
	return nil
}
