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
	orDefault(&n.StatusReport, Duration(5*time.Minute))
	orDefault(&n.RegisterRate, 50)
	for _, l := range s.Loads() {
		l.setDefaults()
	}
	for i := range s.Phases {
		for j := range s.Phases[i].Actions {
			s.Phases[i].Actions[j].setDefaults()
		}
	}
	for i := range s.Gates {
		g := &s.Gates[i]
		if len(g.Over) == 0 {
			g.Over = s.PhaseNames()
		}
	}
}

func (l *Load) setDefaults() {
	orDefault(&l.Name, l.Kind)
	orDefault(&l.Arrival, "constant")
	orDefault(&l.MaxInFlight, 1000)
	orDefault(&l.Timeout, Duration(time.Minute))
	orDefault(&l.Resource, "configmaps")
	orDefault(&l.Size, 1<<10)
	if l.Kind == "requests" {
		orDefault(&l.Objects, 100)
	} else {
		orDefault(&l.Objects, 1)
	}
}

func (a *Action) setDefaults() {
	switch a.Kind {
	case "deploy":
		orDefault(&a.CPU, "10m")
		orDefault(&a.Memory, "16Mi")
	case "rollingUpdate":
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
