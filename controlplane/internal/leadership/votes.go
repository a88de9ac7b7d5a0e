package leadership

// Votes finds etcd's leader from the members' answers. A member that is cut off may
// still know an old leader, and a paused one does not answer.
type Votes struct {
	// Members counts all members, also those that do not run.
	Members int

	leader string
	term   int64
	said   map[vote]int
}

type vote struct {
	leader string
	term   int64
}

// Add counts one member's answer: the leader that it knows, "" if none, in its term.
// It reports whether a quorum has given the same answer, so that no other is needed: a
// leader of a newer term would have needed a vote of that quorum.
func (v *Votes) Add(leader string, term int64) (settled bool) {
	if leader == "" {
		return false
	}
	if v.said == nil {
		v.said = map[vote]int{}
	}
	said := vote{leader, term}
	v.said[said]++
	if v.leader == "" || term > v.term {
		v.leader, v.term = leader, term
	}
	return v.said[said] > v.Members/2
}

// Leader is that of the newest term in any answer, or "".
func (v *Votes) Leader() string { return v.leader }
