package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/stormglass/stormglass/internal/userfile"
)

// Load reads cluster.json of the plane in dir. The plane may have stopped
// since.
func Load(dir string) (Cluster, error) {
	var c Cluster
	path := filepath.Join(dir, ClusterFile)
	data, err := userfile.Read(path, userfile.Text)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err == nil && c.Schema != ClusterSchema {
		err = fmt.Errorf("schema %q, not %q", c.Schema, ClusterSchema)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, fmt.Errorf("%s: %w", path, err)
	case err != nil:
		return c, fmt.Errorf("%s: %w (stop the control plane and start it again, which writes the file anew)", path, err)
	}
	return c, nil
}

// Client talks to the supervisor of one plane through its control socket.
type Client struct {
	dir    string
	holder Holder
	http   http.Client
}

// Dial returns a client of the plane in dir, or ErrNotRunning, or ErrStarting.
func Dial(dir string) (*Client, error) {
	used, err := InUse(dir)
	if err != nil {
		return nil, err // it is not known whether one runs
	}
	if !used {
		return nil, ErrNotRunning
	}
	holder, err := ReadHolder(dir)
	if errors.Is(err, io.EOF) { // between the lock and SetHolder
		err = ErrStarting
	}
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
	err := c.call(ctx, http.MethodGet, "/v1/status", nil, &s)
	return s, err
}

// Stop asks the supervisor to stop the plane in order and waits until its
// last process is gone.
func (c *Client) Stop(ctx context.Context) error {
	if err := c.call(ctx, http.MethodPost, "/v1/stop", nil, nil); err != nil {
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

// call sends in, if there is any, and reads the answer into out.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader = http.NoBody
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://stormglass"+path, body)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask supervisor %d: %w", c.holder.PID, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return fmt.Errorf("ask supervisor %d: %w", c.holder.PID, err)
	}
	if resp.StatusCode == http.StatusGone {
		return ErrEnded
	}
	if resp.StatusCode/100 != 2 {
		return refusal(resp.Status, answer)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// refusal is the error in an answer.
func refusal(status string, answer []byte) error {
	var r FaultRefusal
	if err := json.Unmarshal(answer, &r); err != nil || r.Error == "" {
		return fmt.Errorf("the supervisor answers %s: %s", status, bytes.TrimSpace(answer))
	}
	if len(r.Problems) > 0 {
		return &InvalidFault{Problems: r.Problems}
	}
	return errors.New(r.Error)
}
