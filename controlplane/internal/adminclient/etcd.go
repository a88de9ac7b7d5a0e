package adminclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// UpdatePeerURL corrects the peer address of a single member after a change of
// ports: etcd keeps that of its first start in its data and ignores the flag
// afterwards, so `member list` would show an old one. Several members have addresses
// that never change, without which they could not reach a quorum.
func (c *Client) UpdatePeerURL(ctx context.Context, members []topology.Process) error {
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
	if err := c.CallEtcd(ctx, etcd, "/v3/cluster/member/list", struct{}{}, &list); err != nil {
		return err
	}
	want := []string{etcd.Peer}
	for _, m := range list.Members {
		if m.Name != etcd.Name || slices.Equal(m.PeerURLs, want) {
			continue
		}
		update := map[string]any{"ID": m.ID, "peerURLs": want}
		if err := c.CallEtcd(ctx, etcd, "/v3/cluster/member/update", update, &struct{}{}); err != nil {
			return err
		}
	}
	return nil
}

// EtcdStatus is a member's answer to /v3/maintenance/status. The gateway writes
// 64-bit numbers as text.
type EtcdStatus struct {
	Header struct {
		MemberID string `json:"member_id"`
	} `json:"header"`
	Leader  string   `json:"leader"` // the leader's member ID; "" or "0": none is known
	Term    int64    `json:"raftTerm,string"`
	DBSize  int64    `json:"dbSize,string"`
	DBInUse int64    `json:"dbSizeInUse,string"`
	Errors  []string `json:"errors"` // alarms, as "NOSPACE"
}

// EtcdStatus asks one member for its status.
func (c *Client) EtcdStatus(ctx context.Context, etcd topology.Process) (s EtcdStatus, err error) {
	err = c.CallEtcd(ctx, etcd, "/v3/maintenance/status", struct{}{}, &s)
	if s.Leader == "0" {
		s.Leader = ""
	}
	return s, err
}

// CallEtcd calls one member's JSON gateway, which spares the client library of etcd.
func (c *Client) CallEtcd(ctx context.Context, etcd topology.Process, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	resp, err := c.do(ctx, etcd, http.MethodPost, path, bytes.NewReader(body))
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
