package scenario

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// PodLifeAnnotation is a pod annotation whose value is the name of a PodLife. It takes precedence over Match and Share.
const PodLifeAnnotation = "stormglass.dev/pod-life"

// ExitAfterAnnotation and ExitCodeAnnotation make the containers of a pod on a simulated node end by themselves.
// ExitAfterAnnotation is how long each container runs, such as "3s", and ExitCodeAnnotation its exit code. They take
// precedence over the pod's PodLife. Without ExitCodeAnnotation, the exit code of the PodLife applies. Without a
// PodLife, it is 0. ExitCodeAnnotation has no effect without ExitAfterAnnotation.
const (
	ExitAfterAnnotation = "stormglass.dev/exit-after"
	ExitCodeAnnotation  = "stormglass.dev/exit-code"
)

// PodLife describes how the containers of some or all pods on simulated nodes behave ([pod lives](pod-lives.md)).
type PodLife struct {
	// Name: unique name; also the value of the label `life` of `stormglass_node_pod_life_events_total`
	Name  string   `yaml:"name"`
	Match PodMatch `yaml:"match,omitempty"` // pods to which this entry applies, default all
	// Share: fraction of the matching pods, such as 5%; default: all pods that no earlier entry selected
	Share *Bound `yaml:"share,omitempty"`
	// Container: name of the container to which the fields apply, except `init` and `evict`; default: all containers except
	// init containers and sidecars
	Container string `yaml:"container,omitempty"`
	// Init: how each init container runs, one after another; default: they succeed immediately
	Init ContainerRun `yaml:"init,omitempty"`
	// ImagePullErrorFor: how long image pulls fail, from the pod's start; 24h means always
	ImagePullErrorFor Spread `yaml:"imagePullErrorFor,omitempty"`
	ReadyAfter        Spread `yaml:"readyAfter,omitempty"` // time from a container's start until it is ready
	ContainerRun      `yaml:",inline"`
	// ReadinessFailsAfter: time from each change to Ready until the readiness probe fails
	ReadinessFailsAfter Spread `yaml:"readinessFailsAfter,omitempty"`
	// ReadinessFailsFor: how long the readiness probe fails; default: until the container ends
	ReadinessFailsFor Spread `yaml:"readinessFailsFor,omitempty"`
	// LivenessFailsAfter: time from each start of the container until the liveness probe fails
	LivenessFailsAfter Spread `yaml:"livenessFailsAfter,omitempty"`
	// StopAfter: time from a deletion, an eviction or a failed liveness probe until the containers end
	StopAfter Spread   `yaml:"stopAfter,omitempty"`
	Evict     Eviction `yaml:"evict,omitempty"` // eviction by the kubelet under node pressure
}

// PodMatch selects pods that match all of its fields.
type PodMatch struct {
	Namespace   string            `yaml:"namespace,omitempty"`   // namespace of the pod
	Labels      map[string]string `yaml:"labels,omitempty"`      // labels of the pod
	Annotations map[string]string `yaml:"annotations,omitempty"` // annotations of the pod
	Owner       string            `yaml:"owner,omitempty"`       // kind of the pod's controller, such as Job or ReplicaSet
}

// ContainerRun describes how the runs of a container end.
type ContainerRun struct {
	// RunFor: how long each run of the container lasts; default: it never ends
	RunFor   Spread `yaml:"runFor,omitempty"`
	ExitCode int    `yaml:"exitCode,omitempty"` // exit code of the container; 1 to 255 means failure
	// Reason: termination reason, such as OOMKilled (with exitCode 137); default Completed, or Error after a failure
	Reason string `yaml:"reason,omitempty"`
	// Failures: number of runs that end with `exitCode`, default all; later runs complete or, with restartPolicy
	// Always, never end
	Failures int `yaml:"failures,omitempty"`
}

// Eviction describes when a node under pressure evicts a pod.
type Eviction struct {
	After Spread `yaml:"after,omitempty"` // time from the start of the pod's first container to the eviction
	// Condition: node condition that causes the eviction: "MemoryPressure" (default), "DiskPressure" or "PIDPressure"
	Condition string   `yaml:"condition,omitempty"`
	For       Duration `yaml:"for,omitempty" zero:"a kubelet's 5m"` // how long the node keeps the condition, default 5m
}

// Code returns the exit code of the container: ExitCode, or 137 if the reason is OOMKilled and ExitCode is 0.
func (r ContainerRun) Code() int {
	if r.Reason == OOMKilled && r.ExitCode == 0 {
		return 137
	}
	return r.ExitCode
}

// OOMKilled is the termination reason of a container that the kernel killed.
const OOMKilled = "OOMKilled"

