package controlplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// sameMembers refuses a config whose etcd is another than that whose data is in
// the directory: members keep each other's number and addresses in their data.
// Everything else may change from start to start.
func sameMembers(l topology.Layout, cfg control.Config) error {
	var last control.Config
	data, err := os.ReadFile(l.Config())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &last)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.Config(), err)
	}
	was, is := last.Count(control.KindEtcd), cfg.Count(control.KindEtcd)
	const hint = "choose another --dir; `controlplane etcd snapshot` and `etcd restore` take the data there"
	if was != is {
		return fmt.Errorf("etcd.members: the data in %s is of %d members, not of %d (%s)", l.Dir, was, is, hint)
	}
	if is > 1 && last.HasLinks() != cfg.HasLinks() {
		return fmt.Errorf("networkFaults: the %d members whose data is in %s know each other by other addresses (leave it as it was, or %s)", is, l.Dir, hint)
	}
	return nil
}

// samePeers refuses new ports for members that keep each other's addresses,
// which without links are their ports.
func samePeers(last, now topology.Ports, cfg control.Config) error {
	if cfg.Count(control.KindEtcd) == 1 || cfg.HasLinks() {
		return nil
	}
	for i := range cfg.Count(control.KindEtcd) {
		member := control.ComponentName(control.KindEtcd, i)
		if name := topology.PeerListener(member); now[name] != last[name] {
			return fmt.Errorf("%s: another process has port %d, by which the other members know it (end that process; with networkFaults on any port does)", member, last[name])
		}
	}
	return nil
}
