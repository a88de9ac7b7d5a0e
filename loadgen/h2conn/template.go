package h2conn

// Template is a request's method and headers, encoded once for very many
// requests that differ in path and body only. It is never changed once made.
type Template struct {
	request Request
}

// NewTemplate makes a template; Path and Body of r are not used.
func NewTemplate(r Request) *Template { return &Template{r} }
