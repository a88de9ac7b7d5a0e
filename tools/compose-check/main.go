// Compose-check resolves a compose file and prints it as JSON. It uses the library of docker compose, which validates
// the file against the schema of the Compose Specification:
//
//	compose-check compose.yaml
//
// It reads variables from the environment, and resolves relative paths from the file's directory. The exit code is 1 if
// the file is not valid.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(stderr, "usage: compose-check FILE")
		return 2
	}
	text, err := resolve(ctx, args[0])
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	fmt.Fprintf(stdout, "%s\n", text)
	return 0
}

func resolve(ctx context.Context, file string) ([]byte, error) {
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	options, err := cli.NewProjectOptions([]string{file}, cli.WithWorkingDirectory(dir), cli.WithOsEnv)
	if err != nil {
		return nil, err
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return nil, err
	}
	return project.MarshalJSON()
}
