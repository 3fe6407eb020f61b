package egress

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/refusal"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
)

// detectorMark makes the test binary a detector. The arguments after it are a mode and the file that gets the texts.
const detectorMark = "act-as-detector"

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == detectorMark {
		runDetector(os.Args[2], os.Args[3])
		return
	}
	os.Exit(m.Run())
}

// What the detector finds.
const (
	ownName    = "Zoë Müller-Lee"
	ownAddress = "14 Rue des Lilas, Lyon"
)

// runDetector is the program: it finds ownName and ownAddress. The first text is always answered well.
func runDetector(mode, record string) {
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	for n := 0; ; n++ {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		var asked struct {
			ID   int64
			Text string
		}
		if json.Unmarshal(line, &asked) != nil {
			os.Exit(9)
		}
		found := list{}
		for value, kind := range map[string]string{ownName: "name", ownAddress: "address"} {
			for from := 0; strings.Contains(asked.Text[from:], value); {
				from += strings.Index(asked.Text[from:], value)
				found = append(found, obj{"start": from, "end": from + len(value), "kind": kind})
				from += len(value)
			}
		}
		if n > 0 {
			f, _ := os.OpenFile(record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			_, _ = f.Write(line)
			_ = f.Close()
		}
		switch {
		case n == 0 || mode == "good":
			fmt.Println(encode(obj{"id": asked.ID, "findings": found}))
		case mode == "error":
			fmt.Println(encode(obj{"id": asked.ID, "error": "no model"}))
		case mode == "malformed":
			fmt.Println(encode(obj{"id": asked.ID, "findings": list{obj{"start": 0, "end": 1 << 20, "kind": "name"}}}))
		case mode == "not JSON":
			fmt.Println("hello")
		case mode == "exit":
			os.Exit(3)
		} // late: no answer
	}
}

// useDetector returns the spec of a detector in a mode, a change that makes a proxy use it, and a function that reads
// the texts that it got.
func useDetector(t *testing.T, mode string) (spec string, use func(*Config), texts func() string) {
	t.Helper()
	record := filepath.Join(t.TempDir(), "texts")
	s := detector.Spec{Command: []string{os.Args[0], detectorMark, mode, record}, Timeout: 20 * time.Second}
	if mode == "late" {
		s.Timeout = 100 * time.Millisecond
	}
	shelf := detector.NewShelf(nil)
	shelf.Set([]detector.Spec{s})
	t.Cleanup(shelf.Close)
	return s.Text(), func(c *Config) { c.Detector = shelf.FinderOf }, func() string {
		b, _ := os.ReadFile(record)
		return string(b)
	}
}

// newDetectorRow is newRow with a detector.
func newDetectorRow(t *testing.T, mode string, row domain.Domain) (*world, func() string) {
	t.Helper()
	spec, use, texts := useDetector(t, mode)
	row.Detector = spec
	return newRow(t, row, use), texts
}

// Names and addresses are personal data: masked in bodies of every form and in queries, and the caller learns of it.
func TestDetectorMasksWhatLeaves(t *testing.T) {
	w, texts := newDetectorRow(t, "good", domain.Domain{Request: domain.Mask})
	for _, c := range []struct{ kind, body, seen string }{
		{"application/json", `{"to":"` + ownName + `","Zoë Müller-Lee":[1,"at ` + ownAddress + `"]}`,
			`{"to":"[pii]","Zoë Müller-Lee":[1,"at [pii]"]}`},
		{"application/json", `{"to":"Zo\u00eb M\u00fcller-Lee","k":"` + someKey + `"}`, `{"to":"[pii]","k":"[secret]"}`},
		{"application/x-www-form-urlencoded", "a=1&to=Zo%C3%AB+M%C3%BCller-Lee", "a=1&to=%5Bpii%5D"},
		{"text/plain", "for " + ownName + "\n", "for [pii]\n"},
		{"text/plain", "nothing", "nothing"},
	} {
		r := w.send("POST", w.url("good.test"), c.body, "Content-Type", c.kind)
		w.passed(r)
		seen := w.up.requests()
		if got := seen[len(seen)-1].Body; got != c.seen {
			t.Errorf("sent %s\n got %s\nwant %s", c.body, got, c.seen)
		}
		if told := r.Header.Get(refusal.HeaderRedacted); (c.body != c.seen) != strings.Contains(told, "masked=") {
			t.Errorf("%s: told %q", c.body, told)
		}
	}
	r := w.send("GET", w.url("good.test")+"find?q=Zo%C3%AB%20M%C3%BCller-Lee&n=2", "")
	w.passed(r)
	seen := w.up.requests()
	if got := seen[len(seen)-1].URI; !strings.HasSuffix(got, "find?q=%5Bpii%5D&n=2") {
		t.Errorf("%s", got)
	}
	// The engine comes first: what it masks does not reach the program.
	if got := texts(); strings.Contains(got, someKey) || !strings.Contains(got, ownName) {
		t.Errorf("the detector got %s", got)
	}
}

// personal: refuse names the place of what the detector found, and not the value.
func TestDetectorRefusesByPlace(t *testing.T) {
	w, _ := newDetectorRow(t, "good", domain.Domain{Personal: domain.Refuse})
	n := 0
	for _, c := range []struct{ place, path, body string }{
		{"the body's field /user/name", "", `{"user":{"name":"` + ownName + `"}}`},
		{"the URL's parameter q", "?a=1&q=Zo%C3%AB%20M%C3%BCller-Lee", ""},
	} {
		r := w.send("POST", w.url("good.test")+c.path, c.body, "Content-Type", "application/json")
		w.refused(r, http.StatusForbidden)
		if !strings.Contains(r.Text, c.place+" holds what good.test") || !strings.Contains(r.Text, "detector.name") ||
			strings.Contains(r.Text, "Müller") {
			t.Error(r.Text)
		}
		n++
		w.last(n, "egress/good.test", holdfast.KindDomainBlocked)
	}
	w.untouched()
}

// Each failure of the program refuses the traffic, names the place, the cause and the key, and shows no text.
func TestFailingDetectorRefuses(t *testing.T) {
	for mode, why := range map[string]string{
		"error": "the detector reported an error", "late": "the detector did not answer in time",
		"malformed": "the detector's answer is malformed", "not JSON": "the detector's answer is malformed",
		"exit": "the detector is not running", "none": "the detector is closed",
	} {
		t.Run(mode, func(t *testing.T) {
			w, _ := newDetectorRow(t, mode, domain.Domain{Request: domain.Mask, Response: domain.Off})
			if mode == "none" {
				spec := detector.Spec{Command: []string{"x"}}.Text()
				w = newRow(t, domain.Domain{Detector: spec, Response: domain.Off})
			}
			for _, c := range []struct{ place, path, body string }{
				{"the request's body", "", `{"a":"hello ` + ownName + `"}`},
				{"the URL's query", "?q=hello", ""},
			} {
				r := w.send("POST", w.url("good.test")+c.path, c.body, "Content-Type", "application/json")
				w.refused(r, http.StatusInternalServerError)
				if !strings.Contains(r.Text, c.place+": names and addresses could not be searched: ") ||
					mode != "exit" && mode != "not JSON" && !strings.Contains(r.Text, why) ||
					!strings.Contains(r.Text, "redact: detector") || strings.Contains(r.Text, "Müller") {
					t.Error(r.Text)
				}
			}
			w.untouched()
			r := w.send("POST", w.url("good.test"), `{"n":1}`, "Content-Type", "application/json")
			if r.StatusCode != http.StatusOK { // without a letter there is nothing to search
				t.Errorf("%d %s", r.StatusCode, r.Text)
			}
		})
	}
}

// An answer is searched, also one of unknown length, unless it is a stream of events; one that is too long to be
// searched is refused.
func TestDetectorSearchesAnswers(t *testing.T) {
	w, _ := newDetectorRow(t, "good", domain.Domain{})
	words := strings.Repeat(" words", 1<<18)
	for _, c := range []struct {
		kind, text, want string
		status           int
	}{
		{"application/json", `{"to":"` + ownName + `"}`, `{"to":"[pii]"}`, 200},
		{"text/plain", "of " + ownName + words, "of [pii]" + words, 200},
		{"text/plain", strings.Repeat("words ", detector.MaxText/6+1), "", 413},
		{"text/event-stream", "data: of " + ownName + "\n\n", "data: of " + ownName + "\n\n", 200},
	} {
		w.up.answer(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", c.kind)
			_ = http.NewResponseController(rw).Flush() // so it has no Content-Length
			_, _ = io.WriteString(rw, c.text)
		})
		r := w.send("GET", w.url("good.test"), "")
		if (r.StatusCode == 200) != (c.status == 200) || c.status == 200 && r.Text != c.want {
			t.Errorf("%s: %d %.200s", c.kind, r.StatusCode, r.Text)
		}
		if c.status != 200 && strings.Contains(r.Text, "words words") {
			t.Errorf("%.200s", r.Text)
		}
	}
	failing, _ := newDetectorRow(t, "error", domain.Domain{})
	failing.up.answer(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "of "+ownName) })
	r := failing.send("GET", failing.url("good.test"), "")
	failing.refused(r, http.StatusInternalServerError)
	if !strings.Contains(r.Text, "the answer's body: ") || strings.Contains(r.Text, "Müller") {
		t.Error(r.Text)
	}
}

