package certain

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// wrappers are calls that return the string that they are given, by the end of their
// name: String::from("x"), []byte("x").
var wrappers = [...]string{
	"string", "from", "secretstr", "secret", "some", "byte", "bytes", "tostring", "str", "just", "newsecret",
	"b64decode", "decode", "securestring",
	"tochararray", "ptr", "pointer", "unhexlify", "fromhex", "decodestring", "credentialvalue", "passwordvalue",
	"encode", "stringvalue", "literal", "sensitive", "protectedstring",
}

// maskWrapped masks the string that a call at v is given as its only argument where the call
// hands it on.
func (x *Scanner) maskWrapped(v int, k fieldname.Kind) {
	e := v
	for e < len(x.S) && e < v+64 && (char.Class[x.S[e]]&char.Ident != 0 || char.IndexByte(":[]<>&*", x.S[e]) >= 0) {
		e++
	}
	if !x.Has(e, "(") {
		return
	}
	w := x.back(e, v, char.Alnum, "_")
	q := x.literalPrefix(e + 1)
	if q >= len(x.S) || !char.IsQuote(x.S[q]) || !k.IsSecret() {
		return
	}
	end := x.closing(q+1, x.S[q], 0)
	text := x.S[q+1 : end]
	if len(text) == 0 || len(text) > maxJudged || !canHold(text, k, '=') || fieldname.IsNameOfSecret(text) ||
		fieldname.IsPattern(text) {
		return
	}
	known := false
	for _, t := range wrappers {
		known = known || char.HasFoldSuffix(x.S[w:e], t)
	}
	if known && x.Has(end+1, ")") {
		x.mask(q+1, end, rule.Assignment)
	}
}
