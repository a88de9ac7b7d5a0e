package controlplane

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

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault"
)

// maxSocketPath is the maximum length of the path of a Unix socket on all supported systems: sun_path holds 104 bytes
// on BSD and 108 on Linux, including the terminating NUL.
const maxSocketPath = 103

// longestSocket is the longest possible file name of a socket in the plane's directory.
const longestSocket = control.KindKMSPlugin + "-00.sock"

type server struct {
	path string
	temp string // separate directory for the socket if the path of the plane's directory is too long, otherwise empty
	http http.Server
	done chan struct{}
}

func serve(p *Plane) (*server, error) {
	control.RemoveSocketDir(p.layout.Dir)
	s := &server{path: filepath.Join(p.layout.Dir, control.SocketFile), done: make(chan struct{})}
	if len(filepath.Join(p.layout.Dir, longestSocket)) > maxSocketPath {
		temp, err := os.MkdirTemp("", control.SocketDirPrefix) // 0700
		if err != nil {
			return nil, fmt.Errorf("control socket: %w", err)
		}
		s.temp, s.path = temp, filepath.Join(temp, control.SocketFile)
	}
	os.Remove(s.path) // a killed supervisor may have left it; no other supervisor can run, because this one has the lock
	listener, err := net.Listen("unix", s.path)
	if err == nil {
		err = os.Chmod(s.path, 0o600) // the directory is 0700 already
	}
	if err != nil {
		if s.temp != "" {
			os.RemoveAll(s.temp)
		}
		return nil, fmt.Errorf("control socket: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, p.Status()) })
	mux.HandleFunc("POST /v1/stop", func(w http.ResponseWriter, r *http.Request) {
		cause := errAsked
		if r.URL.Query().Get("now") != "" {
			cause = errAskedNow
		}
		p.requestStop(cause)
		w.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("POST /v1/etcd/restore", p.serveRestore)
	mux.HandleFunc("POST /v1/cloud/instances", p.serveInstances)
	fault.Handle(mux, p.faults, &p.events)
	s.http = http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(listener) // until close
	}()
	return s, nil
}

func (p *Plane) serveRestore(w http.ResponseWriter, r *http.Request) {
	var ask control.Restore
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&ask); err != nil {
		reply(w, http.StatusBadRequest, control.FaultRefusal{Error: err.Error()})
		return
	}
	restored, err := p.restoreEtcd(r.Context(), ask.File)
	if err != nil {
		reply(w, http.StatusConflict, control.FaultRefusal{Error: err.Error()})
		return
	}
	reply(w, http.StatusOK, restored)
}

// restoreEtcd restores etcd from a snapshot. It fails while faults are active. No fault can begin before restoreEtcd
// returns.
func (p *Plane) restoreEtcd(ctx context.Context, file string) (control.Restored, error) {
	allow, err := p.faults.Exclude("etcd is being restored")
	if err != nil {
		return control.Restored{}, err
	}
	defer allow()
	return p.restorer().Restore(ctx, file)
}

func reply(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // an error means that the client has disconnected
}

// lastAnswers is how long close waits for HTTP responses in progress. A client that waits for events must still receive
// the response that says that the plane has ended.
const lastAnswers = time.Second

func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), lastAnswers)
	defer cancel()
	_ = s.http.Shutdown(ctx) // also removes the socket
	_ = s.http.Close()
	<-s.done
	if s.temp != "" {
		os.RemoveAll(s.temp)
	}
}
