package console

import (
	"bytes"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// visit is one request of a browser that is signed in.
type visit struct {
	*Console
	w   http.ResponseWriter
	r   *http.Request
	s   *session
	now time.Time
	// at is what links begin with: "/k/..." where the visit may decide.
	at      string
	decides bool
}

// withSession lets only a signed-in browser in. Anybody else gets the same page
// whatever the path: what is there is not told.
func (s *Console) withSession(f func(*visit)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		now := s.c.Now()
		se := s.sessions.find(cookieOf(r, s.cookie()), now)
		if se == nil {
			s.stranger(w, r, "")
			return
		}
		v := &visit{Console: s, w: w, r: r, s: se, now: now}
		// What the script asks for by itself is no sign of a person.
		byHand := r.Header.Get("Holdfast-Live") == "" && r.URL.Path != "/events"
		if byHand {
			se.touch(now)
		}
		if area, through := r.Context().Value(areaKey{}).(string); through {
			if v.decides = se.decides(area, cookieOf(r, s.keyCookie()), now); v.decides {
				v.at = "/k/" + area
			}
		}
		if r.Method == http.MethodPost && !v.form() {
			return
		}
		if byHand && v.decides && s.c.Attended != nil {
			s.c.Attended()
		}
		f(v)
	}
}

// form reads a form and looks at the token that only a page of this session
// holds.
func (v *visit) form() bool {
	if err := v.r.ParseForm(); err != nil {
		code := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			code = http.StatusRequestEntityTooLarge
		}
		http.Error(v.w, "the form cannot be read", code)
		return false
	}
	if !equal(v.r.PostForm.Get("csrf"), v.s.csrf) {
		http.Error(v.w, "this form is not from a page of this session: go back, reload the page and try again", http.StatusForbidden)
		return false
	}
	return true
}

// deciding lets only a visit in that may use the key.
func (s *Console) deciding(f func(*visit)) func(*visit) {
	return func(v *visit) {
		if !v.decides {
			v.back("the passphrase is needed again: what you decided was not carried out", true)
			return
		}
		f(v)
	}
}

// back answers a form: the browser goes on to the page that the form was on, or
// to the queue, and is told there how it went.
func (v *visit) back(text string, bad bool) { v.goTo(v.at, v.r.PostForm.Get("to"), text, bad) }

func (v *visit) goTo(at, to, text string, bad bool) {
	if !ownPath(to) {
		to = "/"
	}
	to = at + to
	if text != "" {
		sep := "?"
		if strings.Contains(to, "?") {
			sep = "&"
		}
		to += sep + url.Values{"note": {v.s.say(text, bad, v.now)}}.Encode()
	}
	v.w.Header().Set("Location", to)
	v.w.WriteHeader(http.StatusSeeOther)
}

// maxPath bounds such a path, in bytes: a tool's name has 512 at most, each of
// which may be written as three.
const maxPath = 1600

// ownPath says whether a path that came with a form is one of these pages'.
func ownPath(p string) bool {
	u, err := url.Parse(p)
	if err != nil || u.IsAbs() || u.Host != "" || len(p) > maxPath || strings.ContainsAny(p, "\\\r\n") || strings.HasPrefix(p, "//") {
		return false
	}
	return slices.Contains([]string{"/", "/halt", "/crossings", "/agents", "/tool", "/health"}, u.Path) || strings.HasPrefix(u.Path, "/review/") || strings.HasPrefix(u.Path, "/crossing/")
}

// page is what every page is filled with.
type page struct {
	Title   string
	Version string
	At      string // what links begin with
	Here    string // this page's path, without At
	CSRF    string
	Signed  bool // there is a session
	Decides bool
	Who     string // the key's name, where Decides
	Live    bool
	Healthy bool // there is a page of the day's health
	Now     time.Time
	State   State
	Note    *note
	Assets  assets
	Body    any
}