// Messages of a WebSocket are searched as bodies are.
func TestDetectorSearchesMessages(t *testing.T) {
	w, _ := newDetectorRow(t, "good", domain.Domain{WebSocket: true})
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(rw, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, b, err := c.Read(r.Context())
			if err != nil {
				return
			}
			if err := c.Write(r.Context(), kind, append([]byte(ownName+" said "), b...)); err != nil {
				return
			}
		}
	})
	c, _, err := websocket.Dial(t.Context(), strings.Replace(w.url("good.test"), "https", "wss", 1),
		&websocket.DialOptions{HTTPClient: w.client()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := c.Write(t.Context(), websocket.MessageText, []byte("to "+ownAddress)); err != nil {
		t.Fatal(err)
	}
	if _, b, err := c.Read(t.Context()); err != nil || string(b) != "[pii] said to [pii]" {
		t.Errorf("%s %v", b, err)
	}
}

// D13a: the provider sees made-up names of the same number of words, and the agent the values, whole and in pieces.
// Structure is not searched, and a resent history has the same placeholders.
func TestDetectedNamesAreRestored(t *testing.T) {
	spec, use, texts := useDetector(t, "good")
	w := newModels(t, setup{config: use, rows: func(tls, plain uint16) []domain.Domain {
		rows := modelRows(tls, plain)
		for i := range rows {
			rows[i].Detector = spec
		}
		return rows
	}})
	client := w.client()
	form := regexp.MustCompile(`Visit (\p{Lu}\S+ \p{Lu}\S+-\p{Lu}\p{Ll}+) at ` +
		`(\d\d \p{Lu}\p{Ll}+ \p{Ll}+ \p{Lu}\p{Ll}+, \p{Lu}\p{Ll}+), key (\S+?)\.`)
	material := "Visit " + ownName + " at " + ownAddress + ", key " + ownToken + "."
	first := map[string]string{}
	for name, s := range listSpoken() {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream=%v", name, stream), func(t *testing.T) {
				var said string
				w.up.answer(func(rw http.ResponseWriter, _ *http.Request) {
					asked := w.up.requests()
					said = asked[len(asked)-1].Body
					m := form.FindStringSubmatch(said)
					if m == nil {
						t.Errorf("the provider was sent %s", said)
						rw.WriteHeader(500)
						return
					}
					if was := first[s.host]; was != "" && was != m[0] {
						t.Errorf("the same texts became %q, then %q", was, m[0])
					}
					first[s.host] = m[0]
					text := "Met " + m[1] + ", " + m[2]
					arguments := encode(obj{"content": text + "\n"})
					if stream {
						rw.Header().Set("Content-Type", "text/event-stream")
						_, _ = io.WriteString(rw, asEvents(s.events(text, arguments)...))
						return
					}
					rw.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(rw, encode(s.document(text, arguments)))
				})
				ask := strings.ReplaceAll(encode(s.ask), encode(ownMaterial), encode(material))
				var v obj
				_ = json.Unmarshal([]byte(ask), &v)
				v["stream"] = stream
				v["metadata"] = obj{"user_id": ownName} // structure
				resp, body := posted(t, client, "https://"+w.at(s.host)+s.path, encode(v))
				if resp.StatusCode != 200 {
					t.Fatalf("%d %s", resp.StatusCode, body)
				}
				if strings.Contains(strings.ReplaceAll(said, encode(obj{"user_id": ownName}), ""), "Müller") ||
					strings.Contains(said, "Lilas") || strings.Contains(said, ownToken) {
					t.Errorf("the provider was sent %s", said)
				}
				text, arguments := s.text, s.arguments
				if stream {
					text, arguments = s.textPiece, s.argumentsPiece
				}
				want := "Met " + ownName + ", " + ownAddress
				if got := joinText(body, text...); got != want {
					t.Errorf("text\n got %q\nwant %q", got, want)
				}
				var file struct{ Content string }
				if err := json.Unmarshal([]byte(joinText(body, arguments...)), &file); err != nil ||
					file.Content != want+"\n" {
					t.Errorf("arguments %q, %v", file.Content, err)
				}
				if got := resp.Header.Get(refusal.HeaderRedacted); !strings.HasPrefix(got, "replaced=3; ") ||
					!strings.HasSuffix(got, "kinds=name,personal,secret") {
					t.Errorf("told %q", got)
				}
			})
		}
	}
	if got := texts(); strings.Contains(got, ownToken) {
		t.Errorf("the detector got %s", got)
	}
	if all, _ := w.readNewest(); strings.Contains(string(all), "Lilas") {
		t.Error("the ledger has the address")
	}
}

// A failure refuses a request to a model, with its place.
func TestFailingDetectorRefusesModels(t *testing.T) {
	for _, mode := range []string{"error", "late", "malformed", "exit"} {
		spec, use, _ := useDetector(t, mode)
		w := newModels(t, setup{config: use, rows: func(tls, plain uint16) []domain.Domain {
			rows := modelRows(tls, plain)
			rows[0].Detector = spec
			return rows
		}})
		s := speakMessages()
		resp, body := posted(t, w.client(), "https://"+w.at(s.host)+s.path, encode(s.ask))
		if resp.StatusCode != http.StatusInternalServerError ||
			!strings.Contains(body, "the texts of the request: names and addresses could not be searched") {
			t.Errorf("%s: %d %s", mode, resp.StatusCode, body)
		}
		w.untouched()
	}
}