func (v *validator) podLives() {
	n := v.s.Nodes
	if p := n.MaxContainerRestartPeriod.D(); p != 0 && (p < time.Second || p > MaxRestartPeriod) {
		v.fail("nodes.maxContainerRestartPeriod", "from 1s to 5m; a kubelet's is 5m", "%s is out of bounds", n.MaxContainerRestartPeriod)
	}
	before, seen := len(v.errs), map[string]bool{}
	for i := range n.PodLives {
		path := fmt.Sprintf("nodes.podLives[%d]", i)
		l := &n.PodLives[i]
		v.name(path+".name", l.Name)
		v.unique(path, "life", l.Name, "give each life a unique name", seen)
		v.podMatch(path+".match", l.Match)
		if l.Share != nil && (!l.Share.Fits(Ratio) || l.Share.Value <= 0 || l.Share.Value > 1) {
			v.fail(path+".share", "greater than 0% and at most 100%", "%s is not a valid share", l.Share)
		}
		v.containerRun(path, l.ContainerRun, l.LivenessFailsAfter != Spread{})
		v.containerRun(path+".init", l.Init, false)
		if (l.ReadinessFailsFor != Spread{}) && (l.ReadinessFailsAfter == Spread{}) {
			v.fail(path+".readinessFailsFor", "add readinessFailsAfter: 30s", "this field has no effect, because the readiness probe never fails")
		}
		v.eviction(path+".evict", l.Evict)
	}
	if len(v.errs) == before {
		v.podLivesInVain()
	}
}

func (v *validator) podMatch(path string, m PodMatch) {
	for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
		v.label(path+".labels", "for example {app: web}", key, m.Labels[key])
	}
}

func (v *validator) containerRun(path string, r ContainerRun, fails bool) {
	v.between(path+".exitCode", float64(r.ExitCode), 0, 255)
	if r.RunFor == (Spread{}) {
		for _, f := range []struct {
			name string
			set  bool
		}{{"exitCode", r.ExitCode != 0}, {"reason", r.Reason != ""}, {"failures", r.Failures != 0 && !fails}} {
			if f.set {
				v.fail(path+"."+f.name, "add runFor: 10s", "this field has no effect, because the container never ends")
			}
		}
		return
	}
	switch {
	case r.Reason == OOMKilled && r.ExitCode != 0 && r.ExitCode != 137:
		v.fail(path+".exitCode", "write 137, or leave it out", "the reason %s requires exitCode 137, not %d", OOMKilled, r.ExitCode)
	case r.Reason == "Completed" && r.ExitCode != 0:
		v.fail(path+".reason", "write Error, or leave it out", "the reason Completed requires exitCode 0, not %d", r.ExitCode)
	}
	if r.Failures != 0 && r.Code() == 0 && !fails {
		v.fail(path+".failures", "add exitCode: 1", "this field has no effect, because no container fails")
	}
	v.between(path+".failures", float64(r.Failures), 0, 1e6)
}

func (v *validator) eviction(path string, e Eviction) {
	if e.After == (Spread{}) {
		if e != (Eviction{}) {
			v.fail(path, "add after: 30s", "these fields have no effect, because no pod is evicted")
		}
		return
	}
	v.oneOf(path+".condition", e.Condition, "MemoryPressure", "DiskPressure", "PIDPressure")
	if d := e.For.D(); d < time.Second || d > maxPhase {
		v.fail(path+".for", "from 1s to 24h", "%s is out of bounds", e.For)
	}
}

// podLivesInVain reports an error for a PodLife that applies to no pod, because earlier entries with the same match, or
// without a match, already apply to all its pods.
func (v *validator) podLivesInVain() {
	lives := v.s.Nodes.PodLives
	for i := range lives {
		taken := 0.0
		for j := range i {
			same := lives[j].Match.empty() || lives[j].Match.equal(lives[i].Match)
			switch {
			case same && lives[j].Share == nil:
				taken = 1
			case same:
				taken += lives[j].Share.Value
			}
		}
		const slack = 1e-9
		if path := fmt.Sprintf("nodes.podLives[%d]", i); taken >= 1-slack {
			v.fail(path, "move the entry with the narrower match to the front, or lower the shares", "no pod can get %q, because earlier entries already apply to all of its pods", lives[i].Name)
		} else if lives[i].Share != nil && taken+lives[i].Share.Value > 1+slack {
			v.fail(path+".share", fmt.Sprintf("at most %s%%", plain(100*(1-taken))), "the shares of entries for the same pods add up to %s%%", plain(100*(taken+lives[i].Share.Value)))
		}
	}
}

func (m PodMatch) empty() bool { return m.equal(PodMatch{}) }

func (m PodMatch) equal(o PodMatch) bool {
	return m.Namespace == o.Namespace && m.Owner == o.Owner && maps.Equal(m.Labels, o.Labels) && maps.Equal(m.Annotations, o.Annotations)
}

// MaxRestartPeriod is the largest value of nodes.maxContainerRestartPeriod, and its default (see
// pkg/kubelet/apis/config).
const MaxRestartPeriod = 5 * time.Minute

func (n *Nodes) setPodLifeDefaults() {
	n.PodLives = slices.Clone(n.PodLives)
	for i := range n.PodLives {
		e := &n.PodLives[i].Evict
		if e.After != (Spread{}) {
			orDefault(&e.Condition, "MemoryPressure")
			orDefault(&e.For, Duration(5*time.Minute))
		}
	}
}
