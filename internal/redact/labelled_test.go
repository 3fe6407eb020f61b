package redact

import (
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"
)

// The labelled set is written from the public definitions of the formats, not
// from the engine: RFCs, ISO/IEC 7812 and ISO 13616, the documents in which
// providers describe their tokens, and national rules for numbers. Values are
// made from a seed with right and wrong check digits, and put into the
// sentences, lines of code, JSON, headers, logs and URLs in which they occur.

// label says that [start, end) of a text must be masked.
type label struct {
	start, end int
}

// example is one text of the set. One without labels must stay as it is. kind
// is what it tests, sub the format that it was made of.
type example struct {
	kind, sub string
	text      string
	want      []label
	// may is what may be masked as well, such as the town of an address.
	may []label
}

// maker makes the examples of one kind.
type maker struct {
	r    *rand.Rand
	kind string
	list []example
}

func newMaker(kind string) *maker {
	h := fnv.New64a()
	_, _ = h.Write([]byte(kind))
	return &maker{r: rand.New(rand.NewPCG(h.Sum64(), 20261121)), kind: kind}
}

// slot stands in a carrier where the value goes.
const slot = "§"

// carry puts values into the slots of a carrier, and labels them. In JSON a
// value is escaped.
func (m *maker) carry(sub, carrier string, values ...string) {
	m.list = append(m.list, carried(m.kind, sub, carrier, values))
}

func carried(kind, sub, carrier string, values []string) example {
	e := example{kind: kind, sub: sub}
	parts := strings.Split(carrier, slot)
	quoted := strings.HasPrefix(carrier, "{")
	var b strings.Builder
	for i, p := range parts {
		b.WriteString(p)
		if i+1 == len(parts) {
			break
		}
		v := values[min(i, len(values)-1)]
		if quoted {
			v = escaped(v)
		}
		e.want = append(e.want, label{b.Len(), b.Len() + len(v)})
		b.WriteString(v)
	}
	e.text = b.String()
	return e
}

func escaped(v string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // a string always encodes
	}
	s := strings.TrimSuffix(b.String(), "\n")
	return s[1 : len(s)-1]
}

// leave adds a text that must stay as it is.
func (m *maker) leave(sub, text string) {
	m.list = append(m.list, example{kind: m.kind, sub: sub, text: text})
}

// spare puts a value that is nothing into a carrier.
func (m *maker) spare(sub, carrier, value string) {
	e := carried(m.kind, sub, carrier, []string{value})
	m.leave(sub, e.text)
}

func (m *maker) positives() (n int) {
	for _, e := range m.list {
		if e.want != nil {
			n++
		}
	}
	return n
}

// fill adds ordinary things that look like something until there are three
// times as many texts to leave as texts to mask.
func (m *maker) fill() []example {
	p := m.positives()
	for len(m.list)-p < 3*p+10 {
		sub, v := m.ordinary()
		m.spare(sub, m.plain(), v)
	}
	return m.list
}

func one[T any](m *maker, of ...T) T { return of[m.r.IntN(len(of))] }

// of is n characters of an alphabet.
func (m *maker) of(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[m.r.IntN(len(alphabet))]
	}
	return string(b)
}

const (
	digits10 = "0123456789"
	lower16  = "0123456789abcdef"
	upper26  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lower26  = "abcdefghijklmnopqrstuvwxyz"
	alnum62  = digits10 + upper26 + lower26
	url64    = alnum62 + "-_"
	std64    = alnum62 + "+/"
	base32   = upper26 + "234567"
)

func (m *maker) digits(n int) string { return m.of(digits10, n) }
func (m *maker) hex(n int) string    { return m.of(lower16, n) }
func (m *maker) alnum(n int) string  { return m.of(alnum62, n) }

