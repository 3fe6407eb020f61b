package fieldname

// Verbs are between a name and its value in a sentence, in the languages whose words are known, and what is
// written in their place.
var Verbs = [...]string{"is", "was", "ist", "lautet", "es", "est", "é", "jest", "är", "er", "to", "to be", "<-",
	"->", "—", "–"}

// IsVerb reports whether w, which is not empty, is a word of Verbs that can be nothing else.
func IsVerb(w []byte) bool {
	if c := w[0] | 0x20; c != 'i' && c != 'e' && c != 'w' && c != 'l' && c != 'j' && c < 0x80 {
		return false
	}
	switch string(w) {
	case "is", "Is", "IS", "was", "ist", "lautet", "es", "est", "jest", "är", "er":
		return true
	}
	return false
}
