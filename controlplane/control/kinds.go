package control

// The kinds of component, which are also the names of their programs.
const (
	KindEtcd              = "etcd"
	KindAPIServer         = "kube-apiserver"
	KindScheduler         = "kube-scheduler"
	KindControllerManager = "kube-controller-manager"
)

// Kinds lists the kinds of component in the order in which they start.
func Kinds() []string {
	return []string{KindEtcd, KindAPIServer, KindScheduler, KindControllerManager}
}
