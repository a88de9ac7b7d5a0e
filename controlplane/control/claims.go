package control

import "slices"

// Claim is a part of the plane that a fault works on while it is in force.
// Two faults with the same part clash if either needs it alone.
//
//	process      alone for what stops or ends the process (pause, kill,
//	             restart, etcdQuota, etcdRestore), shared by what lives in it (slowFsync,
//	             descriptorLimit): it would be lost with the process, and an
//	             agent in a stopped process does not answer
//	fsync, limit one slowFsync and one descriptorLimit for each component
//	link         one delay or partition for each
//	disk, quota  one of the kind in the plane
//	webhook      one for each resource
type Claim struct {
	Part  string // for a person: "the process of etcd-0"
	Alone bool
}

// ProcessClaim is one on a component's process.
func ProcessClaim(name string, alone bool) Claim { return Claim{"the process of " + name, alone} }

// LinkClaim is one on a link.
func LinkClaim(from, to string) Claim { return Claim{"the link from " + from + " to " + to, true} }

// Claims are the parts that a fault on these components works on; those on its
// links are LinkClaims.
func (f Fault) Claims(on []string) []Claim {
	var all []Claim
	for _, name := range on {
		switch f.Kind {
		case FaultPause, FaultKill, FaultRestart, FaultQuota, FaultRestore:
			all = append(all, ProcessClaim(name, true))
		case FaultSlowFsync:
			all = append(all, ProcessClaim(name, false), Claim{"the fsync of " + name, true})
		case FaultDescriptors:
			all = append(all, ProcessClaim(name, false), Claim{"the descriptor limit of " + name, true})
		}
	}
	switch f.Kind {
	case FaultDiskContention:
		all = append(all, Claim{"the disk", true})
	case FaultWebhook:
		all = append(all, Claim{"the webhook for " + f.Resource, true})
	}
	return all
}

// Clash is the first part that cannot be had because of what others have; ok is
// false if there is none.
func Clash(want, has []Claim) (part string, ok bool) {
	for _, w := range want {
		if slices.ContainsFunc(has, func(h Claim) bool { return h.Part == w.Part && (h.Alone || w.Alone) }) {
			return w.Part, true
		}
	}
	return "", false
}
