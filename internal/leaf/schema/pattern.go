package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// Limits of patterns: bytes of one, and instructions of all together.
const (
	maxPattern      = 10_000
	maxInstructions = 200_000
)

// pattern is a compiled RE2 pattern with its size, by which a match's work is
// known before it is made.
type pattern struct {
	*regexp.Regexp
	size int
}

// patterns compiles the patterns of one schema.
type patterns struct{ left int }

func (p *patterns) compileSource(source string) (*pattern, error) {
	if len(source) > maxPattern {
		return nil, fmt.Errorf("pattern of %d characters is above the limit of %d", len(source), maxPattern)
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if p.left -= len(prog.Inst); p.left < 0 {
		return nil, errors.New("the schema's patterns are too large together")
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, err
	}
	return &pattern{re, len(prog.Inst)}, nil
}

// parsePattern returns why source is not a pattern, as far as that can be seen
// without compiling it.
func parsePattern(source string) error {
	if len(source) > maxPattern {
		return fmt.Errorf("pattern of %d characters is above the limit of %d", len(source), maxPattern)
	}
	_, err := syntax.Parse(source, syntax.Perl)
	return err
}
