package domain

import "github.com/holdfast-dev/holdfast"

// Parts is what happens to pictures, documents and sound in requests to models (D13a).
type Parts string

const (
	// RefuseParts refuses them, unless they are text in which nothing is found.
	RefuseParts Parts = "refuse"
	// AllowParts sends them; a secret in the text of a document refuses the request.
	AllowParts Parts = "allow"
	// UnsearchedParts sends them without a search; a weakening.
	UnsearchedParts Parts = "unsearched"
)

// checkParts fills in what happens to parts of requests to models.
func checkParts(d *Domain, n rowName) *holdfast.Error {
	hasTexts := d.Type == LLM && d.Request == Placeholder
	switch {
	case d.Parts == UnsearchedParts && !hasTexts:
		return wrong("sends documents to models unsearched, and searches none",
			"write `binary: allow`, or a row of type llm whose requests have placeholders")
	case d.Parts != "":
	case d.Binary || hasTexts && n.forModels():
		d.Parts = AllowParts
	default:
		d.Parts = RefuseParts
	}
	return nil
}
