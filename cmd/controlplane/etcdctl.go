package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
)

// statusWithin bounds the question which members are ready.
const statusWithin = 10 * time.Second

// etcdctlEnv points etcdctl at all members, or at one where it is named or the verb
// takes no more.
func etcdctlEnv(ctx context.Context, dir string, w words, stderr io.Writer) ([]string, error) {
	c, err := running(dir)
	if err != nil {
		return nil, err
	}
	client := c.Etcd
	if w.member == "" && (len(client.Endpoints) == 1 || !takesOneMember(w.rest)) {
		return client.Environment(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	status, err := readStatus(ctx, dir)
	if err != nil {
		return nil, err
	}
	member, err := chooseMember(status.Components, w.member)
	if err != nil {
		return nil, err
	}
	if w.member == "" {
		fmt.Fprintf(stderr, "controlplane: asking %s (--member names another)\n", member.Name)
	}
	client.Endpoints = []string{member.Address}
	return client.Environment(), nil
}

// chooseMember is the etcd member of that name, or with "" one that is ready; of those
// one that tells its role, as one that hangs does not.
func chooseMember(components []control.ComponentStatus, name string) (chosen control.ComponentStatus, err error) {
	var names []string
	for _, c := range components {
		if c.Kind != control.KindEtcd {
			continue
		}
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
		if c.Ready && (chosen.Name == "" || chosen.Role == "" && c.Role != "") {
			chosen = c
		}
	}
	switch {
	case name != "":
		err = fmt.Errorf("--member %s: there is no such member (there are %s)", name, strings.Join(names, ", "))
	case chosen.Name == "":
		err = exitcode.EnvironmentError(fmt.Errorf("no etcd member is ready (of %s)", strings.Join(names, ", ")))
	}
	return chosen, err
}

// takesOneMember reports whether etcdctl refuses these words with several endpoints.
func takesOneMember(words []string) bool {
	verb := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return strings.HasPrefix(word, "-") })
	at := slices.Index(verb, "snapshot")
	return at >= 0 && at+1 < len(verb) && strings.HasPrefix("save", verb[at+1]) && !slices.ContainsFunc(words, func(word string) bool {
		return word == "--endpoints" || strings.HasPrefix(word, "--endpoints=")
	})
}
