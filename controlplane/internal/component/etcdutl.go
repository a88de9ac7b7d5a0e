//go:build !etcd36

package component

import (
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
)

// etcdutlFlags adds the flags of etcdutl that etcd 3.6 does not have. The build tag etcd36 selects etcd 3.6.
func etcdutlFlags(set *pflag.FlagSet) {
	set.DurationVar(&etcdutl.FlockTimeout, "timeout", 10*time.Second, "time to wait to obtain a file lock on db file, 0 to block indefinitely")
}
