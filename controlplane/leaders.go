package controlplane

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/leadership"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// etcdStatus is a member's answer to /v3/maintenance/status; the gateway writes
// 64-bit numbers as text.
type etcdStatus struct {
	Header struct {
		MemberID string `json:"member_id"`
	} `json:"header"`
	Leader  string   `json:"leader"` // "" or "0": it knows none
	Term    int64    `json:"raftTerm,string"`
	DBSize  int64    `json:"dbSize,string"`
	DBInUse int64    `json:"dbSizeInUse,string"`
	Errors  []string `json:"errors"` // alarms, as "NOSPACE"
}

func (p *prober) etcdStatus(ctx context.Context, etcd topology.Process) (s etcdStatus, err error) {
	return s, p.etcdCall(ctx, etcd, "/v3/maintenance/status", struct{}{}, &s)
}

// leads tells whether a leader-elected component holds its lease. The holder's
// name in the lease is the host's and a random part, so each component has to
// be asked; the series has the lease's name as a label.
func (p *prober) leads(ctx context.Context, proc topology.Process) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, proc.Address+"/metrics", nil)
	if err != nil {
		return false, err
	}
	resp, err := p.kubeHTTP.Do(req)
	if err != nil {
		return false, fmt.Errorf("%s: %w", proc.Name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("%s: GET /metrics: %s", proc.Name, resp.Status)
	}
	return masterStatus(resp.Body, proc.Kind)
}

// masterStatus finds leader_election_master_status of a lease.
func masterStatus(metrics io.Reader, lease string) (leads bool, err error) {
	series := fmt.Sprintf("leader_election_master_status{name=%q} ", lease)
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), series); found {
			return value == "1", nil
		}
	}
	return false, lines.Err() // none before its first election
}

// Leader names the component of a kind that leads now.
func (p *Plane) Leader(ctx context.Context, kind string) (string, error) {
	switch kind {
	case control.KindEtcd:
		return p.etcdLeader(ctx)
	case control.KindScheduler, control.KindControllerManager:
		return p.holder(ctx, kind)
	case control.KindAPIServer:
		return "", fmt.Errorf("no %s leads: they are equals", kind)
	}
	return "", fmt.Errorf("no component of the kind %q", kind)
}

// etcdLeader asks all members at once and waits until a quorum agrees or all have
// answered: one that is paused must not hold up the fault that asks.
func (p *Plane) etcdLeader(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var mu sync.Mutex
	votes := leadership.Votes{Members: p.opts.Config.Count(control.KindEtcd)}
	var failure error
	p.each(control.KindEtcd, func(etcd topology.Process) {
		s, err := p.probe.etcdStatus(ctx, etcd)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failure = err
			return
		}
		p.knowMember(s.Header.MemberID, etcd.Name)
		if s.Leader == "0" { // it knows none
			s.Leader = ""
		}
		// The leader itself may be the only one that can say who it is.
		if votes.Add(s.Leader, s.Term) && p.memberWith(votes.Leader()) != "" {
			cancel()
		}
	})
	leader := votes.Leader()
	name := p.memberWith(leader)
	switch {
	case name != "":
		return name, nil
	case leader == "" && failure == nil:
		return "", fmt.Errorf("etcd has no leader")
	case leader == "":
		return "", fmt.Errorf("etcd has no leader: %w", failure)
	}
	return "", fmt.Errorf("etcd's leader is member %s, which has never been reached", leader)
}

// knowMember keeps which member has which ID: one that is paused cannot say.
func (p *Plane) knowMember(id, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.memberIDs[id] = name
}

// memberWith names the member with an ID, "" if it was never reached.
func (p *Plane) memberWith(id string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.memberIDs[id]
}

// holder names who holds the lease of a kind.
func (p *Plane) holder(ctx context.Context, kind string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var mu sync.Mutex
	var holders []string
	var failure error
	p.each(kind, func(proc topology.Process) {
		leads, err := p.probe.leads(ctx, proc)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failure = err
		}
		if leads {
			holders = append(holders, proc.Name)
			cancel() // there is one: who does not answer is not waited for
		}
	})
	switch {
	case len(holders) > 0:
		return holders[0], nil
	case failure != nil:
		return "", fmt.Errorf("no %s holds the lease: %w", kind, failure)
	}
	return "", fmt.Errorf("no %s holds the lease", kind)
}

// each asks all living components of a kind at once.
func (p *Plane) each(kind string, ask func(topology.Process)) {
	p.mu.Lock()
	var living []topology.Process
	for _, m := range p.members {
		select {
		case <-m.child.Done():
		default:
			if m.process.Kind == kind {
				living = append(living, m.process)
			}
		}
	}
	p.mu.Unlock()
	var all sync.WaitGroup
	for _, proc := range living {
		all.Go(func() { ask(proc) })
	}
	all.Wait()
}
