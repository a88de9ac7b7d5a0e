package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"syscall"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/controlplane"
	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/internal/userfile"
)

type settings struct {
	config control.Config
	from   *strictyaml.Document // the --config file; nil if config comes from the last start or is the default
}

// readSettings reads --config, or the config of the last start in the plane's directory.
func readSettings(ctx context.Context, o upOptions, stdin io.Reader, progress io.Writer) (s settings, err error) {
	if o.config == "" {
		if s.config, err = lastConfig(o.dir, progress); err != nil {
			return s, exitcode.EnvironmentError(err)
		}
		return s, s.refusal(s.config.Problems())
	}
	var data []byte
	name := o.config
	if name == "-" {
		name = "stdin"
		data, err = userfile.Stdin(ctx, stdin, userfile.Text)
	} else {
		data, err = userfile.Read(name, userfile.Text)
	}
	if err != nil {
		return s, fmt.Errorf("--config %s: %w (pass a YAML file with the control plane's settings, or - for standard input)", o.config, err)
	}
	if blank(data) { // no settings: use upstream's defaults
		return s, nil
	}
	if s.from, err = strictyaml.Parse(name, data); err != nil {
		return s, err
	}
	if err := s.from.Decode(&s.config); err != nil {
		return s, err
	}
	return s, s.refusal(s.config.Problems())
}

// blank reports whether a YAML file is empty or contains only comments.
func blank(data []byte) bool {
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return false
	}
	return node.IsZero() || len(node.Content) == 1 && node.Content[0].Tag == "!!null"
}

// check validates each component's section of the config by running the component's own check, and prints the config's
// warnings.
func (s settings) check(ctx context.Context, executable string, progress io.Writer) (controlplane.Defaults, error) {
	defaults, problems, err := controlplane.Check(ctx, executable, s.config)
	if ctx.Err() != nil {
		err = fmt.Errorf("interrupted while starting: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, exitcode.EnvironmentError(err)
	}
	for _, w := range s.config.Warnings() {
		fmt.Fprintf(progress, "warning: %s\n", terminal.Clean(s.at(w).Error()))
	}
	return defaults, s.refusal(problems)
}

// at converts a problem to an error, with the position in the config file if the position is known.
func (s settings) at(p control.Problem) error {
	if s.from == nil {
		return fmt.Errorf("%s: %s (%s)", p.Path, p.Msg, p.Hint)
	}
	return s.from.Errorf(p.Path, p.Hint, "%s", p.Msg)
}

func (s settings) refusal(problems []control.Problem) error {
	var errs []error
	for _, p := range problems {
		errs = append(errs, s.at(p))
	}
	if s.from == nil {
		return exitcode.EnvironmentError(errors.Join(errs...))
	}
	return errors.Join(errs...)
}

// lastConfig returns the config of the stopped plane in dir, or the default config if dir holds no plane.
func lastConfig(dir string, progress io.Writer) (config control.Config, err error) {
	file := controlplane.ConfigFile(dir)
	data, err := userfile.Read(file, userfile.Text)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG) {
		return config, nil // Start reports an unusable directory when it opens it
	}
	if err != nil {
		return config, fmt.Errorf("%s: %w", file, err)
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return config, fmt.Errorf("%s: %w (pass the settings with --config)", file, err)
	}
	if !reflect.DeepEqual(config, control.Config{}) {
		fmt.Fprintf(progress, "using the settings from the last start: %s\n", file)
	}
	return config, nil
}
