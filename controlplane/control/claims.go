package control

import "slices"

// Claim is a part of the plane that a fault uses while it is in force: a process, a link, or a
// part named by its FaultKind. Two faults with the same part clash if either needs it exclusively.
type Claim struct {
	Part  string // for people: "the process of etcd-0"
	Alone bool   // whether the fault needs the part exclusively
}

// ProcessClaim returns a claim on a component's process. If alone is true, it excludes all other claims on the process.
func ProcessClaim(name string, alone bool) Claim { return Claim{"the process of " + name, alone} }

// Link joins two components: From connects to To.
type Link struct{ From, To string }

// Joins reports whether the link connects one of the components to one of the peers, in either direction. If anyPeer is
// true, every component counts as a peer.
func (l Link) Joins(components, peers []string, anyPeer bool) bool {
	between := func(a, b string) bool {
		return slices.Contains(components, a) && (anyPeer || slices.Contains(peers, b))
	}
	return between(l.From, l.To) || between(l.To, l.From)
}

// Links returns the links that network faults can affect: between etcd members, from API
// servers to etcd members, and from API servers to metrics-server. All API servers share the
// link to metrics-server.
func (c Config) Links() []Link {
	var all []Link
	members := c.ComponentsOf(KindEtcd)
	for _, to := range members {
		for _, from := range slices.Concat(members, c.ComponentsOf(KindAPIServer)) {
			if from != to {
				all = append(all, Link{from, to})
			}
		}
	}
	for _, to := range c.ComponentsOf(KindMetricsServer) {
		from := KindAPIServer
		if c.Count(KindAPIServer) == 1 {
			from = ComponentName(from, 0)
		}
		all = append(all, Link{from, to})
	}
	return all
}

// Named returns the components that the selectors select, without duplicates. It calls inRole for the components of a
// selector with a role; inRole returns nil if they are not known yet.
func (c Config) Named(selectors []string, inRole func(Selector) []string) []string {
	var all []string
	for _, text := range selectors {
		s, ok := ParseSelector(text)
		var found []string
		switch {
		case !ok:
		case s.Role != "":
			found = inRole(s)
		case s.Name != "":
			found = []string{s.Name}
		default:
			found = c.ComponentsOf(s.Kind)
		}
		for _, name := range found {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// Claims returns the parts of the plane that the fault uses if it affects the given components and links.
func (f Fault) Claims(on []string, links []Link) []Claim {
	kind := f.kind()
	var all []Claim
	for _, name := range on {
		if kind.Process != ProcessUntouched {
			all = append(all, ProcessClaim(name, kind.Process != ProcessAltered))
		}
		if kind.PartOfEach != "" {
			all = append(all, Claim{kind.PartOfEach + " " + name, true})
		}
	}
	if kind.Part != nil {
		all = append(all, Claim{kind.Part(f), true})
	}
	if kind.Links {
		for _, l := range links {
			all = append(all, Claim{"the link from " + l.From + " to " + l.To, true})
		}
	}
	return append(all, Claim{"the plane as a whole", kind.Whole})
}

// Clash returns the first part that a claim in want cannot share with the claims in has. ok is false if there is no
// such part.
func Clash(want, has []Claim) (part string, ok bool) {
	for _, w := range want {
		if slices.ContainsFunc(has, func(h Claim) bool { return h.Part == w.Part && (h.Alone || w.Alone) }) {
			return w.Part, true
		}
	}
	return "", false
}
