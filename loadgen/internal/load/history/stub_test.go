package history

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// liar is a store of ConfigMaps without watches. All its responses are correct except one.
type liar struct {
	*httptest.Server
	lie func(r *http.Request, n int) lie // n counts the requests since Prepare

	mu      sync.Mutex
	version int
	objects map[string]corev1.ConfigMap
	before  map[string]corev1.ConfigMap // the state before the last write
	asked   int
	lied    bool
	after   int           // requests since the lie
	seen    chan struct{} // closed after enough requests to reveal the lie
}

// lie is a wrong response.
type lie uint8

const (
	truth     lie = iota
	forgotten     // a write is acknowledged and not kept
	outdated      // a read gives the state before the last write
	denied        // a write is kept and answered as a conflict
)

func newLiar(t *testing.T, f func(*http.Request, int) lie) *liar {
	s := &liar{lie: f, version: 100, objects: map[string]corev1.ConfigMap{}, before: map[string]corev1.ConfigMap{}, seen: make(chan struct{})}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *liar) target() load.Target {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return load.Target{
		Config: &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, Namespace: "storm", Seed: 1,
	}
}

func (s *liar) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lied {
		if s.after++; s.after == 20 {
			close(s.seen)
		}
	}
	_, name, one := strings.Cut(r.URL.Path, "/configmaps/")
	is, known := s.objects[name]
	var in corev1.ConfigMap
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	var tell lie
	if r.Method != http.MethodPost && one && known && !s.lied {
		// Only operations that would be executed get a wrong response.
		if r.Method == http.MethodGet && r.URL.RawQuery == "" && s.before[name].Name != "" || in.ResourceVersion == is.ResourceVersion {
			tell = s.lie(r, s.asked)
			s.asked++
			s.lied = tell != truth
		}
	}
	switch {
	case r.Method == http.MethodPost:
		s.put(w, in, truth)
	case !one:
		l := corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}
		for _, o := range s.objects {
			l.Items = append(l.Items, o)
		}
		_ = json.NewEncoder(w).Encode(l)
	case !known:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet && tell == outdated:
		_ = json.NewEncoder(w).Encode(s.before[name])
	case r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(is)
	case in.ResourceVersion != is.ResourceVersion:
		w.WriteHeader(http.StatusConflict)
	default:
		s.put(w, in, tell)
	}
}

func (s *liar) put(w http.ResponseWriter, o corev1.ConfigMap, tell lie) {
	s.version++
	o.ResourceVersion = fmt.Sprint(s.version)
	if tell != forgotten {
		s.before[o.Name], s.objects[o.Name] = s.objects[o.Name], o
	}
	if tell == denied {
		w.WriteHeader(http.StatusConflict)
		return
	}
	_ = json.NewEncoder(w).Encode(o)
}
