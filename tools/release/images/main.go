// Images writes container images of the programs as OCI archives, which podman, ctr and crane read. The images have no
// base image:
//
//	images -programs DIR -out OUT [-repository NAME] [-version V] [-created TIME] [-platforms LIST] [IMAGE...]
//
// DIR has a directory for each platform, such as linux_amd64, with the programs for that platform. IMAGE is loadgen (an
// image with the program loadgen) or controlplane (an image with both programs); without IMAGE, the command writes both
// images. The archive OUT/IMAGE.tar contains the image for each platform. The same programs, version and time give the
// same archive.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.SetOutput(stderr)
	programs := flags.String("programs", "", "`directory` with a folder of programs for each platform")
	out := flags.String("out", "", "`directory` for the archives")
	repository := flags.String("repository", "localhost/stormglass", "`prefix` of the images' names")
	version := flags.String("version", "devel", "tag of the images")
	created := flags.String("created", "1970-01-01T00:00:00Z", "`time` of the images and their files, in RFC 3339")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "`list` of platforms")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	at, err := time.Parse(time.RFC3339, *created)
	switch {
	case err != nil:
		err = fmt.Errorf("-created %q is not a time (write it as 2026-11-25T23:36:00Z)", *created)
	case *programs == "" || *out == "":
		err = fmt.Errorf("-programs and -out are required")
	}
	if err != nil {
		fmt.Fprintln(stderr, "images:", err)
		return 2
	}
	r := release{programs: *programs, repository: *repository, version: *version, created: at.UTC()}
	for p := range strings.SplitSeq(*platforms, ",") {
		platform, err := v1.ParsePlatform(p)
		if err != nil || platform.OS != "linux" || platform.Architecture == "" {
			fmt.Fprintf(stderr, "images: -platforms: %q is not a platform of the images (write it as linux/amd64)\n", p)
			return 2
		}
		r.platforms = append(r.platforms, *platform)
	}
	names := flags.Args()
	if len(names) == 0 {
		names = imageNames()
	}
	for _, name := range names {
		file := filepath.Join(*out, name+".tar")
		digest, err := r.write(name, file)
		if err != nil {
			fmt.Fprintf(stderr, "images: %s: %v\n", name, err)
			return 1
		}
		fmt.Fprintf(stdout, "%s %s@%s\n", file, r.tag(name), digest)
	}
	return 0
}
