package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
)

// previewLimit is the most that a reviewer sees of the redacted payload, in bytes.
const previewLimit = 4096

// Preview is what a reviewer sees of a text.
type Preview struct {
	Text string
	// Cut says that there is more of it, Masked that something in it was masked.
	Cut, Masked bool
}

// Preview returns a payload as the reviewer sees it: redacted, and in its canonical form, so
// that no white space and no order of members that the agent chose decides what is seen.
func (w *Writer) Preview(canonical []byte) (Preview, error) {
	res, err := w.texts.JSON(canonical)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{Masked: res.Found() || !bytes.Equal(res.Out, canonical)}
	var b strings.Builder
	shown, total := 0, 0
	for _, r := range string(res.Out) {
		s := escapeHidden(r)
		total += len(s)
		if p.Cut = p.Cut || total > previewLimit; !p.Cut {
			b.WriteString(s)
			shown = total
		}
	}
	if p.Cut {
		fmt.Fprintf(&b, "... (%d of %d bytes shown)", shown, total)
	}
	p.Text = b.String()
	return p, nil
}

// besideWord is on a line of its own between a payload and what is next to it. A preview
// breaks its lines nowhere else.
const besideWord = "\nbeside the payload: "

// Join returns what the reviewer sees of a payload and of what is next to it.
func (p Preview) Join(more Preview) Preview {
	return Preview{Text: p.Text + besideWord + more.Text, Cut: p.Cut || more.Cut, Masked: p.Masked || more.Masked}
}

// Hash returns the SHA-256 of the text in hexadecimal.
func (p *Preview) Hash() string {
	sum := sha256.Sum256([]byte(p.Text))
	return hex.EncodeToString(sum[:])
}

// escapeHidden spells a character as JSON escapes unless it shows as itself: a hidden one,
// or one that moves what is next to it, would make one text look like another.
func escapeHidden(r rune) string {
	if visible.IsVisible(r) {
		return string(r)
	}
	if hi, lo := utf16.EncodeRune(r); hi != unicode.ReplacementChar {
		return fmt.Sprintf(`\u%04x\u%04x`, hi, lo)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
