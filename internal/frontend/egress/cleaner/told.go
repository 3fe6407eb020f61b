package cleaner

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
)

// LeastTold is how many bytes a password must have to be
// told from ordinary text.
const LeastTold = 8

// Told is what an answer may tell of a credential, the credential itself first:
// of the name and password that are behind `Basic` (RFC 7617, section 2) both
// together, of at least 4 bytes, and the password alone, as services quote it, of
// at least LeastTold.
func Told(credential string) []holdfast.Secret {
	all := []holdfast.Secret{holdfast.NewSecret(credential)}
	pair, err := base64.StdEncoding.DecodeString(credential)
	if err != nil || !utf8.Valid(pair) || len(pair) < 4 {
		return all
	}
	all = append(all, holdfast.NewSecret(string(pair)))
	if _, password, ok := strings.Cut(string(pair), ":"); ok && len(password) >= LeastTold {
		all = append(all, holdfast.NewSecret(password))
	}
	return all
}
