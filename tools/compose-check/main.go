// compose-check reads a compose file as docker compose does, by the library
// that it is made of and against the schema of the Compose Specification, and
// prints it resolved, as JSON:
//
//	compose-check compose.yaml
//
// Variables are the environment's; relative paths are the file's folder's. It
// ends with 1 where the file is not accepted. (The library has a command of its
// own for this; that one does not read the environment.)
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
