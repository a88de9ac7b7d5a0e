package capture

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// accounts records the UIDs of service accounts, to detect logs of different clusters. A service account keeps its UID
// until it is deleted.
type accounts struct {
	seen map[accountUID]*sighting
	// last is the account of the previous event, and at is its entry in the field `seen`. They save a lookup if the
	// next event has the same account.
	last accountUID
	at   *sighting
}

// accountUID is a service account and one of its UIDs. Both are numbers of strings in the string table.
type accountUID struct{ user, uid uint32 }

// sighting records in which logs, and at what times, an account had one UID.
type sighting struct {
	logs        []int // indexes of the logs, ascending
	first, last int64 // microseconds since 1970
}

func (a *accounts) note(log int, user, uid uint32, at int64) {
	key := accountUID{user, uid}
	if key != a.last || a.at == nil {
		s := a.seen[key]
		if s == nil {
			s = &sighting{first: at, last: at}
			a.seen[key] = s
		}
		a.last, a.at = key, s
	}
	s := a.at
	s.first, s.last = min(s.first, at), max(s.last, at)
	if n := len(s.logs); n == 0 || s.logs[n-1] != log {
		s.logs = append(s.logs, log)
	}
}

// overlap is the maximum time for which two UIDs of a service account may occur at the same time in logs of one
// cluster. After an account is recreated, its old UID remains valid for a short time, because kube-apiserver caches
// tokens for 10 seconds.
const overlap = time.Minute

// check returns an error if the logs come from several clusters: a service account has two UIDs at the same time, or
// two logs contain the same service accounts but none with the same UID. compared is false if no two logs contain the
// same service account.
func (a *accounts) check(text func(uint32) string, logs []string) (compared bool, err error) {
	byUser := map[uint32][]accountUID{}
	for key := range a.seen {
		byUser[key.user] = append(byUser[key.user], key)
	}
	users := slices.SortedFunc(maps.Keys(byUser), func(a, b uint32) int { return strings.Compare(text(a), text(b)) })

	shared := map[[2]int]*pairOfLogs{}
	for _, user := range users {
		keys := byUser[user]
		slices.SortFunc(keys, func(x, y accountUID) int {
			return cmp.Or(cmp.Compare(a.seen[x].first, a.seen[y].first), strings.Compare(text(x.uid), text(y.uid)))
		})
		for i, x := range keys {
			for _, y := range keys[i+1:] {
				if a.seen[x].last-a.seen[y].first > overlap.Microseconds() {
					return true, twoClusters(text(user), text(x.uid), text(y.uid), logs, a.seen[x].logs[0], a.seen[y].logs[0])
				}
				for _, m := range a.seen[x].logs {
					for _, n := range a.seen[y].logs {
						if m != n { // if one log has two UIDs, the account was recreated
							pair(shared, m, n).differs(user, x.uid, y.uid)
						}
					}
				}
			}
			for j, m := range a.seen[x].logs {
				for _, n := range a.seen[x].logs[j+1:] {
					pair(shared, m, n).same = true
				}
			}
		}
	}
	for m := range logs {
		for n := range logs {
			p := shared[[2]int{m, n}]
			if p == nil || p.same || p.count < 2 && !strings.HasPrefix(text(p.user), "system:serviceaccount:kube-system:") {
				continue
			}
			return true, twoClusters(text(p.user), text(p.uids[0]), text(p.uids[1]), logs, m, n)
		}
	}
	return len(shared) > 0, nil
}

// pairOfLogs is the result of comparing the service accounts in two logs. user is
// the first account whose UID differs, and uids are its UIDs in the two logs.
type pairOfLogs struct {
	same  bool // whether an account has the same UID in both logs
	count int  // number of accounts with different UIDs
	user  uint32
	uids  [2]uint32
}

func (p *pairOfLogs) differs(user, x, y uint32) {
	if p.count++; p.count == 1 {
		p.user, p.uids = user, [2]uint32{x, y}
	}
}

func pair(all map[[2]int]*pairOfLogs, m, n int) *pairOfLogs {
	key := [2]int{min(m, n), max(m, n)}
	if all[key] == nil {
		all[key] = &pairOfLogs{}
	}
	return all[key]
}

func twoClusters(user, x, y string, logs []string, m, n int) error {
	where := logs[m]
	if m != n {
		where += " and " + logs[n]
	}
	return fmt.Errorf("%s: the logs come from two clusters, because %s has both uid %s and uid %s (record each cluster to a separate recording)", where, user, x, y)
}
