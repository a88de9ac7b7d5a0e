package scenario

// Requirements of gangs: the API version that serves PodGroups, and the feature gate.
const (
	PodGroupVersion = "scheduling.k8s.io/v1beta1"
	gangGate        = "GenericWorkload"
)

// gang checks that a deploy's pods can be scheduled together (as a gang), and that the control plane supports gangs.
func (v *validator) gang(path string, a *Action) {
	if a.Gang == 0 || a.Kind != "deploy" || a.WorkloadKind() != Deployment {
		return
	}
	v.between(path+".gang", float64(a.Gang), 1, maxPods)
	if a.Gang > a.Replicas && a.Replicas > 0 {
		v.fail(path+".gang", "at most the number of replicas", "a gang needs %d pods, but there are only %d", a.Gang, a.Replicas)
	}
	plane := v.s.ControlPlane
	if !plane.FeatureGates[gangGate] || !plane.Serves(PodGroupVersion) {
		v.fail(path+".gang", "write controlPlane: {featureGates: {"+gangGate+": true}, apiServer: {flags: {runtime-config: "+PodGroupVersion+"=true}}}",
			"a gang requires PodGroups, which API servers do not serve by default")
	}
}
