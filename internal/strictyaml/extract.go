package strictyaml

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// Items returns each item of the list at a path as a document. It skips items that are not mappings. Paths in errors of
// these documents begin at the item.
func (d *Document) Items(path string) (all []*Document) {
	list := d.at(path)
	if list == nil || list.Kind != yaml.SequenceNode {
		return nil
	}
	for _, item := range list.Content {
		if item = follow(item); item.Kind == yaml.MappingNode {
			all = append(all, &Document{File: d.File, root: item, begin: item.Line, overrides: d.overrides})
		}
	}
	return all
}

// Extract returns the value at a path as the text of a separate file, without comments, aliases and the fields in
// `drop`. `line` converts a line number of this text to one of d. Use Extract for parsers that accept only text.
func (d *Document) Extract(path string, drop ...string) (text []byte, line func(int) int, err error) {
	root := expand(d.at(path), drop)
	if text, err = yaml.Marshal(root); err != nil {
		return nil, nil, err
	}
	var again yaml.Node
	if err = yaml.Unmarshal(text, &again); err != nil {
		return nil, nil, err
	}
	lines := map[int]int{}
	var pair func(now, before *yaml.Node)
	pair = func(now, before *yaml.Node) {
		if lines[now.Line] == 0 {
			lines[now.Line] = before.Line
		}
		for i := range min(len(now.Content), len(before.Content)) {
			pair(now.Content[i], before.Content[i])
		}
	}
	pair(again.Content[0], root)
	return text, func(n int) int {
		for ; n > 0; n-- {
			if at := lines[n]; at > 0 {
				return at
			}
		}
		return 0
	}, nil
}

// expand copies a node in block style, without comments, aliases and the fields in `drop`.
func expand(n *yaml.Node, drop []string) *yaml.Node {
	n = follow(n)
	c := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Style: n.Style &^ yaml.FlowStyle, Line: n.Line}
	for i, child := range n.Content {
		key := child
		if n.Kind == yaml.MappingNode {
			key = n.Content[i&^1]
		}
		if n.Kind != yaml.MappingNode || !slices.Contains(drop, key.Value) {
			c.Content = append(c.Content, expand(child, drop))
		}
	}
	return c
}
