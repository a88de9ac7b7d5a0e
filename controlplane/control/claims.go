package control

import "slices"

// Claim records that a fault uses a part of the plane while the fault is active. A part is a component's process, a
// link between components, or something else that a kind of fault uses, such as the disk. Two claims on the same part
// clash if at least one of them is exclusive.
type Claim struct {
	Part  string // name of the part, also for messages: "the process of etcd-0"
	Alone bool   // whether the fault needs the part exclusively
}

// ProcessClaim returns a claim on a component's process. If alone is true, the claim excludes all other claims on the
// process.
func ProcessClaim(name string, alone bool) Claim { return Claim{"the process of " + name, alone} }

// Link is the network connection on which component From connects to component To.
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

// Named returns the names of the components that the selectors select, without duplicates. For a selector with a role,
// such as "etcd-leader", it calls inRole for the names of the components. inRole may return nil if it does not know
// them yet.
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

// Claims returns the fault's claims on parts of the plane. `on` and `links` are the components and links that the fault
// affects.
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
	return append(all, Claim{"the whole control plane", kind.Whole})
}

// Clash compares the claims of a new fault (`want`) with the existing claims (`has`). It returns the first part on
// which both have a claim and at least one of these claims is exclusive. ok is false if there is no such part.
func Clash(want, has []Claim) (part string, ok bool) {
	for _, w := range want {
		if slices.ContainsFunc(has, func(h Claim) bool { return h.Part == w.Part && (h.Alone || w.Alone) }) {
			return w.Part, true
		}
	}
	return "", false
}
