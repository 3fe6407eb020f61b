package domain

// PathPattern is a path that may be asked for, compared component by component
// after decoding (D46). The zero value matches nothing.
type PathPattern struct {
	text  string
	parts []string
	rest  bool // it ended in "**"
}

// ParsePath reads a pattern: "/" and components, of which "*" stands for
// exactly one that is not empty and "**", last only, for any number of them.
// Components are written decoded.
func ParsePath(s string) (PathPattern, error) {
	return PathPattern{}, malformed("no path is understood yet", "")
}

// String is the pattern as it was written.
func (p PathPattern) String() string { return p.text }
