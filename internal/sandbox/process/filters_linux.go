package process

import (
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/language"
)

// maxFilters bounds what is kept: callers choose what they narrow by.
const maxFilters = 64

// filters keeps compiled filters, by language and by what is taken out of it.
// Its zero value keeps none yet. A filter is never changed.
type filters struct {
	mu   sync.Mutex
	made map[string][]unix.SockFilter
}

// filter is the language's, less the calls of narrow (D18).
func (f *filters) filter(l language.Language, narrow []string) ([]unix.SockFilter, error) {
	less := slices.Compact(slices.Sorted(slices.Values(narrow)))
	key := strings.Join(append([]string{l.Exact}, less...), "\x00")
	f.mu.Lock()
	code := f.made[key]
	f.mu.Unlock()
	if code != nil {
		return code, nil
	}
	p, err := l.Allows.Without(less)
	if err != nil {
		return nil, err
	}
	if code, err = p.Compile(); err != nil {
		return nil, failed(holdfast.KindSeccomp, "compile its filter", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.made == nil || len(f.made) >= maxFilters {
		f.made = map[string][]unix.SockFilter{} // rather all anew than a book about use
	}
	f.made[key] = code
	return code, nil
}
