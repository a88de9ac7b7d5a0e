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
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stormglass/stormglass/internal/userfile"
)

// Load reads the file cluster.json of the plane in dir.
func Load(dir string) (Cluster, error) {
	var c Cluster
	path := filepath.Join(dir, ClusterFile)
	data, err := userfile.Read(path, userfile.Text)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err == nil && c.Schema != ClusterSchema {
		err = fmt.Errorf("the schema is %q, but must be %q", c.Schema, ClusterSchema)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, fmt.Errorf("%s: %w", path, err)
	case err != nil:
		return c, fmt.Errorf("%s: %w (restart the control plane to rewrite the file)", path, err)
	}
	return c, nil
}

// Client calls the supervisor of one plane through the plane's control socket.
type Client struct {
	dir    string
	holder Holder
	http   http.Client
}

// Dial returns a client for the plane in dir. It returns ErrNotRunning if no plane runs there, and ErrStarting if the
// plane cannot be reached yet.
func Dial(dir string) (*Client, error) {
	used, err := InUse(dir)
	if err != nil {
		return nil, err // the lock cannot be checked, so a plane may be running
	}
	if !used {
		return nil, ErrNotRunning
	}
	holder, err := ReadHolder(dir)
	if errors.Is(err, io.EOF) { // the supervisor holds the lock, but has not called SetHolder yet
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

// Status returns the plane's state.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return call[Status](ctx, c, http.MethodGet, "/v1/status", nil)
}

// Stop makes the supervisor stop the plane gracefully, and waits until the plane's last process has ended.
func (c *Client) Stop(ctx context.Context) error { return c.stop(ctx, "/v1/stop") }

// StopNow is like Stop, but the supervisor kills the components. This is quicker. Use it for a plane whose data is no
// longer needed.
func (c *Client) StopNow(ctx context.Context) error { return c.stop(ctx, "/v1/stop?now=true") }

func (c *Client) stop(ctx context.Context, path string) error {
	if err := c.call(ctx, http.MethodPost, path, nil, nil); err != nil {
		return err
	}
	return c.WaitGone(ctx)
}

// WaitGone waits until the plane's last process has ended.
func (c *Client) WaitGone(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if used, err := InUse(c.dir); err != nil || !used {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until the supervisor (process %d) ends: %w", c.holder.PID, ctx.Err())
		case <-tick.C:
		}
	}
}

// call sends a request with `in` as its JSON body (nil means no body) and returns the decoded response.
func call[T any](ctx context.Context, c *Client, method, path string, in any) (out T, err error) {
	err = c.call(ctx, method, path, in, &out)
	return out, err
}

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
		return fmt.Errorf("call the supervisor (process %d): %w", c.holder.PID, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return fmt.Errorf("call the supervisor (process %d): %w", c.holder.PID, err)
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

func refusal(status string, answer []byte) error {
	var r FaultRefusal
	if err := json.Unmarshal(answer, &r); err != nil || r.Error == "" {
		return fmt.Errorf("the supervisor responded with %s: %s", status, bytes.TrimSpace(answer))
	}
	if len(r.Problems) > 0 {
		return &InvalidFault{Problems: r.Problems}
	}
	return errors.New(r.Error)
}

// FaultRefusal is the body of an error response of the supervisor, for example when the supervisor refuses a fault. The
// HTTP status is 400 or more.
type FaultRefusal struct {
	// Error is the reason for the error response.
	Error string `json:"error"`
	// Problems lists the mistakes in a refused fault.
	Problems []Problem `json:"problems,omitempty"`
}

// Begin begins a fault and returns when the fault is active. The supervisor ends the fault after the time f.For. If ctx
// ends before the fault is active, the supervisor undoes the fault and does not record it. The error is an
// *InvalidFault if the fault is never possible on this plane.
func (c *Client) Begin(ctx context.Context, f Fault) (FaultStatus, error) {
	return call[FaultStatus](ctx, c, http.MethodPost, "/v1/faults", f)
}

// Check returns an error if Begin would refuse the fault now. It checks the fault's fields, the affected components and
// the requirements on this machine, and changes nothing.
func (c *Client) Check(ctx context.Context, f Fault) error {
	return c.call(ctx, http.MethodPost, "/v1/faults/check", f, nil)
}

// Clear ends a fault early and returns when the fault is undone.
func (c *Client) Clear(ctx context.Context, id string) (FaultStatus, error) {
	return call[FaultStatus](ctx, c, http.MethodDelete, "/v1/faults/"+url.PathEscape(id), nil)
}

// ClearAll ends all faults and returns when all are undone.
func (c *Client) ClearAll(ctx context.Context) ([]FaultStatus, error) {
	return call[[]FaultStatus](ctx, c, http.MethodDelete, "/v1/faults", nil)
}

// Faults lists the plane's faults in the order of their requests: all active faults, and the most recent faults that
// have ended.
func (c *Client) Faults(ctx context.Context) ([]FaultStatus, error) {
	return call[[]FaultStatus](ctx, c, http.MethodGet, "/v1/faults", nil)
}

// ErrEnded means that the control plane has ended. Events returns it when no more events will follow.
var ErrEnded = errors.New("the control plane has ended")

// Events returns the events whose numbers are greater than `after`, oldest first. It waits up to half a minute for the
// first event, and returns an empty list if no event occurs. The supervisor keeps the last few thousand events. A gap
// in the numbers means that the supervisor has dropped events. If the control plane has ended, or ends during the call,
// Events returns ErrEnded.
func (c *Client) Events(ctx context.Context, after int64) ([]Event, error) {
	var events []Event
	err := c.call(ctx, http.MethodGet, "/v1/events?after="+strconv.FormatInt(after, 10), nil, &events)
	for _, gone := range []error{os.ErrNotExist, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, gone) { // the socket no longer has a listener
			return nil, ErrEnded
		}
	}
	return events, err
}

// Environment returns the environment variables that etcdctl needs to reach the etcd members.
func (e EtcdClient) Environment() []string {
	return []string{
		"ETCDCTL_ENDPOINTS=" + strings.Join(e.Endpoints, ","), "ETCDCTL_CACERT=" + e.CAFile,
		"ETCDCTL_CERT=" + e.CertFile, "ETCDCTL_KEY=" + e.KeyFile,
	}
}

// AnyMember calls `try` for one etcd member after another, until a call succeeds or ctx ends. Each call gets only the
// endpoint of one member. AnyMember returns nil after a success, otherwise the joined errors.
func (e EtcdClient) AnyMember(ctx context.Context, try func(EtcdClient) error) error {
	var failures []error
	for _, endpoint := range e.Endpoints {
		one := e
		one.Endpoints = []string{endpoint}
		err := try(one)
		if err == nil {
			return nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", endpoint, err))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failures...)
}

// Restore is the request to restore etcd from a snapshot.
type Restore struct {
	// File is the snapshot's absolute path.
	File string `json:"file"`
}

// Restored is the result of a restore.
type Restored struct {
	// Down is the time from the moment at which the components began to stop until all were ready again.
	Down time.Duration `json:"downNanoseconds"`
	// Members are the names of the restored members.
	Members []string `json:"members"`
}

// RestoreEtcd stops all components that use etcd, restores the snapshot into every member, and starts the components
// again. It returns when the plane is ready. A successful restore discards the previous data of etcd. If the restore
// fails, the data is unchanged.
func (c *Client) RestoreEtcd(ctx context.Context, file string) (Restored, error) {
	return call[Restored](ctx, c, http.MethodPost, "/v1/etcd/restore", Restore{File: file})
}
