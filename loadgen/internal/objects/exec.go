package objects

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"k8s.io/client-go/tools/remotecommand"
)

// maxOutput is the number of bytes, at the end of a command's output, that tail keeps for the error message.
const maxOutput = 4 << 10

func (a *Objects) exec(ctx context.Context, o one, command []string) error {
	query := url.Values{"command": command, "stdout": {"true"}, "stderr": {"true"}}
	to := a.rest.Post().AbsPath("/api/v1/namespaces/" + url.PathEscape(o.namespace) + "/pods/" + url.PathEscape(o.name) + "/exec").URL()
	to.RawQuery = query.Encode()
	executor, err := remotecommand.NewWebSocketExecutor(a.config, http.MethodGet, to.String())
	if err != nil {
		return err
	}
	output := &tail{}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: output, Stderr: output})
	if last := output.lastLine(); err != nil && last != "" {
		return fmt.Errorf("%w: %s", err, last)
	}
	return err
}

// tail is a writer that keeps the end of the output. Stdout and stderr of a command may write to it concurrently.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-maxOutput):]
	return len(p), nil
}

func (t *tail) lastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return lines[len(lines)-1]
}
