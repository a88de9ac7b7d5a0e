package scrape

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// A killed recorder leaves a write-ahead log that may be cut off anywhere.
func TestArchiveOfAKilledRun(t *testing.T) {
	s := newStub(t)
	b := newBench(t, Options{}, s.target(etcd))
	var times []time.Time
	for i := range 50 {
		s.says(100, counter("etcd_server_x_total", i))
		times = append(times, b.scrape(time.Second))
	}
	killed := t.TempDir()
	if err := os.CopyFS(killed, os.DirFS(b.dir)); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	last := times[len(times)-1]
	if got := valueOf(t, openArchive(t, killed), "etcd_server_x_total", last); got != 49 {
		t.Errorf("the last scrape before the kill reads %v, want 49", got)
	}

	segments, err := filepath.Glob(filepath.Join(killed, result.TSDBDir, archive.WalDir, "0*"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	segment := segments[len(segments)-1]
	log, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	cut := log[:len(log)-7]
	if err := os.WriteFile(segment, cut, 0o600); err != nil {
		t.Fatal(err)
	}
	torn := openArchive(t, killed)
	if got := valueOf(t, torn, fmt.Sprintf("max_over_time(etcd_server_x_total[%s])", archive.Window(times[0], last)), last); got < 48 {
		t.Errorf("a log cut off in its last record reads up to %v, want at least 48", got)
	}
	if now, err := os.ReadFile(segment); err != nil || len(now) != len(cut) {
		t.Errorf("opening changed the run's directory: %d bytes became %d (%v)", len(cut), len(now), err)
	}
}

func TestClosedArchiveIsOneBlock(t *testing.T) {
	s := newStub(t)
	b := newBench(t, Options{}, s.target(etcd))
	s.says(100, counter("etcd_server_x_total", 1))
	first := b.scrape(0)
	b.scrape(30 * time.Hour) // longer than Prometheus' own blocks
	a := b.archive()
	entries, err := os.ReadDir(filepath.Join(b.dir, result.TSDBDir))
	if err != nil || len(entries) != 1 || len(entries[0].Name()) != 26 {
		t.Errorf("the archive is %v (%v), want one block", entries, err)
	}
	if got := valueOf(t, a, "etcd_server_x_total", first); got != 1 {
		t.Errorf("the first scrape reads %v", got)
	}
	series, err := a.Range(context.Background(), "up", first, first.Add(2*time.Second), time.Second)
	if err != nil || len(series) != 1 || len(series[0].Points) != 3 || !series[0].Points[0].T.Equal(first) || series[0].Labels["job"] != etcd {
		t.Errorf("range: %+v, %v", series, err)
	}
}

func TestMissingArchive(t *testing.T) {
	if _, err := archive.Open(t.TempDir()); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line", err)
	}
	b := newBench(t, Options{})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Open(b.dir); err == nil || !strings.Contains(err.Error(), "the run recorded nothing") {
		t.Errorf("got %v", err)
	}
}

func TestTimelineSurvivesAKill(t *testing.T) {
	dir := t.TempDir()
	if events, err := timeline.Read(dir); err != nil || events != nil {
		t.Errorf("no timeline: %v, %v", events, err)
	}
	line, err := timeline.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := result.Event{Time: time.UnixMilli(1_800_000_000_123).UTC(), Kind: "fault", Name: "nodeFailure", Detail: "150 of 500"}
	if err := line.Append(want); err != nil {
		t.Fatal(err)
	}
	if err := line.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, result.TimelineFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"time":"2026-11-2`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if events, err := timeline.Read(dir); err != nil || len(events) != 1 || !reflect.DeepEqual(events[0], want) {
		t.Errorf("read %+v, %v", events, err)
	}
	if line, err = timeline.Open(filepath.Join(dir, "none")); err == nil {
		t.Errorf("opened %v in a directory that does not exist", line)
	}
}

// A target's identity: its CA is checked, and its token and certificate are sent.
func TestScrapeIdentity(t *testing.T) {
	dir := t.TempDir()
	var shown string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = r.Header.Get("Authorization")
		for _, c := range r.TLS.PeerCertificates {
			shown += " " + c.Subject.Organization[0]
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprintln(w, "process_start_time_seconds 1")
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert := write("cert.pem", "CERTIFICATE", server.Certificate().Raw)
	der, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	key := write("key.pem", "PRIVATE KEY", der)
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	trusted := control.ScrapeTarget{Job: etcd, Instance: "trusted", URL: server.URL, CAFile: cert, CertFile: cert, KeyFile: key, TokenFile: token}
	stranger := control.ScrapeTarget{Job: etcd, Instance: "stranger", URL: server.URL}
	b := newBench(t, Options{}, trusted, stranger)
	b.scrape(0)
	if got := b.Scrapes(); got.Done != 2 || got.Failed["trusted"] != 0 || got.Failed["stranger"] != 1 {
		t.Errorf("counted %+v, want only the unverified server refused", got)
	}
	if shown != "Bearer secret Acme Co" {
		t.Errorf("the server received %q", shown)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
