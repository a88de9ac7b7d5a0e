package control

import (
	"context"
	"net/http"
	"time"
)

// Restore asks for etcd to be taken back to a snapshot.
type Restore struct {
	// File is the snapshot's absolute path.
	File string `json:"file"`
}

// Restored tells what a restore took.
type Restored struct {
	// Down is the time from the stop of the first API server until all served
	// again.
	Down time.Duration `json:"downNanoseconds"`
	// Members that were restored.
	Members []string `json:"members"`
}

// RestoreEtcd stops all that uses etcd, restores the snapshot into every member
// and starts all again. It returns when the plane is ready. What etcd held before
// is gone then; when the restore fails, it is as before.
func (c *Client) RestoreEtcd(ctx context.Context, file string) (Restored, error) {
	var r Restored
	err := c.call(ctx, http.MethodPost, "/v1/etcd/restore", Restore{File: file}, &r)
	return r, err
}
