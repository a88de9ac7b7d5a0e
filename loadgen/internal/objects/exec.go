package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/tools/remotecommand"
)

// mostOutput is how much of a command's output is kept for its error.
const mostOutput = 4 << 10

// exec runs a command in the first container of a pod, as kubectl exec does.
func (a *Objects) exec(ctx context.Context, o one, command []string) error {
	query := url.Values{"command": command, "stdout": {"true"}, "stderr": {"true"}}
	to := a.rest.Post().AbsPath("/api/v1/namespaces/" + url.PathEscape(o.namespace) + "/pods/" + url.PathEscape(o.name) + "/exec").URL()
	to.RawQuery = query.Encode()
	executor, err := remotecommand.NewWebSocketExecutor(a.config, http.MethodGet, to.String())
	if err != nil {
		return err
	}
	output := &head{}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: output, Stderr: output})
	if line := strings.TrimSpace(output.String()); err != nil && line != "" {
		lines := strings.Split(line, "\n")
		return fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	return err
}

// head keeps the beginning of what is written.
type head struct{ bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	if room := mostOutput - h.Len(); room > 0 {
		if _, err := h.Buffer.Write(p[:min(len(p), room)]); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
	return len(p), nil
}
