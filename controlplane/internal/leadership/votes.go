package leadership

// Votes finds etcd's leader from what members say who answer one after another.
// One that is cut off may still know an old leader, and one that is paused says
// nothing for as long as anybody is willing to wait.
type Votes struct {
	// Members is how many there are, those that do not run included.
	Members int

	leader string
	term   int64
	said   map[vote]int
}

type vote struct {
	leader string
	term   int64
}

// Add takes one member's word: the leader that it knows, "" if none, in its term.
// It tells whether a quorum has said the same, so that nobody else has to be
// heard: a leader of a newer term would have needed one of theirs.
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

// Leader is the one of the newest term that anybody knows, or "".
func (v *Votes) Leader() string { return v.leader }
