package schema

import "strings"

// compile turns text into a graph.
func compile(raw []byte) (*graph, error) {
	tree, err := read(raw)
	if err != nil {
		return nil, err
	}
	if err := checkDialect(tree); err != nil {
		return nil, err
	}
	c := newCompiler()
	c.doc = newDocument(base, tree)
	if err := c.indexDocument(c.doc); err != nil {
		return nil, err
	}
	if err := c.checkPending(); err != nil {
		return nil, err
	}
	return c.buildGraph()
}

// checkDialect allows the three dialects of D7 at the root. Subschemas are
// checked when the graph is built.
func checkDialect(tree any) error {
	m, ok := tree.(map[string]any)
	if !ok {
		return nil
	}
	v, ok := m["$schema"]
	if !ok {
		return nil
	}
	s, _ := v.(string)
	if d, ok := findDialect(s); ok && d.isSupported() && s != "" {
		if address, _, _ := strings.Cut(s, "#"); trimHost(address) == d.standardFile() {
			return nil
		}
	}
	return newDialectFlaw("/$schema")
}

func join(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(escape(t))
	}
	return b.String()
}

func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
