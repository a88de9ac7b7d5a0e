// Package browsertest runs a real browser. Tests of web pages use it.
package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// browserEnv is the environment variable with the path or name of the browser.
const browserEnv = "STORMGLASS_BROWSER"

// Start starts a headless Chromium and returns its chromedp context. The browser ends when the test ends.
func Start(t *testing.T) context.Context {
	t.Helper()
	path, err := find(os.Getenv(browserEnv), exec.LookPath)
	if err != nil {
		t.Fatal(err)
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoFirstRun, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Headless,
	}
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "hide-scrollbars"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(alloc)
	ctx, expire := context.WithTimeout(ctx, 10*time.Minute) // a page can take minutes on a busy machine
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("close the browser: %v", err)
		}
		expire()
		cancel()
		stop() // waits until the process is gone
	})
	return ctx
}

// Must runs an action in the browser and returns its result. An error ends the test.
func Must[T any](t *testing.T, ctx context.Context, action chromedp.Action[T]) T {
	t.Helper()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// find returns the path of the program with the name or path `named`. If `named` is empty, it returns the path of the
// first browser in tools/browsers that lookPath finds.
func find(named string, lookPath func(string) (string, error)) (string, error) {
	if named != "" {
		path, err := lookPath(named)
		if err != nil {
			return "", fmt.Errorf("%s: %w (set it to the path of a Chromium, Chrome or Edge)", browserEnv, err)
		}
		return path, nil
	}
	text, err := readList()
	if err != nil {
		return "", err
	}
	for name := range strings.Lines(string(text)) {
		if path, err := lookPath(strings.TrimSpace(name)); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no browser: the page tests need a Chromium, Chrome or Edge on PATH, or named by " + browserEnv + " (`make browser` installs Chromium by apt-get)")
}

// readList reads the file tools/browsers of the repository. It searches from the test's directory upwards.
func readList() ([]byte, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "tools", "browsers"))
		if err == nil || dir == filepath.Dir(dir) {
			return text, err
		}
		dir = filepath.Dir(dir)
	}
}
