package controlplane

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/topology"
)

// What a member's data is called while a restore is under way.
const (
	restoredSuffix = ".restored"       // made from the snapshot, not yet in use
	beforeSuffix   = ".before-restore" // what was in use, until the restored works
)

// putBack gives members the data that a restore has put aside, where it has.
func putBack(l topology.Layout, members []string) error {
	for _, name := range members {
		data := l.Data(name)
		if _, err := os.Stat(data + beforeSuffix); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := os.RemoveAll(data); err != nil {
			return err
		}
		if err := os.Rename(data+beforeSuffix, data); err != nil {
			return err
		}
	}
	return nil
}

// dropData removes what a restore has put beside members' data.
func (p *Plane) dropData(suffix string) {
	for _, name := range p.etcdNames() {
		if err := os.RemoveAll(p.layout.Data(name) + suffix); err != nil {
			p.progress("%v", err) // it only takes space
		}
	}
}

// finishRestore undoes a restore that a supervisor did not live to finish.
func finishRestore(l topology.Layout, cfg control.Config) error {
	var names []string
	for _, name := range cfg.Components() {
		if control.ComponentKind(name) == control.KindEtcd {
			names = append(names, name)
		}
	}
	err := putBack(l, names)
	for _, name := range names {
		err = cmp.Or(err, os.RemoveAll(l.Data(name)+restoredSuffix))
	}
	if err != nil {
		return fmt.Errorf("undo a restore that was not finished in %s: %w", filepath.Join(l.Dir, "data"), err)
	}
	return nil
}
