package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	conversion "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	audit "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/stormglass/stormglass/controlplane/control"
)

// ReviewPath is the URL path at which webhooks receive reviews.
const ReviewPath = "/review"

// maxReview is the maximum size of a request in bytes. API servers send audit events in batches of at most 10 MiB.
const maxReview = 16 << 20

// serveTokens serves a webhook that accepts exactly one token, the token of the load.
func serveTokens(s *server) (func(context.Context) error, error) {
	text, err := os.ReadFile(s.flags.token)
	if err != nil {
		return nil, err
	}
	token := strings.TrimSpace(string(text))
	review(s, func(r *authentication.TokenReview) any {
		r.Status = authentication.TokenReviewStatus{Authenticated: r.Spec.Token == token && token != ""}
		if r.Status.Authenticated {
			r.Status.User = authentication.UserInfo{Username: control.LoadUser, Groups: []string{control.LoadGroup}}
		}
		return r
	})
	return nil, nil
}

// serveAuthorization serves a webhook that responds to each request with no opinion, so that RBAC decides.
func serveAuthorization(s *server) (func(context.Context) error, error) {
	review(s, func(r *authorization.SubjectAccessReview) any {
		r.Status = authorization.SubjectAccessReviewStatus{Reason: "stormglass: no opinion"}
		return r
	})
	return nil, nil
}

// serveAudit serves a webhook that accepts audit events and discards them.
func serveAudit(s *server) (func(context.Context) error, error) {
	review(s, func(*audit.EventList) any { return struct{}{} })
	return nil, nil
}

// review registers a webhook for reviews of type T. `answer` returns the response to a review.
func review[T any](s *server, answer func(*T) any) {
	answerJSON(s, ReviewPath, "review", answer)
}

// serveConversion serves a webhook that sets the requested version on custom resources and does not change anything
// else. API servers call the webhook without a certificate.
func serveConversion(s *server) (func(context.Context) error, error) {
	const operation = "convert"
	s.mux.Handle("POST "+control.ConversionPath, s.open(operation, asJSON(func(r *conversion.ConversionReview) any {
		if r.Request == nil {
			return r
		}
		converted := make([]runtime.RawExtension, len(r.Request.Objects))
		for i, o := range r.Request.Objects {
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(o.Raw); err != nil {
				return convertedTo(r, nil, metav1.Status{Status: metav1.StatusFailure, Message: err.Error()})
			}
			object.SetAPIVersion(r.Request.DesiredAPIVersion)
			converted[i].Object = object
		}
		return convertedTo(r, converted, metav1.Status{Status: metav1.StatusSuccess})
	})))
	return nil, nil
}

func convertedTo(r *conversion.ConversionReview, objects []runtime.RawExtension, status metav1.Status) *conversion.ConversionReview {
	return &conversion.ConversionReview{
		TypeMeta: r.TypeMeta, Response: &conversion.ConversionResponse{UID: r.Request.UID, ConvertedObjects: objects, Result: status},
	}
}

// answerJSON registers a JSON operation at a path, for clients with a certificate of the plane.
func answerJSON[T any](s *server, path, operation string, answer func(*T) any) {
	s.answers("POST "+path, operation, asJSON(answer))
}

// asJSON returns a handler that decodes a T from JSON, calls `answer`, and encodes the result as JSON.
func asJSON[T any](answer func(*T) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked := new(T)
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReview)).Decode(asked); err != nil {
			http.Error(w, fmt.Sprintf("not a %T: %v", asked, err), http.StatusBadRequest)
			return
		}
		writeJSON(w, answer(asked))
	}
}
