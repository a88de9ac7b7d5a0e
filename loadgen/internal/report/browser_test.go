package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// browserEnv names the browser of the page tests.
const browserEnv = "STORMGLASS_BROWSER"

// findBrowser is the browser that is named, or the first of tools/browsers that there is.
func findBrowser(named string, lookPath func(string) (string, error)) (string, error) {
	if named != "" {
		path, err := lookPath(named)
		if err != nil {
			return "", fmt.Errorf("%s: %w (name a Chromium, Chrome or Edge)", browserEnv, err)
		}
		return path, nil
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "tools", "browsers"))
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

func TestAnyChromiumIsFound(t *testing.T) {
	only := func(there ...string) func(string) (string, error) {
		return func(name string) (string, error) {
			if slices.Contains(there, name) {
				return "/bin/" + name, nil
			}
			return "", fmt.Errorf("%s: not found", name)
		}
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "brave-browser", "chrome-headless-shell"} {
		if path, err := findBrowser("", only(name)); err != nil || path != "/bin/"+name {
			t.Errorf("%s: %q, %v", name, path, err)
		}
	}
	if path, err := findBrowser("mine", only("mine", "chromium")); err != nil || path != "/bin/mine" {
		t.Errorf("named: %q, %v", path, err)
	}
	if _, err := findBrowser("mine", only("chromium")); err == nil || !strings.HasPrefix(err.Error(), browserEnv+": mine: not found") {
		t.Errorf("named and not there: %v", err)
	}
	if _, err := findBrowser("", only()); err == nil || !strings.HasPrefix(err.Error(), "no browser: ") {
		t.Errorf("none: %v", err)
	}
}
