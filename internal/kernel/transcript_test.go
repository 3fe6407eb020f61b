package kernel_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/ledger"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata from what the kernel says now")

// TestTranscript plays testdata/*.txt: a command, a line of four dashes, and
// everything that the kernel then said, wrote into the ledger and told people.
// Lines with # are for the reader. Ids and hashes are numbered in the order in
// which they come up; seconds are left out.
func TestTranscript(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			got := newPlayer(t).play(string(text))
			if *update {
				if err := os.WriteFile(f, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(text) {
				t.Errorf("%s is not what the kernel says; read the difference, then run\n\tgo test ./internal/kernel -run Transcript -update\n%s", f, firstDifference(string(text), got))
			}
		})
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d:\n- %s\n+ %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("%d lines, now %d", len(w), len(g))
}

// player is a world that takes commands.
type player struct {
	*world
	out   strings.Builder
	seen  int64 // leaves told so far
	told  int   // notices told so far
	names map[string]string
	count map[string]int
	late  chan string // what a crossing in flight said
	opens byte        // how often the store was opened
	// loose says that leaves of this command come in either order: they are
	// then told sorted, without their places.
	loose bool
}

const scriptRules = `
rules:
  - {id: no-etc, on: request, boundary: test/*, when: "has(args.path) && args.path.startsWith('/etc/')", message: nothing under /etc is touched, hint: use a path under /srv}
  - {id: no-keys, on: output, boundary: test/*, when: "has(output.key)", message: keys stay inside}
`

// dawn is when every transcript begins.
var dawn = time.Date(2026, 3, 2, 9, 0, 1, 0, time.UTC)

// seeded is randomness that is the same each time.
type seeded struct {
	mu sync.Mutex
	r  *rand.ChaCha8
}

func (s *seeded) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.Read(p)
}

func (p *player) open(dir string, at time.Time) {
	p.opens++
	p.world = reopen(p.t, dir, scriptRules, func(c *kernel.Config, w *world) {
		c.Random = &seeded{r: rand.NewChaCha8([32]byte{p.opens})}
		w.offset = time.Until(at)
	})
}

func newPlayer(t *testing.T) *player {
	p := &player{world: &world{t: t}, names: map[string]string{}, count: map[string]int{}, late: make(chan string, 1)}
	p.open(t.TempDir(), dawn)
	return p
}

func (p *player) play(text string) string {
	var b strings.Builder
	skipping := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case skipping && line != "":
			continue
		case line == "" || strings.HasPrefix(line, "#"):
			skipping = false
			b.WriteString(line + "\n")
			continue
		case line == "----":
			skipping = true
			continue
		}
		p.out.Reset()
		p.command(line)
		p.ledgerAndNotices()
		b.WriteString(line + "\n----\n" + p.normal(p.out.String()))
	}
	return b.String()
}

