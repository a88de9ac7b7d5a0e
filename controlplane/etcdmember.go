package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// updatePeerURL tells a single member its peer address of this start. etcd keeps
// the one of its first start in its data and ignores the flag afterwards, so
// after a change of ports `member list` would tell an old one. Several members
// have addresses that never change: without them they could not even agree.
//
// It speaks etcd's JSON gateway rather than link its client for two calls.
func (p *prober) updatePeerURL(ctx context.Context) error {
	members := p.plan.Of(control.KindEtcd)
	if len(members) > 1 {
		return nil
	}
	etcd := members[0]
	var list struct {
		Members []struct {
			ID       string   `json:"ID"`
			Name     string   `json:"name"`
			PeerURLs []string `json:"peerURLs"`
		} `json:"members"`
	}
	if err := p.etcdCall(ctx, etcd, "/v3/cluster/member/list", struct{}{}, &list); err != nil {
		return err
	}
	want := []string{etcd.Peer}
	for _, m := range list.Members {
		if m.Name != etcd.Name || slices.Equal(m.PeerURLs, want) {
			continue
		}
		update := map[string]any{"ID": m.ID, "peerURLs": want}
		if err := p.etcdCall(ctx, etcd, "/v3/cluster/member/update", update, &struct{}{}); err != nil {
			return err
		}
	}
	return nil
}

// etcdCall calls one member's JSON gateway.
func (p *prober) etcdCall(ctx context.Context, etcd topology.Process, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, etcd.Address+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := p.etcdHTTP.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", etcd.Name, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("%s %s: %w", etcd.Name, path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", etcd.Name, path, resp.Status, answer)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s %s: %w", etcd.Name, path, err)
	}
	return nil
}
