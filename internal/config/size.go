package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
)

// Size is a number of bytes: "512KB", "10 MiB", "1GB", or the bare number of at
// least 1024. A KB is 1024 bytes, as a KiB is.
type Size int64

const (
	// maxSize is the most that any size may be.
	maxSize = 1 << 50
	// leastBare is the least that is taken for bytes where nothing says so: who
	// writes 10 means MB.
	leastBare = 1 << 10
)

// sizeUnits are the units of sizes, those that end in another before it.
func sizeUnits() []sizeUnit {
	return []sizeUnit{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}, {"B", 1}}
}

type sizeUnit struct {
	name string
	of   int64
}

// UnmarshalText reads a size above zero.
func (s *Size) UnmarshalText(b []byte) error {
	text, unit, bare := string(b), int64(1), true
	for _, u := range sizeUnits() {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			text, unit, bare = strings.TrimSuffix(rest, " "), u.of, false
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || n <= 0 || n > maxSize/unit || strconv.FormatInt(n, 10) != text:
		return fmt.Errorf("%q is not a size such as 512KB, 10MB or 1GB", excerpt.Word(string(b)))
	case bare && n < leastBare:
		return usage.HintErrorf(
			fmt.Sprintf("write the unit: %dKB, %dMB, or %dB where bytes are meant", n, n, n),
			"%d has no unit, and would be %s", n, story.Count(n, "byte", "bytes"),
		)
	}
	*s = Size(n * unit)
	return nil
}

// MarshalText writes the number of bytes, as UnmarshalText reads it.
func (s Size) MarshalText() ([]byte, error) {
	text := strconv.FormatInt(int64(s), 10)
	if s < leastBare {
		text += "B"
	}
	return []byte(text), nil
}
