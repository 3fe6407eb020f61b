package cleaner

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
)

// minEchoedPassword is the least length of a password, in bytes, that differs from ordinary text.
const minEchoedPassword = 8

// CredentialParts returns what an answer may repeat of a credential, the credential itself first.
// Of `Basic` (RFC 7617, section 2) it returns name and password together, if they have at least
// 4 bytes, and the password alone, as services quote it, if it has at least minEchoedPassword.
func CredentialParts(credential string) []holdfast.Secret {
	all := []holdfast.Secret{holdfast.NewSecret(credential)}
	pair, err := base64.StdEncoding.DecodeString(credential)
	if err != nil || !utf8.Valid(pair) || len(pair) < 4 {
		return all
	}
	all = append(all, holdfast.NewSecret(string(pair)))
	if _, password, ok := strings.Cut(string(pair), ":"); ok && len(password) >= minEchoedPassword {
		all = append(all, holdfast.NewSecret(password))
	}
	return all
}
