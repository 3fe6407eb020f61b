// Package sample makes the texts that redaction is measured on: what a model
// is sent and answers, what stands in a repository, and what somebody would
// write to make a scanner slow. They are made from a seed, so that every
// machine measures the same bytes, and nothing in the ordinary ones is secret
// or personal.
package sample

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// words are the writer's vocabulary, the frequent ones first.
var words = strings.Fields(`the to a of and in is it that for on with as this be are from by not or an at was if can will
you we which when all one has there have so use its then what file value list each line call test error time server
function state request path name first should into only more where number user result two set before after same new
code read write change here now because while run return page other between still found check build message order
order object client field without branch next loop value schema handler against cache memory table query index older
release version record queue worker window output input until tests buffer window second parser retry limit stream
already deploy metric latency module package review option default config service process thread channel socket
response header payload report session context pattern replace commit branch merge remote column migration backup
network timeout handle argument parameter variable constant interface structure pointer reference iterator collection
happens returns expects contains describes explains remains follows belongs depends compares produces requires ignores
carefully probably quickly usually exactly directly twice together however although therefore instead rather almost
different several empty missing correct simple large small local recent previous single double stable public internal
London Berlin Tuesday January summary customer invoice product shipment weather garden kitchen mountain river music`)

// writer writes text from a seed.
type writer struct {
	strings.Builder
	r *rand.Rand
}

func newWriter(seed uint64) *writer {
	return &writer{r: rand.New(rand.NewPCG(seed, 0x686f6c6466617374))}
}

func (w *writer) f(format string, args ...any) { fmt.Fprintf(w, format, args...) }

// word is one word; frequent ones come often.
func (w *writer) word() string {
	n := len(words)
	return words[min(w.r.IntN(n), w.r.IntN(n))]
}

func pick[T any](w *writer, of []T) T { return of[w.r.IntN(len(of))] }

// of is n characters of an alphabet.
func (w *writer) of(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[w.r.IntN(len(alphabet))]
	}
	return string(b)
}

const (
	hexDigits = "0123456789abcdef"
	base58    = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
)

func (w *writer) uuid() string {
	h := w.of(hexDigits, 32)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

// stamp is a moment of the year 2026.
func (w *writer) stamp() time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(w.r.Int64N(int64(365 * 24 * time.Hour)))).Truncate(time.Millisecond)
}

func (w *writer) path() string {
	dir := pick(w, []string{"src", "internal", "cmd", "lib", "app/models", "web/components", "tests", "docs", "pkg/server"})
	return dir + "/" + w.name("_") + pick(w, []string{".go", ".py", ".ts", ".md", ".yaml", ".sql", ".json"})
}

// name is two or three words, joined.
func (w *writer) name(join string) string {
	n := 2 + w.r.IntN(2)
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ToLower(w.word())
	}
	return strings.Join(parts, join)
}

// camel is a name as Go and JavaScript write it.
func (w *writer) camel() string {
	parts := strings.Split(w.name(" "), " ")
	for i := 1; i < len(parts); i++ {
		parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
	}
	return strings.Join(parts, "")
}

// aside is what technical prose drops into its sentences.
func (w *writer) aside() string {
	switch w.r.IntN(12) {
	case 0:
		return "`" + w.camel() + "()`"
	case 1:
		return "`" + w.path() + "`"
	case 2:
		return fmt.Sprintf("line %d", 1+w.r.IntN(900))
	case 3:
		return fmt.Sprintf("v%d.%d.%d", w.r.IntN(9), w.r.IntN(30), w.r.IntN(20))
	case 4:
		return fmt.Sprintf("%d ms", 1+w.r.IntN(5000))
	case 5:
		return w.stamp().Format("2006-01-02")
	case 6:
		return fmt.Sprintf("https://docs.example.com/%s/%s?page=%d#%s", w.name("-"), w.name("-"), w.r.IntN(40), strings.ToLower(w.word()))
	case 7:
		return "commit " + w.of(hexDigits, 7+w.r.IntN(2)*33)
	case 8:
		return fmt.Sprintf("%.2f%%", w.r.Float64()*100)
	case 9:
		return fmt.Sprintf("$%d.%02d", w.r.IntN(900), w.r.IntN(100))
	case 10:
		return fmt.Sprintf("(%d of %d)", w.r.IntN(40), 40+w.r.IntN(90))
	}
	return fmt.Sprintf("10.%d.%d.%d:%d", w.r.IntN(256), w.r.IntN(256), w.r.IntN(256), 1024+w.r.IntN(9000))
}

// sentence is 5 to 20 words with a sign or two.
func (w *writer) sentence() string {
	var s strings.Builder
	for i, n := 0, 5+w.r.IntN(16); i < n; i++ {
		t := w.word()
		switch {
		case i == 0:
			t = strings.ToUpper(t[:1]) + t[1:]
		case w.r.IntN(14) == 0:
			t = w.aside()
		}
		if i > 0 {
			s.WriteString(pick(w, []string{" ", " ", " ", " ", " ", " ", " ", " ", " ", " ", ", ", "; "}))
		}
		s.WriteString(t)
	}
	return s.String() + pick(w, []string{".", ".", ".", ".", ":", "?", "!"})
}

func (w *writer) paragraph() string {
	n := 2 + w.r.IntN(5)
	parts := make([]string, n)
	for i := range parts {
		parts[i] = w.sentence()
	}
	return strings.Join(parts, " ")
}

// Short is a line of 100 bytes with nothing in it.
func Short() []byte {
	return []byte("Read the report of 2026-11-21 (42 rows), then write section 4.2 of doc/plan.md & reply to the team.\n")
}
