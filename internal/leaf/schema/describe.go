package schema

import (
	"fmt"
	"strings"
)

// Describe returns one text of violations. It holds no values of the document.
func Describe(vs []Violation) string {
	var b strings.Builder
	for i, v := range vs {
		if i == 5 {
			fmt.Fprintf(&b, " (and %d more)", len(vs)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		at := v.Pointer
		if at == "" {
			at = "the root"
		}
		b.WriteString(at + ": " + v.Message)
	}
	return b.String()
}
