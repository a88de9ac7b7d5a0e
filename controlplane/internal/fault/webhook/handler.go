package webhook

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"

	admission "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	reviewPath = "/review"
	probePath  = "/probe"
	// maxReview bounds a review: etcd takes objects of up to 1.5 MiB, and a review holds one.
	maxReview = 8 << 20
)

func serverOf(handler http.Handler, certificate tls.Certificate) *http.Server {
	return &http.Server{
		Handler:           handler,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
		// A client that breaks off its handshake is nothing to tell a person.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

func (w *Webhook) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+reviewPath, w.review)
	mux.HandleFunc("POST "+probePath, w.probe)
	return mux
}

func (w *Webhook) review(out http.ResponseWriter, r *http.Request) {
	review, ok := decode(out, r)
	if !ok {
		return
	}
	outcome := w.wait(r.Context())
	w.count(outcome)
	switch outcome {
	case failed:
		http.Error(out, "stormglass: this webhook fails, as it was asked to", http.StatusInternalServerError)
	case allowed:
		allow(out, review)
	case abandoned: // no answer is read
	}
}

type outcome int

const (
	allowed outcome = iota
	failed
	abandoned
)

// wait waits out the delay and says how to answer.
func (w *Webhook) wait(ctx context.Context) outcome {
	w.mu.Lock()
	w.stats.Reviews++
	w.stats.Waiting++
	delay := w.options.Delay
	if j := int64(w.options.Jitter); j > 0 {
		delay += time.Duration(w.random.Int64N(2*j+1) - j)
	}
	w.mu.Unlock()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-w.cleared:
		return allowed
	default:
	}
	select {
	case <-timer.C:
		if w.options.Fails {
			return failed
		}
		return allowed
	case <-w.cleared:
		return allowed
	case <-ctx.Done():
		return abandoned
	}
}

func (w *Webhook) count(o outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Waiting--
	switch o {
	case failed:
		w.stats.Failed++
	case abandoned:
		w.stats.Abandoned++
	}
}

// probe answers what Start and Clear look for.
func (w *Webhook) probe(out http.ResponseWriter, r *http.Request) {
	review, ok := decode(out, r)
	if !ok {
		return
	}
	select {
	case w.probed <- struct{}{}:
	default:
	}
	allow(out, review)
}

// decode reads a review, or answers that it is none.
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
	// The body's end, so that the connection's end is noticed while we wait.
	_, _ = io.Copy(io.Discard, r.Body)
	return &review, true
}

func allow(out http.ResponseWriter, review *admission.AdmissionReview) {
	answer := admission.AdmissionReview{
		Response: &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true},
	}
	answer.SetGroupVersionKind(schema.GroupVersionKind{Group: admission.GroupName, Version: "v1", Kind: "AdmissionReview"})
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(answer) // an error means that the client is gone
}

// selfSigned makes a serving certificate for 127.0.0.1 that is its own
// authority, and the bundle for its clients. The key stays in memory.
func selfSigned(now time.Time) (certificate tls.Certificate, bundle []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "stormglass-webhook"},
		NotBefore:    now.Add(-5 * time.Minute), // tolerates a clock that is set back a little
		NotAfter:     now.Add(365 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:         true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	bundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, bundle, nil
}
