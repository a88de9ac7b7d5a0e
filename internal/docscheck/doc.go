// Package docscheck tests the Markdown pages of the repository: links, anchors,
// paths, make targets, and the commands that need no control plane.
package docscheck
