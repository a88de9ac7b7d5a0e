//go:build etcd36

package component

import "github.com/spf13/pflag"

func etcdutlFlags(*pflag.FlagSet) {}
