package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the ID of the user that runs the programs. In the image, this user owns only its home directory.
const user = 65532

// home is the working directory of the programs. Run directories are below it.
const home = "/home/stormglass"

// programsOf returns the programs of an image, the entrypoint first, or nil for an unknown image.
func programsOf(image string) []string {
	return map[string][]string{"loadgen": {"loadgen"}, "controlplane": {"controlplane", "loadgen"}}[image]
}

func imageNames() []string { return []string{"loadgen", "controlplane"} }

// release is the input for building the images.
type release struct {
	programs   string // directory that has a folder with programs for each platform
	repository string
	version    string
	created    time.Time
	platforms  []v1.Platform
}

func (r release) tag(image string) string { return r.repository + "/" + image + ":" + r.version }

// index returns an index with the image for each platform.
func (r release) index(image string) (v1.ImageIndex, error) {
	names := programsOf(image)
	if names == nil {
		return nil, fmt.Errorf("unknown image (%s)", strings.Join(imageNames(), ", "))
	}
	base, err := r.baseLayer()
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range r.platforms {
		made, err := r.image(names, base, p)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: made, Descriptor: v1.Descriptor{Platform: &p}})
	}
	return index, nil
}

// image returns the image for one platform: a base layer, and one layer for each program.
func (r release) image(programs []string, base v1.Layer, p v1.Platform) (v1.Image, error) {
	layers := []v1.Layer{base}
	for _, name := range slices.Backward(programs) { // the program that changes least often comes first
		data, err := os.ReadFile(filepath.Join(r.programs, p.OS+"_"+p.Architecture, name))
		if err != nil {
			return nil, err
		}
		layer, err := r.layer(entry{name: name, mode: 0o755, data: data})
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	var history []mutate.Addendum
	for _, l := range layers {
		history = append(history, mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "stormglass images"}})
	}
	image, err := mutate.Append(image, history...)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = p.OS, p.Architecture, p.Variant
	config.Created = v1.Time{Time: r.created}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", user, user),
		Entrypoint: []string{"/" + programs[0]},
		WorkingDir: home,
		Env:        []string{"PATH=/", "HOME=" + home},
		Labels: map[string]string{
			"org.opencontainers.image.title":    programs[0],
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.source":   "https://github.com/stormglass/stormglass",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

// baseLayer returns the layer with the system files that a program expects: the list of users, writable directories,
// and certificate authorities.
func (r release) baseLayer() (v1.Layer, error) {
	roots, err := authorities()
	if err != nil {
		return nil, err
	}
	return r.layer(
		entry{name: "etc/", mode: 0o755},
		entry{name: "etc/group", mode: 0o644, data: fmt.Appendf(nil, "root:x:0:\nstormglass:x:%d:\n", user)},
		entry{name: "etc/passwd", mode: 0o644, data: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nstormglass:x:%d:%d:stormglass:%s:/sbin/nologin\n", user, user, home)},
		entry{name: "etc/ssl/", mode: 0o755}, entry{name: "etc/ssl/certs/", mode: 0o755},
		entry{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: roots},
		entry{name: "home/", mode: 0o755}, entry{name: strings.TrimPrefix(home, "/") + "/", mode: 0o700, owner: user},
		entry{name: "tmp/", mode: 0o1777},
	)
}
