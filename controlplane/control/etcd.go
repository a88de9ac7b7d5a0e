package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Environment holds the variables that tell etcdctl how to reach the members.
func (e EtcdClient) Environment() []string {
	return []string{
		"ETCDCTL_ENDPOINTS=" + strings.Join(e.Endpoints, ","), "ETCDCTL_CACERT=" + e.CAFile,
		"ETCDCTL_CERT=" + e.CertFile, "ETCDCTL_KEY=" + e.KeyFile,
	}
}

// AnyMember tries one member after another until one does what is asked, or ctx
// ends. The error is that of all that were tried.
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
