package guard

import (
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
)

// MaxKeyFile bounds a file with a key or a secret, in bytes.
const MaxKeyFile = 4096

// MakeAbsolute returns path as an absolute one; from names its origin in the error.
func MakeAbsolute(from, path string) (string, error) {
	if strings.ContainsRune(path, 0) {
		return "", usage.Errorf("%s holds a NUL", from)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", usage.Errorf("%s: %v", from, err)
	}
	return abs, nil
}
