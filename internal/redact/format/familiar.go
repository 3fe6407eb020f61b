package format

import (
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
)

// familiar are names in which an engine found nothing, wherever they stood: those
// of the ledger's own records, of an API's messages, of header fields. The first
// name that comes to a place stays there, so that a hostile body cannot have the
// others judged anew. The zero value and nil know none; many goroutines may use it.
type familiar struct {
	slots [512]atomic.Pointer[familiarName]
}

// familiarName is a name and what it says of its value.
type familiarName struct {
	text string
	kind fieldname.Kind
}

const (
	// maxFamiliar is the longest name that is kept, in bytes. In so few nothing
	// is wrapped: no run of base64 is so short.
	maxFamiliar = minRun - 1
	// maxTeaching is the size of a document, in bytes, from which on its names
	// are not kept.
	maxTeaching = 8 << 10
)

// of returns what is known of a name, nil for nothing.
func (f *familiar) of(name []byte) *familiarName {
	if f == nil || len(name) == 0 || len(name) > maxFamiliar {
		return nil
	}
	if have := f.slots[familiarSlot(name)].Load(); have != nil && have.text == string(name) {
		return have
	}
	return nil
}

// keep keeps a name in which nothing was found, where there is room. One in which
// a sign stands could be an escape, or a document, and is judged each time.
func (f *familiar) keep(name []byte, says fieldname.Kind) {
	if f == nil || len(name) == 0 || len(name) > maxFamiliar {
		return
	}
	for _, c := range name {
		if char.Class[c]&char.Alnum == 0 && c != '_' && c != '-' && c != '.' {
			return
		}
	}
	if slot := &f.slots[familiarSlot(name)]; slot.Load() == nil {
		slot.CompareAndSwap(nil, &familiarName{string(name), says})
	}
}

func familiarSlot(name []byte) uint32 {
	n := len(name)
	h := uint32(n) ^ uint32(name[0])<<5 ^ uint32(name[n-1])<<10 ^ uint32(name[n/2])<<15 ^ uint32(name[n/4])<<20 ^ uint32(name[n*3/4])<<24
	return h * 0x9e3779b1 >> 23
}

// familiarNames are an engine's, by what was asked of the names: a record's are
// masked where they cannot be read, a body's refuse it, a header's are read as
// text in three cases.
type familiarNames struct{ recorded, sent, headers familiar }

func (n *nest) familiar() *familiar {
	switch {
	case n.e.names == nil:
		return nil
	case n.peeks:
		return &n.e.names.recorded
	}
	return &n.e.names.sent
}

func (e *Reader) familiarHeaders() *familiar {
	if e.names == nil {
		return nil
	}
	return &e.names.headers
}