// plain is a carrier that says nothing of what it carries.
func (m *maker) plain() string {
	return one(m,
		slot,
		"Please look at § before Friday.",
		"It said § and stopped.",
		"See (§), then go on with the next one.",
		"I copied § from the ticket; is that the right one?",
		"Got: §\n",
		"- first\n- §\n- last\n",
		"| 12 | § | open |\n",
		"2026-03-04T05:06:07Z INFO worker/3: read § from the queue in 12ms\n",
		"[WARN] main.go:42 unexpected § (attempt 2 of 5)\n",
		"\tx := \"§\" // from the ticket\n",
		"value = '§'\n",
		"console.log(\"§\");\n",
		"assert parse(\"§\") is not None\n",
		"export THING=§\n",
		"row;7;§;done\n",
		"a,b,\"§\",d\n",
		"<td>§</td>",
		"<item>§</item>\n",
		"spec:\n  - name: x\n    value: §\n",
		"> §\n\nWhat is this?",
		"X-Data: §\r\nHost: example.com\r\n",
		"echo '§' | tee out.txt\n",
		"INSERT INTO notes VALUES (7, '§', NULL);\n",
		`{"id":7,"note":"§","ok":true}`,
		`{"role":"user","content":[{"type":"text","text":"what about § here?"}]}`,
		`{"messages":["first","§","last"],"n":3}`,
		"**§** is what it printed.",
		"first § then § again",
		`"lines": "first\n§\nlast"`+"\n",
		"It says “§” there.",
		"结果：§。",
		"\x1b[32m§\x1b[0m\n",
		"GET /find?q=%20§%20 HTTP/1.1\n",
		"a%3D§",
		"\ufeff§\n",
		"it became →§",
	)
}

// told are carriers in which a word says what the value is.
func (m *maker) told(word string) string {
	under := strings.ReplaceAll(word, " ", "_")
	return strings.ReplaceAll(one(m,
		"W: §", "W §", "W = §\n", "My W is §.", "the customer's W is §, please check", "W: § (verified)",
		"- W: §\n- plan: basic\n", "Please update W § in the file.", "found W §\n", "name;W §;done",
		`{"text":"the W is §"}`, "INFO checked W=§ ok\n", "| W | § |\n", "Your W (§) was changed.",
	), "W", one(m, word, strings.ToUpper(word[:1])+word[1:], under))
}

// labelled is the whole set, by kind.
func labelled() map[string][]example {
	set := map[string][]example{}
	for kind, do := range listGroups() {
		m := newMaker(kind)
		do(m)
		set[kind] = m.fill()
	}
	return set
}

// listGroups returns the groups of forms of the synthetic set, each with the method that makes its texts.
func listGroups() map[string]func(*maker) {
	return map[string]func(*maker){
		"aws": (*maker).aws, "azure": (*maker).azure, "github": (*maker).github, "gitlab": (*maker).gitlab, "slack": (*maker).slack,
		"stripe": (*maker).stripe, "model key": (*maker).modelKey, "google": (*maker).google, "package registry": (*maker).registry,
		"other token": (*maker).otherToken, "webhook": (*maker).webhook, "jwt": (*maker).jwt, "private key": (*maker).privateKey,
		"authorization": (*maker).authorization, "url credentials": (*maker).urlCredentials, "assignment": (*maker).assignment,
		"password hash": (*maker).passwordHash,
		"email":         (*maker).email, "card": (*maker).card, "ssn": (*maker).ssn, "iban": (*maker).iban, "phone": (*maker).phone,
		"phone, national": (*maker).nationalPhone, "phone, named": (*maker).namedPhone,
		"birth": (*maker).birth, "bank": (*maker).bank, "health": (*maker).health, "national id": (*maker).nationalID,
		"tax id": (*maker).taxID, "vehicle": (*maker).vehicle, "wallet": (*maker).wallet, "personal field": (*maker).personalField,
	}
}

// TestLabelledSet shows that the set is what the figures of quality take it
// for: the same each time, enough of each kind, three times as many texts to
// leave, and labels that lie in their texts.
func TestLabelledSet(t *testing.T) {
	set, again := labelled(), labelled()
	for kind, list := range set {
		mask, leave := 0, 0
		for i, e := range list {
			if e.text != again[kind][i].text {
				t.Fatalf("%s: the set is not the same twice", kind)
			}
			for _, l := range e.want {
				if l.start < 0 || l.end <= l.start || l.end > len(e.text) {
					t.Errorf("%s: a label lies outside of %q", kind, e.text)
				}
			}
			if e.want == nil {
				leave++
			} else {
				mask++
			}
		}
		if mask < 60 || leave < 3*mask {
			t.Errorf("%s has %d texts to mask and %d to leave", kind, mask, leave)
		}
	}
}
