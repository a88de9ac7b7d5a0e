package webhook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	admission "k8s.io/api/admission/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
)

const (
	reviewPath = "/review"
	probePath  = "/probe"
	// maxReview is the maximum size of a review in bytes. A review holds one object, and etcd accepts objects of up to
	// 1.5 MiB.
	maxReview = 8 << 20
)

func serverOf(handler http.Handler, certificate tls.Certificate) *http.Server {
	return &http.Server{
		Handler:           handler,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
		// Aborted handshakes are not worth logging.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

func (w *Webhook) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+reviewPath, w.review)
	mux.HandleFunc("POST "+reviewPath+"/{number}", w.review)
	mux.HandleFunc("POST "+probePath, w.probe)
	return mux
}

func (w *Webhook) review(out http.ResponseWriter, r *http.Request) {
	review, ok := decode(out, r)
	if !ok {
		return
	}
	if w.fails(r.Context()) {
		http.Error(out, "stormglass: injected webhook failure", http.StatusInternalServerError)
		return
	}
	var patch []byte
	if w.fault.Mutates {
		var err error
		if patch, err = annotate(review.Request.Object.Raw, annotation+r.PathValue("number")); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
	}
	allow(out, review, patch)
}

// annotation is the prefix of the annotation key that a mutating webhook adds. The webhook's number follows the prefix.
const annotation = "stormglass.dev/webhook-"

// annotate returns a JSON patch that adds an annotation to an object, or nil if the object already has the annotation.
func annotate(object []byte, key string) ([]byte, error) {
	var of meta.PartialObjectMetadata
	if err := json.Unmarshal(object, &of); err != nil {
		return nil, fmt.Errorf("not an object: %w", err)
	}
	if _, there := of.Annotations[key]; there {
		return nil, nil
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	if of.Annotations == nil {
		return json.Marshal([]operation{{"add", "/metadata/annotations", map[string]string{key: "reviewed"}}})
	}
	return json.Marshal([]operation{{"add", "/metadata/annotations/" + strings.ReplaceAll(key, "/", "~1"), "reviewed"}})
}

// fails waits for the delay, or until the fault or the request ends. It reports whether the webhook must respond with
// an error.
func (w *Webhook) fails(ctx context.Context) bool {
	w.mu.Lock()
	delay := control.Jittered(w.fault.Delay, w.fault.Jitter, w.random)
	w.mu.Unlock()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.cleared:
	case <-ctx.Done(): // the client has disconnected
	}
	select {
	case <-w.cleared:
		return false
	default:
		return w.fault.Fails
	}
}

// probe responds to the reviews of probes, the requests with which Start and Clear detect whether the registration is
// active.
func (w *Webhook) probe(out http.ResponseWriter, r *http.Request) {
	review, ok := decode(out, r)
	if !ok {
		return
	}
	select {
	case w.probed <- struct{}{}:
	default:
	}
	allow(out, review, nil)
}

// decode reads the review in a request. If there is no valid review, decode responds with an error and returns false.
func decode(out http.ResponseWriter, r *http.Request) (*admission.AdmissionReview, bool) {
	var review admission.AdmissionReview
	err := json.NewDecoder(http.MaxBytesReader(out, r.Body, maxReview)).Decode(&review)
	switch {
	case err != nil:
		http.Error(out, fmt.Sprintf("not an AdmissionReview: %v", err), http.StatusBadRequest)
		return nil, false
	case review.Request == nil || review.GroupVersionKind() != admission.SchemeGroupVersion.WithKind("AdmissionReview"):
		http.Error(out, fmt.Sprintf("want an AdmissionReview of %s with a request", admission.SchemeGroupVersion), http.StatusBadRequest)
		return nil, false
	}
	// Read the body to its end. Otherwise the server does not notice during the delay if the client closes the
	// connection.
	_, _ = io.Copy(io.Discard, r.Body)
	return &review, true
}

// allow responds to a review with `allowed: true`. If patch is not nil, the response contains this JSON patch of the
// object.
func allow(out http.ResponseWriter, review *admission.AdmissionReview, patch []byte) {
	answer := admission.AdmissionReview{
		Response: &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true},
	}
	if patch != nil {
		answer.Response.Patch, answer.Response.PatchType = patch, new(admission.PatchTypeJSONPatch)
	}
	answer.SetGroupVersionKind(schema.GroupVersionKind{Group: admission.GroupName, Version: "v1", Kind: "AdmissionReview"})
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(answer) // an error means that the client is gone
}

// servingCertificate creates a certificate for 127.0.0.1, and the CA bundle that verifies the certificate. The CA signs
// nothing else, and the keys stay in memory.
func servingCertificate(now time.Time) (certificate tls.Certificate, bundle []byte, err error) {
	authority, err := pki.NewAuthority("webhook", now)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	cert, key, err := authority.Issue(pki.Leaf{CommonName: "stormglass-webhook", Server: true, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}, now)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	certificate, err = tls.X509KeyPair(cert, key)
	return certificate, authority.PEM(), err
}
