package cleaner

import (
	"crypto/sha256"
	"net/url"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

const (
	// maxRedirects bounds the redirects that are remembered for one caller.
	maxRedirects = 256
	// redirectTime is the time for which a redirect is remembered.
	redirectTime = time.Hour
)

// Redirects remembers the redirects of hosts to one caller, whose URLs may have a signature in their query. It is
// safe for concurrent use; the zero value is empty.
type Redirects struct {
	mu   sync.Mutex
	list map[[32]byte]time.Time // guarded by mu; when each is forgotten
}

// Add remembers the URL of a redirect.
func (r *Redirects) Add(u string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.list == nil {
		r.list = map[[32]byte]time.Time{}
	}
	for key, end := range r.list {
		if now.After(end) {
			delete(r.list, key)
		}
	}
	for key := range r.list {
		if len(r.list) < maxRedirects {
			break
		}
		delete(r.list, key)
	}
	r.list[sha256.Sum256([]byte(u))] = now.Add(redirectTime)
}

// Has reports whether a redirect to a URL is remembered.
func (r *Redirects) Has(u string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	end, ok := r.list[sha256.Sum256([]byte(u))]
	return ok && now.Before(end)
}

// FindSigned returns the URL that a Location field of an answer to a request of base leads to, "" if it has no
// finding, or others than in its query, or the credential that was sent, or a registered secret.
func (c Cleaner) FindSigned(base *url.URL, location string) string {
	to, err := base.Parse(location)
	if err != nil || to.User != nil {
		return ""
	}
	plain := *to
	plain.RawQuery = ""
	if _, found := c.e.URL(to.String()); len(found) == 0 {
		return ""
	}
	if _, found := c.e.URL(plain.String()); len(found) > 0 {
		return ""
	}
	if _, found := c.e.Registered().URL(to.String()); len(found) > 0 {
		return ""
	}
	if c.echo != nil {
		if _, found := c.echo.URL(to.String()); len(found) > 0 {
			return ""
		}
	}
	to.Fragment, to.RawFragment = "", ""
	origin, target, failed := domain.ParseURL(to.String())
	if failed != nil {
		return ""
	}
	return origin.String() + target
}
