package component

import (
	"go.etcd.io/etcd/server/v3/etcdmain"

	"github.com/stormglass/stormglass/controlplane/control"
)

func runEtcd(args []string) int {
	etcdmain.Main(append([]string{control.KindEtcd}, args...))
	return 0
}
