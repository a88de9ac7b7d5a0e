package leadership_test

import (
	"testing"

	"github.com/stormglass/stormglass/controlplane/internal/leadership"
)

func TestVotes(t *testing.T) {
	type word struct {
		leader string
		term   int64
	}
	for name, c := range map[string]struct {
		members int
		words   []word
		settled int // number of the response that settles the vote; 0: no response settles it
		leader  string
	}{
		"a member alone":                 {1, []word{{"a", 2}}, 1, "a"},
		"two of three are enough":        {3, []word{{"a", 2}, {"a", 2}}, 2, "a"},
		"one of three is not":            {3, []word{{"a", 2}}, 0, "a"},
		"two of four are no quorum":      {4, []word{{"a", 2}, {"a", 2}}, 0, "a"},
		"an isolated member is outdated": {3, []word{{"a", 2}, {"b", 3}, {"b", 3}}, 3, "b"},
		"the newest term counts":         {3, []word{{"b", 3}, {"a", 2}}, 0, "b"},
		"the same leader, elected again": {3, []word{{"a", 2}, {"a", 3}}, 0, "a"},
		"an empty answer does not count": {3, []word{{"", 4}, {"a", 3}, {"a", 3}}, 3, "a"},
		"no member knows a leader":       {3, []word{{"", 4}, {"", 4}}, 0, ""},
		"no member answers":              {3, nil, 0, ""},
	} {
		votes := leadership.Votes{Members: c.members}
		settled := 0
		for i, w := range c.words {
			if votes.Add(w.leader, w.term) && settled == 0 {
				settled = i + 1
			}
		}
		if settled != c.settled || votes.Leader() != c.leader {
			t.Errorf("%s: settled by response %d, leader %q", name, settled, votes.Leader())
		}
	}
}
