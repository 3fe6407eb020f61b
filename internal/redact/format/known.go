package format

import "github.com/holdfast-dev/holdfast/internal/redact/fieldname"

// knownName is a name of a member in which nothing was found, and what it says
// of its value. Documents have few names, many times each.
type knownName struct {
	text [27]byte
	size uint8
	kind fieldname.Kind
}

// minKnown is the size of a document, in bytes, from which on names are kept.
const minKnown = 2048

// knownName returns the place of a name, nil for one that is not kept.
func (n *nest) knownName(s []byte) *knownName {
	if n.known == nil || len(s) == 0 || len(s) > len(knownName{}.text) {
		return nil
	}
	return &n.known[(len(s)*5+int(s[0])*3+int(s[len(s)-1]))%len(n.known)]
}

func (k *knownName) is(s []byte) bool { return string(k.text[:k.size]) == string(s) }

func (k *knownName) keep(s []byte, says fieldname.Kind) {
	k.size, k.kind = uint8(copy(k.text[:], s)), says
}