func (p *player) say(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

// words splits a command; "name=value" with spaces is written name="value".
func words(line string) (pos []string, opt map[string]string) {
	opt = map[string]string{}
	for _, w := range regexp.MustCompile(`[a-z]+="[^"]*"|\S+`).FindAllString(line, -1) {
		if k, v, ok := strings.Cut(w, "="); ok && regexp.MustCompile(`^[a-z]+$`).MatchString(k) {
			opt[k] = strings.Trim(v, `"`)
			continue
		}
		pos = append(pos, w)
	}
	return pos, opt
}

func (p *player) command(line string) {
	pos, opt := words(line)
	switch pos[0] {
	case "cross":
		p.crossing(pos[1], pos[2], opt)
	case "approve", "reject", "defer":
		_, err := p.k.Decide(p.world.say(pos[0], p.real(pos[1]), opt["reason"]))
		p.result(err)
	case "halt":
		n, err := p.k.Halt("user:carol", opt["why"])
		p.say("cut %d", n)
		p.result(err)
		if opt["wait"] != "" {
			p.loose = true
			p.say("%s", strings.TrimRight(<-p.late, "\n"))
		}
	case "resume":
		p.result(p.k.Resume(p.sign(operator.Statement{Act: operator.Resume, Reason: opt["why"]})))
	case "pause":
		n, err := p.k.Pause(holdfast.Local, pos[1], "user:carol", opt["why"])
		p.say("cut %d", n)
		p.result(err)
	case "unpause":
		_, err := p.k.Unpause(holdfast.Local, p.sign(operator.Statement{Act: operator.Unpause, Subject: pos[1]}))
		p.result(err)
	case "wait":
		d, err := time.ParseDuration(pos[1])
		if err != nil {
			p.t.Fatal(err)
		}
		p.advance(d)
		n, err := p.k.Sweep()
		p.say("%s later; expired %d", pos[1], n)
		p.result(err)
	case "restart":
		at := p.world.now()
		p.store.Close()
		p.told = 0
		p.open(p.dir, at)
		p.say("started again")
	case "verify":
		verifyStore(p.t, p.world)
		p.say("every tree is what its head says")
	default:
		p.t.Fatalf("%q is no command", line)
	}
}

func (p *player) result(err error) {
	var e *holdfast.Error
	switch {
	case err == nil:
		p.say("ok")
	case errors.As(err, &e):
		p.say("%s: %s", e.Kind, e.Why)
		if e.Hint != "" {
			p.say("hint: %s", e.Hint)
		}
	default:
		p.say("error: %v", err)
	}
}

func (p *player) crossing(boundary, payload string, opt map[string]string) {
	req := p.req(boundary, payload)
	if as := opt["as"]; as != "" {
		req.Token = p.who(as)
	}
	if tok, ok := opt["token"]; ok {
		req.Token = holdfast.NewSecret(tok)
	}
	req.IdempotencyKey, req.Correlation = opt["key"], opt["flow"]
	if c := opt["confidence"]; c != "" {
		f, err := strconv.ParseFloat(c, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		req.Confidence = &f
	}
	started := make(chan struct{})
	act := p.hand(opt, started)
	if opt["flight"] == "" {
		out, err := p.k.Cross(p.t.Context(), req, act)
		p.outcome(out, err)
		return
	}
	go func() {
		out, err := p.k.Cross(context.Background(), req, act)
		q := &player{world: p.world}
		q.outcome(out, err)
		p.late <- "the crossing in flight:\n" + q.out.String()
	}()
	<-started
	p.say("in flight")
}

// hand acts as the options say.
func (p *player) hand(opt map[string]string, started chan struct{}) kernel.Act {
	return func(ctx context.Context) (holdfast.Output, error) {
		close(started)
		if opt["flight"] != "" {
			<-ctx.Done()
			return holdfast.Output{}, ctx.Err()
		}
		if opt["crash"] != "" {
			p.mu.Lock()
			p.fault = func(string) error { return errGone }
			p.mu.Unlock()
		}
		if child := opt["child"]; child != "" {
			out, err := p.k.Cross(kernel.Child(ctx), p.req(child, `{"child":true}`), ok)
			p.say("the child %s:", out.Crossing)
			p.outcome(out, err)
			if err != nil {
				return holdfast.Output{}, err
			}
		}
		if why := opt["fail"]; why != "" {
			return holdfast.Output{}, errors.New(why)
		}
		body := `{"ok":true}`
		if b := opt["gives"]; b != "" {
			body = b
		}
		out := holdfast.Output{Body: []byte(body)}
		if u := opt["uses"]; u != "" {
			n, err := strconv.ParseInt(u, 10, 64)
			if err != nil {
				return out, err
			}
			out.Used = map[holdfast.Resource]int64{holdfast.LLMTokens: n}
		}
		return out, nil
	}
}

func (p *player) outcome(out *holdfast.Outcome, err error) {
	for _, op := range out.Opinions {
		rule := ""
		if op.Rule != "" && op.Rule != "none declared" {
			rule = " [" + op.Rule + "]"
		}
		p.say("%-4s %-5s %s%s", op.Gate, op.Verdict, op.Why, rule)
	}
	verdict := strings.ToUpper(out.Verdict.String())
	if out.Replayed {
		verdict += " (replayed)"
	}
	p.say("%s %s, flow %s, %s", verdict, out.Crossing, out.Correlation, out.State)
	if out.Review != "" {
		p.say("review %s until %s", out.Review, out.Expires.UTC().Format(time.RFC3339))
	}
	if out.Output != nil {
		p.say("output %s", out.Output.Body)
	}
	if err != nil {
		p.result(err)
	}
}

func (p *player) ledgerAndNotices() {
	seen, before := p.seen, p.out.String()
	p.out.Reset()
	for _, tenant := range []string{holdfast.Local, holdfast.Unverified} {
		p.leaves(tenant, func(s ledger.Stored) {
			if tenant == holdfast.Local {
				if s.Seq < seen {
					return
				}
				p.seen = s.Seq + 1
			} else if p.names[fmt.Sprintf("%s/%d", tenant, s.Seq)] != "" {
				return
			} else {
				p.names[fmt.Sprintf("%s/%d", tenant, s.Seq)] = "told"
			}
			p.leaf(s)
		})
	}
	told := p.out.String()
	if p.loose {
		leaves := regexp.MustCompile(`(?m)^ledger \d+:`).Split(told, -1)[1:]
		slices.Sort(leaves)
		slices.Reverse(leaves) // what happened, then what became of it
		told, p.loose = "ledger:"+strings.Join(leaves, "ledger:"), false
	}
	p.out.Reset()
	p.out.WriteString(before + told)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.notices[p.told:] {
		p.say("tell people (%s): %s: %s", n.Level, n.Event, n.Why)
	}
	p.told = len(p.notices)
}

func (p *player) leaf(s ledger.Stored) {
	switch s.Kind {
	case ledger.KindBegin:
		b, err := ledger.ParseBegin(s.Record)
		if err != nil {
			p.t.Fatal(err)
		}
		p.say("ledger %d: begin %s at %s by %s", s.Seq, b.ID, b.Boundary, b.Caller)
	case ledger.KindEvent:
		e, err := ledger.ParseEvent(s.Record)
		if err != nil {
			p.t.Fatal(err)
		}
		p.say("ledger %d: event %s of %s by %s", s.Seq, e.Name, e.Subject, e.Who)
	case ledger.KindEntry:
		e, err := ledger.ParseEntry(s.Record)
		if err != nil {
			p.t.Fatal(err)
		}
		line := fmt.Sprintf("ledger %d: entry %s %s, %s, exit %d", s.Seq, e.ID, e.Outcome, e.State, e.ExitCode)
		for _, u := range e.Uses {
			if u.Used != nil {
				line += fmt.Sprintf(", %s %d of %d", u.Draw.Resource, *u.Used, u.Draw.Limit)
			}
		}
		for name, v := range map[string]string{"reviewer": e.Reviewer} {
			if v != "" {
				line += ", " + name + " " + v
			}
		}
		if e.Parent != "" {
			line += ", child of " + e.Parent
		}
		if e.ReplayOf != "" {
			line += ", result of " + e.ReplayOf
		}
		p.say("%s", line)
		if len(s.Part) > 0 {
			text, err := ledger.PartContent(s.Part)
			if err != nil {
				p.t.Fatal(err)
			}
			p.say("    %s", text)
		}
	}
}

var idForms = []struct {
	prefix string
	form   *regexp.Regexp
}{
	{"C", regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)},
	{"F", regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)},
	{"R", regexp.MustCompile(`rv_[0-9a-f]{10}`)},
	{"KEY", regexp.MustCompile(`\b[0-9a-f]{64}\b`)},
}

var seconds = regexp.MustCompile(`(\d{4}-\d\d-\d\dT\d\d:\d\d):\d\d(\.\d+)?Z`)

// normal gives ids and hashes names that a reader can follow.
func (p *player) normal(s string) string {
	for _, f := range idForms {
		s = f.form.ReplaceAllStringFunc(s, func(id string) string {
			if p.names[id] == "" {
				p.count[f.prefix]++
				p.names[id] = fmt.Sprintf("%s%d", f.prefix, p.count[f.prefix])
			}
			return p.names[id]
		})
	}
	return seconds.ReplaceAllString(s, "${1}Z")
}

// real is the id that a name stands for.
func (p *player) real(name string) string {
	for id, n := range p.names {
		if n == name {
			return id
		}
	}
	p.t.Fatalf("nothing is called %s yet", name)
	return ""
}
