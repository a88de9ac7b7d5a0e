package realnode

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// pluginDirs are the directories in which distributions install CNI plugins.
var pluginDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// Lacks returns a line for each requirement of a real node that this machine does not meet. programs are further
// programs that must be on PATH. plugins is the directory of the CNI plugins.
func Lacks(programs ...string) (missing []string, plugins string) {
	need := func(ok bool, format string, args ...any) {
		if !ok {
			missing = append(missing, fmt.Sprintf(format, args...))
		}
	}
	need(os.Geteuid() == 0, "root: a kubelet mounts volumes and makes network namespaces (try sudo)")
	for _, program := range append([]string{"containerd", "ctr", "runc", "ip"}, programs...) {
		_, err := exec.LookPath(program)
		need(err == nil, "%s on PATH (Debian and Ubuntu: apt-get install containerd runc iproute2 iptables)", program)
	}
	for _, dir := range pluginDirs {
		if _, err := os.Stat(filepath.Join(dir, "ptp")); err == nil {
			plugins = dir
			break
		}
	}
	need(plugins != "", "CNI's plugin ptp in one of %v (Debian and Ubuntu: apt-get install containernetworking-plugins)", pluginDirs)
	v2, v2err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	v1, v1err := os.Stat("/sys/fs/cgroup/memory")
	need(v2err == nil && v2 != nil || v1err == nil && v1 != nil, "cgroups: neither /sys/fs/cgroup/cgroup.controllers nor /sys/fs/cgroup/memory exists")
	return missing, plugins
}
