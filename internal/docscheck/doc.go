// Package docscheck holds tests of the Markdown pages of the repository. They check links, anchors, paths, make
// targets, and the commands that need no control plane.
package docscheck
