package httplimit

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAnswersAreBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Writer(w)
		if r.URL.Path == "/compressed" {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			body = z
		}
		n := 1000
		if r.URL.Path == "/small" {
			n = 100
		}
		_, _ = io.WriteString(body, strings.Repeat("x", n))
	}))
	defer server.Close()
	client := &http.Client{Transport: bounding{server.Client().Transport, 100}}
	for path, large := range map[string]bool{
		"/small": false, "/large": true, "/compressed": true, "/large?watch=true": false, "/large?follow=true": false,
	} {
		answer, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(answer.Body)
		if refused := err != nil && strings.Contains(err.Error(), "larger than 100 bytes"); refused != large || !large && err != nil {
			t.Errorf("%s: %v", path, err)
		}
		answer.Body.Close()
	}
}
