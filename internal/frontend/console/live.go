package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

//go:embed templates/*.html
var templates embed.FS

//go:embed static
var static embed.FS

// assets are the files that pages name, by their own names: the path has the
// hash of the content in it, so that a browser may keep it for ever.
type assets struct {
	Style, Script, Icon string
	files               map[string]file
}

type file struct {
	kind string
	body []byte
}

func loadAssets() (assets, error) {
	a := assets{files: map[string]file{}}
	for _, f := range []struct {
		name, kind string
		at         *string
	}{
		{"style.css", "text/css; charset=utf-8", &a.Style},
		{"live.js", "text/javascript; charset=utf-8", &a.Script},
		{"icon.svg", "image/svg+xml", &a.Icon},
	} {
		body, err := static.ReadFile("static/" + f.name)
		if err != nil {
			return a, err
		}
		sum := sha256.Sum256(body)
		ext := path.Ext(f.name)
		name := strings.TrimSuffix(f.name, ext) + "." + hex.EncodeToString(sum[:8]) + ext
		a.files[name], *f.at = file{f.kind, body}, "/assets/"+name
	}
	return a, nil
}

func (s *Console) asset(w http.ResponseWriter, r *http.Request) {
	f, ok := s.assets.files[r.PathValue("name")]
	if !ok {
		s.stranger(w, r, "")
		return
	}
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(f.body)
}

// Limits of streams: how many there are at once, and of one session, how often
// one that has nothing to say says so, how long a new one waits for a place, and
// how long a change may gather others.
const (
	maxStreams    = 32
	maxOwnStreams = 4
	beat          = 20 * time.Second
	handover      = 500 * time.Millisecond
	gather        = 150 * time.Millisecond
)

// listen opens a stream of the session. One too many takes the place of the
// oldest, which ends: no browser takes the streams of all others. What it returns
// says when the stream must end, and is called when it has.
func (s *session) listen() (over <-chan struct{}, end func()) {
	own := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) >= maxOwnStreams {
		close(s.streams[0])
		s.streams = s.streams[1:]
	}
	s.streams = append(s.streams, own)
	return own, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.streams = slices.DeleteFunc(s.streams, func(c chan struct{}) bool { return c == own })
	}
}

// events is the stream that tells a page to look again. It carries no content:
// whoever may look asks for the page.
func (s *Console) events(v *visit) {
	over, end := v.s.listen()
	defer end()
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	// One that was closed in favour of this one gives its place back soon.
	case <-time.After(handover):
		http.Error(v.w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	changed, stop := s.c.Kernel.Watch()
	defer stop()
	out := http.NewResponseController(v.w)
	_ = out.SetReadDeadline(time.Time{})
	v.w.Header().Set("Content-Type", "text/event-stream")
	send := func(text string) bool {
		_ = out.SetWriteDeadline(time.Now().Add(10 * time.Second))
		_, err := fmt.Fprint(v.w, text)
		return err == nil && out.Flush() == nil
	}
	if !send("retry: 3000\n: open\n\n") {
		return
	}
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for n := 1; ; n++ {
		text := fmt.Sprintf("id: %d\nevent: changed\ndata: %d\n\n", n, n)
		select {
		case <-v.r.Context().Done():
			return
		case <-s.done:
			return
		case <-v.s.gone:
			return
		case <-over:
			return
		case <-tick.C:
			text = ": still here\n\n"
		case _, ok := <-changed:
			if !ok {
				return
			}
			time.Sleep(gather)
		}
		if !send(text) {
			return
		}
	}
}
