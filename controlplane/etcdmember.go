package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/stormglass/stormglass/controlplane/topology"
)

// updatePeerURL tells etcd the member's peer address of this start. etcd keeps
// the one of its first start in its data and ignores the flag afterwards, so
// after a change of ports `member list` would tell an old one.
//
// It speaks etcd's JSON gateway rather than link its client for two calls.
func (p *prober) updatePeerURL(ctx context.Context, port int) error {
	var list struct {
		Members []struct {
			ID       string   `json:"ID"`
			Name     string   `json:"name"`
			PeerURLs []string `json:"peerURLs"`
		} `json:"members"`
	}
	if err := p.etcdCall(ctx, "/v3/cluster/member/list", struct{}{}, &list); err != nil {
		return err
	}
	want := []string{topology.URL(port)}
	for _, m := range list.Members {
		if m.Name != p.plan.Etcd.Name || slices.Equal(m.PeerURLs, want) {
			continue
		}
		update := map[string]any{"ID": m.ID, "peerURLs": want}
		if err := p.etcdCall(ctx, "/v3/cluster/member/update", update, &struct{}{}); err != nil {
			return err
		}
	}
	return nil
}

func (p *prober) etcdCall(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.plan.Etcd.Address+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := p.etcdHTTP.Do(req)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("etcd %s: %w", path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd %s: %s: %s", path, resp.Status, answer)
	}
	return json.Unmarshal(answer, out)
}
