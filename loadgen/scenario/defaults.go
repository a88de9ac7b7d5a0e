package scenario

import "time"

func (s *Scenario) setDefaults() {
	orDefault(&s.Seed, 1)
	orDefault(&s.Record.Interval, Duration(5*time.Second))
	n := &s.Nodes
	orDefault(&n.Fidelity, "kubelet")
	orDefault(&n.Zones, 3)
	orDefault(&n.CPU, "8")
	orDefault(&n.Memory, "32Gi")
	orDefault(&n.Pods, 110)
	orDefault(&n.LeaseRenew, Duration(10*time.Second))
	orDefault(&n.LeaseDuration, 4*n.LeaseRenew)
	for i := range n.Pools {
		n.Pools[i].setDefaults(n)
	}
	orDefault(&n.StatusReport, Duration(5*time.Minute))
	orDefault(&n.RegisterRate, 50)
	s.spreadBatches()
	for i := range s.Objects {
		s.Objects[i].setDefaults()
	}
	n.setPodLifeDefaults()
	for _, l := range s.Loads() {
		l.setDefaults()
	}
	kinds := map[string]string{} // workload kinds by name
	for i := range s.Phases {
		for j := range s.Phases[i].Actions {
			a := &s.Phases[i].Actions[j]
			if a.Kind == "deploy" {
				kinds[a.Name] = a.WorkloadKind()
			}
			a.setDefaults(kinds[a.Name])
			a.Batch.setDefaults()
		}
	}
	for i := range s.Teardown {
		s.Teardown[i].Batch.setDefaults()
	}
	for i := range s.Transitions {
		s.Transitions[i].setDefaults()
	}
	s.addReplayGates()
	for i := range s.Gates {
		g := &s.Gates[i]
		if len(g.Over) == 0 {
			g.Over = s.PhaseNames()
		}
	}
	for i := range s.Compare {
		f := &s.Compare[i]
		if len(f.Over) == 0 {
			f.Over = s.PhaseNames()
		}
	}
	s.defaultProfiles()
	s.defaultHooks()
	for _, f := range s.Faults() {
		if f.Traits().Links {
			s.needLinks(f.Path)
		}
	}
}

// Defaults for the objects of a load. All kinds of load have them, even kinds that create no objects.
const (
	defaultObjects    = 1
	defaultNamespaces = 1
	defaultSpread     = "even"
	defaultSize       = 1 << 10
)

func (l *Load) setDefaults() {
	orDefault(&l.Name, l.Kind)
	orDefault(&l.Arrival, "constant")
	orDefault(&l.MaxInFlight, 1000)
	orDefault(&l.Timeout, Duration(time.Minute))
	orDefault(&l.Connections, 4)
	orDefault(&l.Namespaces, defaultNamespaces)
	orDefault(&l.Spread, defaultSpread)
	if len(l.Sizes) == 0 {
		orDefault(&l.Size, defaultSize)
	}
	k := l.kind()
	if k.fixed == nil && len(l.Mix) == 0 {
		l.Operation.setDefaults()
	}
	for i := range l.Mix {
		l.Mix[i].setDefaults()
		orDefault(&l.Mix[i].Weight, 1)
	}
	for i := range l.Sizes {
		orDefault(&l.Sizes[i].Weight, 1)
	}
	for i := range l.Tenants {
		orDefault(&l.Tenants[i].Share, 1)
	}
	if l.Shape.Kind == "replay" {
		orDefault(&l.Shape.Speed, 1)
	}
	orDefault(&l.Objects, max(k.objects, defaultObjects))
	if k.defaults != nil {
		k.defaults(l)
	}
}

func (o *Operation) setDefaults() {
	orDefault(&o.Resource, "configmaps")
	orDefault(&o.Form, "object")
	orDefault(&o.Encoding, "json")
	orDefault(&o.Scope, "namespace")
}

// setDefaults sets the defaults of an action on a workload. workload is the kind of the workload, or "" if the workload
// is unknown.
func (a *Action) setDefaults(workload string) {
	switch a.Kind {
	case "deploy":
		orDefault(&a.CPU, "10m")
		orDefault(&a.Memory, "16Mi")
		if a.Autoscale != (Autoscale{}) {
			orDefault(&a.Autoscale.Min, a.Replicas)
			orDefault(&a.Autoscale.Utilization, 80)
		}
		for i := range a.TopologySpread {
			orDefault(&a.TopologySpread[i].MaxSkew, 1)
		}
		if workload == CronJob {
			orDefault(&a.Every, Duration(time.Minute))
		}
	case "rollingUpdate":
		if workload != "" && workload != Deployment {
			return
		}
		orDefault(&a.MaxSurge, "25%")
		orDefault(&a.MaxUnavailable, "25%")
	}
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
