package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/stormglass/stormglass/controlplane"
	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/topology"
	"github.com/stormglass/stormglass/internal/strictyaml"
)

// loadConfig reads the config and has each component check its own part.
// Every error names file, line and field.
func loadConfig(ctx context.Context, o upOptions, executable string, stdin io.Reader, progress io.Writer) (control.Config, topology.Defaults, error) {
	var config control.Config
	if o.config == "" {
		config, err := lastConfig(o.dir, progress)
		if err != nil {
			return config, nil, environment(err)
		}
		defaults, problems, err := controlplane.Check(ctx, executable, config)
		if err == nil && len(problems) > 0 {
			err = fmt.Errorf("%s: %s (%s)", problems[0].Path, problems[0].Msg, problems[0].Hint)
		}
		return config, defaults, environment(err)
	}
	var data []byte
	var err error
	name := o.config
	if name == "-" {
		name = "stdin"
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return config, nil, fmt.Errorf("--config: %w", err)
	}
	if len(bytes.TrimSpace(data)) == 0 { // nothing set: upstream's defaults
		return config, nil, nil
	}
	doc, err := strictyaml.Parse(name, data)
	if err != nil {
		return config, nil, err
	}
	if err := doc.Decode(&config); err != nil {
		return config, nil, err
	}
	problems := config.Problems()
	var defaults topology.Defaults
	if len(problems) == 0 {
		if defaults, problems, err = controlplane.Check(ctx, executable, config); err != nil {
			return config, nil, environment(err)
		}
		for _, w := range config.Warnings() {
			fmt.Fprintf(progress, "warning: %v\n", doc.Errorf(w.Path, w.Hint, "%s", w.Msg))
		}
	}
	var errs []error
	for _, p := range problems {
		errs = append(errs, doc.Errorf(p.Path, p.Hint, "%s", p.Msg))
	}
	return config, defaults, errors.Join(errs...)
}

// lastConfig is the config of the plane that stopped in dir, or the default.
func lastConfig(dir string, progress io.Writer) (config control.Config, err error) {
	file := topology.Layout{Dir: dir}.Config()
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return config, nil
	}
	if err != nil {
		return config, err
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return config, fmt.Errorf("%s: %w (give the settings with --config)", file, err)
	}
	if !reflect.DeepEqual(config, control.Config{}) {
		fmt.Fprintf(progress, "with the settings of the last start, %s\n", file)
	}
	return config, nil
}