func (v *visit) page(title string, body any) page {
	here := v.r.URL.Path
	q := v.r.URL.Query()
	p := page{Title: title, Version: v.c.Version, At: v.at, CSRF: v.s.csrf, Signed: true, Decides: v.decides, Now: v.now,
		State: v.c.State(v.r.Context(), here == "/"), Note: v.s.said(q.Get("note"), v.now), Assets: v.assets, Body: body, Live: true, Healthy: v.c.Health != nil}
	q.Del("note")
	if len(q) > 0 {
		here += "?" + q.Encode()
	}
	p.Here = here
	if v.decides {
		p.Who = v.s.reviewer()
	}
	return p
}

// show renders a page whole before the first byte is sent.
func (s *Console) show(w http.ResponseWriter, r *http.Request, code int, name string, p page) {
	var b bytes.Buffer
	if err := s.pages[name].ExecuteTemplate(&b, "layout", p); err != nil {
		s.c.Log.Error("a page could not be rendered", "page", name, "err", err)
		http.Error(w, "internal error: the log has the cause", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes())
	}
}

func (v *visit) show(title, name string, body any) {
	v.Console.show(v.w, v.r, http.StatusOK, name, v.page(title, body))
}

// fail shows why a page is not there.
func (v *visit) fail(err error) {
	e := v.asError(err)
	v.Console.show(v.w, v.r, errorcode.Lookup(e.Kind).Pages, "problem", v.page("Not there", letter(e)))
}

func (v *visit) lost() {
	v.fail(&holdfast.Error{Kind: holdfast.KindNotFound, Why: "there is no such page"})
}

// stranger is the one page of everybody who is not signed in. why is a sentence
// about a link that did not work.
func (s *Console) stranger(w http.ResponseWriter, r *http.Request, why string) {
	here := ""
	if r.Method == http.MethodGet && ownPath(r.URL.Path) && r.URL.Path != "/" {
		here = r.URL.Path
	}
	s.show(w, r, http.StatusUnauthorized, "stranger", page{Title: "Sign in", Version: "", Here: here, Assets: s.assets, Body: why})
}

// showLink answers a one-time link with a button. Whoever fetches links before
// a person follows them does not use it up.
func (s *Console) showLink(w http.ResponseWriter, r *http.Request) {
	to := ""
	if id := r.URL.Query().Get("review"); reviewID().MatchString(id) {
		to = "?review=" + id
	}
	s.show(w, r, http.StatusOK, "link", page{Title: "Sign in", Assets: s.assets, Body: "/in/" + url.PathEscape(r.PathValue("ticket")) + to})
}

func (s *Console) signIn(w http.ResponseWriter, r *http.Request) {
	now := s.c.Now()
	if !s.tickets.redeem(r.PathValue("ticket"), now) {
		s.stranger(w, r, "That link was used already, or is older than ten minutes.")
		return
	}
	// A session that the browser had is not left behind.
	s.sessions.end(cookieOf(r, s.cookie()))
	setCookie(w, s.cookie(), s.sessions.open(now), "/")
	s.c.Log.Info("a browser signed in to the pages", "from", r.RemoteAddr)
	to := "/"
	if id := r.URL.Query().Get("review"); reviewID().MatchString(id) {
		to = "/review/" + id
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

func (v *visit) signedOut() {
	v.sessions.end(cookieOf(v.r, v.cookie()))
	setCookie(v.w, v.cookie(), "", "/")
	v.w.Header().Set("Location", "/")
	v.w.WriteHeader(http.StatusSeeOther)
}

func (s *Console) signOut(v *visit) { v.signedOut() }

// lock forgets the key before its time.
func (s *Console) lock(v *visit) {
	v.s.lock()
	v.goTo("", v.r.PostForm.Get("to"), "deciding is locked", false)
}

// parse reads the templates: each page with the layout around it.
func (s *Console) parse() (map[string]*template.Template, error) {
	out := map[string]*template.Template{}
	for _, name := range []string{"queue", "review", "crossing", "crossings", "agents", "health", "tool", "halt", "problem", "stranger", "link"} {
		t, err := template.New(name).Funcs(words()).ParseFS(templates, "templates/layout.html", "templates/parts.html", "templates/"+name+".html")
		if err != nil {
			return nil, err
		}
		out[name] = t
	}
	return out, nil
}
