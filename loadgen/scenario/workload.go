package scenario

import (
	"slices"
	"strings"
	"time"
)

// The kinds of workload that a deploy creates.
const (
	Deployment  = "Deployment"
	StatefulSet = "StatefulSet"
	DaemonSet   = "DaemonSet"
	Job         = "Job"
	CronJob     = "CronJob"
)

// WorkloadKind returns the kind of workload that a deploy creates.
func (a *Action) WorkloadKind() string {
	if a.Workload == "" {
		return Deployment
	}
	return a.Workload
}

// actsOn maps actions other than deploy and delete to the kinds of workload on which they can act.
var actsOn = map[string]string{
	"rollingUpdate": Deployment + " " + StatefulSet + " " + DaemonSet,
	"scale":         Deployment + " " + StatefulSet,
	"demand":        Deployment,
}

// workload checks the fields of a deploy that depend on the kind of workload. For other actions, it checks that they
// accept the kind of their workload. deploy is the deploy action with the same name, or nil.
func (v *validator) workload(path string, a, deploy *Action) {
	if a.Kind == "deploy" {
		v.deploy(path, a)
		return
	}
	kind := Deployment
	if deploy != nil {
		kind = deploy.WorkloadKind()
	}
	if kinds := actsOn[a.Kind]; kinds != "" && !slices.Contains(strings.Fields(kinds), kind) {
		v.fail(path+".kind", "supported kinds: "+strings.ReplaceAll(kinds, " ", ", "), "%q is a %s, which does not support %s", a.Name, kind, a.Kind)
		return
	}
	if a.Kind != "rollingUpdate" {
		return
	}
	if kind != Deployment {
		v.onlyFor(path, kind, []field{{"maxSurge", a.MaxSurge != "", Deployment}})
		if a.MaxUnavailable != "" && isZero(a.MaxUnavailable) {
			v.fail(path+".maxUnavailable", "write at least 1", "with maxUnavailable 0, no pod of this kind could be replaced")
		}
	} else if isZero(a.MaxSurge) && isZero(a.MaxUnavailable) {
		v.fail(path, "set one of them above 0", "with maxSurge and maxUnavailable both 0, no pod could be replaced")
	}
}

func (v *validator) deploy(path string, a *Action) {
	kind := a.WorkloadKind()
	if !v.oneOf(path+".workload", kind, Deployment, StatefulSet, DaemonSet, Job, CronJob) {
		return
	}
	const jobs = Job + " " + CronJob
	const placed = Deployment + " " + StatefulSet + " " + jobs
	v.onlyFor(path, kind, []field{
		{"replicas", a.Replicas != 0, placed}, {"service", a.Service, Deployment + " " + DaemonSet}, {"evictAfter", a.EvictAfter != 0, placed},
		{"autoscale", a.Autoscale != Autoscale{}, Deployment}, {"gang", a.Gang != 0, Deployment},
		{"antiAffinity", a.AntiAffinity != "", placed}, {"topologySpread", len(a.TopologySpread) > 0, placed},
		{"podManagementPolicy", a.PodManagementPolicy != "", StatefulSet}, {"runFor", a.RunFor != 0, jobs}, {"backoffLimit", a.BackoffLimit != 0, jobs},
		{"every", a.Every != 0, CronJob}, {"concurrencyPolicy", a.ConcurrencyPolicy != "", CronJob},
	})
	if a.PodManagementPolicy != "" {
		v.oneOf(path+".podManagementPolicy", a.PodManagementPolicy, "OrderedReady", "Parallel")
	}
	if a.ConcurrencyPolicy != "" {
		v.oneOf(path+".concurrencyPolicy", a.ConcurrencyPolicy, "Allow", "Forbid", "Replace")
	}
	if kind != Job && kind != CronJob {
		return
	}
	v.between(path+".backoffLimit", float64(a.BackoffLimit), 0, maxPods)
	switch d := a.RunFor.D(); {
	case d == 0:
		v.fail(path+".runFor", "write runFor: 30s", "the pods of this %s would never succeed", kind)
	case d < time.Second || d > maxPhase:
		v.fail(path+".runFor", "from 1s to 24h", "%s is out of bounds", a.RunFor)
	}
	if kind == CronJob && (a.Every.D() < time.Minute || time.Hour%a.Every.D() != 0 || a.Every.D()%time.Minute != 0) {
		v.fail(path+".every", "1m, 2m, 3m, 4m, 5m, 6m, 10m, 12m, 15m, 20m, 30m or 1h", "a cron schedule cannot run every %s", a.Every)
	}
}
