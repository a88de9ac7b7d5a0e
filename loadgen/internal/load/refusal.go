package load

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Message returns the API server's message in an unsuccessful response, or the text of the HTTP status if there is no
// message.
func Message(status int, body []byte) string {
	var s struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &s) == nil && s.Message != "" {
		return s.Message
	}
	return http.StatusText(status)
}

// Refusal returns the error for an unsuccessful response to a request with the given verb. For some statuses the error
// contains a hint.
func Refusal(verb string, status int, body []byte) error {
	hint := map[int]string{
		http.StatusUnauthorized:          "the credentials are not valid for this API server",
		http.StatusForbidden:             "the user needs the RBAC permission to " + verb + " this; check with `kubectl auth can-i`",
		http.StatusNotFound:              "does the namespace exist?",
		http.StatusNotAcceptable:         "set encoding: json, because custom resources have no protobuf encoding, and CBOR requires the feature gate CBORServingAndStorage",
		http.StatusUnprocessableEntity:   "this API server does not accept the object",
		http.StatusRequestEntityTooLarge: "use a smaller size",
		http.StatusTooManyRequests:       "priority and fairness rejects the request; lower the rate or wait",
	}[status]
	if hint != "" {
		hint = " (" + hint + ")"
	}
	return fmt.Errorf("%d: %s%s", status, Message(status, body), hint)
}
