package control

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Load reads cluster.json of the plane in dir. The plane may have stopped
// since.
func Load(dir string) (Cluster, error) {
	var c Cluster
	data, err := os.ReadFile(filepath.Join(dir, ClusterFile))
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("%s: %w", filepath.Join(dir, ClusterFile), err)
	}
	if c.Schema != ClusterSchema {
		return c, fmt.Errorf("%s: schema %q, not %q", filepath.Join(dir, ClusterFile), c.Schema, ClusterSchema)
	}
	return c, nil
}

// Client talks to the supervisor of one plane through its control socket.
type Client struct {
	dir    string
	holder Holder
	http   http.Client
}

// Dial gives a client of the plane in dir, or ErrNotRunning.
func Dial(dir string) (*Client, error) {
	used, err := InUse(dir)
	if err != nil {
		return nil, err // it is not known whether one runs
	}
	if !used {
		return nil, ErrNotRunning
	}
	holder, err := ReadHolder(dir)
	if err != nil {
		return nil, err
	}
	c := &Client{dir: dir, holder: holder}
	c.http.Transport = &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", holder.Socket)
		},
	}
	return c, nil
}

// Status asks for the plane's state.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	body, err := c.call(ctx, http.MethodGet, "/v1/status")
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(body, &s); err != nil {
		return s, fmt.Errorf("status: %w", err)
	}
	return s, nil
}

// Stop asks the supervisor to stop the plane in order and waits until its
// last process is gone.
func (c *Client) Stop(ctx context.Context) error {
	if _, err := c.call(ctx, http.MethodPost, "/v1/stop"); err != nil {
		return err
	}
	return c.WaitGone(ctx)
}

// WaitGone waits until the plane's last process is gone.
func (c *Client) WaitGone(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if used, err := InUse(c.dir); err != nil || !used {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for supervisor %d to end: %w", c.holder.PID, ctx.Err())
		case <-tick.C:
		}
	}
}

func (c *Client) call(ctx context.Context, method, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://stormglass"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask supervisor %d: %w", c.holder.PID, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, fmt.Errorf("ask supervisor %d: %w", c.holder.PID, err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, body)
	}
	return body, nil
}
