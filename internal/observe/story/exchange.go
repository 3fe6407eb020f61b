package story

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/ledger"
)

// shownPath is how many bytes of a path people are shown in a line.
const shownPath = 160

// Exchange says in one line what left through the proxy and what came back:
// "POST https://api.example.com/v1/x: 200, 120 bytes sent, 3400 bytes received", and
// of a model "; claude-x, 1000 tokens in, 20 out, $0.0033".
// It reads the entry's erasable part; "" of any other entry, and where the part
// was erased.
func Exchange(e *ledger.Entry, part []byte) string {
	if !strings.HasPrefix(e.Boundary, "egress/") {
		return ""
	}
	text, err := ledger.PartContent(part)
	if err != nil {
		return ""
	}
	x := Exchanged(text)
	if x.Host == "" {
		return ""
	}
	var facts []string
	if x.Status != 0 {
		facts = append(facts, strconv.Itoa(x.Status))
	}
	if x.Opaque {
		facts = append(facts, "not inspected")
	}
	if x.Sent > 0 {
		facts = append(facts, Count(x.Sent, "byte", "bytes")+" sent")
	}
	if x.Received > 0 {
		facts = append(facts, Count(x.Received, "byte", "bytes")+" received")
	}
	if p := x.Placeholders; p != nil && p.Replaced > 0 {
		facts = append(facts, Count(int64(p.Replaced), "value", "values")+" replaced by placeholders, "+
			strconv.Itoa(p.Restored)+" restored")
	}
	if p := x.Placeholders; p != nil && p.Uninspected > 0 {
		facts = append(facts, Count(int64(p.Uninspected), "part", "parts")+" not inspected")
	}
	if m := x.Masked; m != nil {
		facts = append(facts, Count(int64(m.Request+m.Answer), "value", "values")+" masked")
	}
	s := x.Method + " " + where(&x)
	if len(facts) > 0 {
		s += ": " + strings.Join(facts, ", ")
	}
	if m := e.Model; m != nil {
		s += "; " + m.Model + ", " + Count(m.All()-m.Output, "token", "tokens") + " in, " + strconv.FormatInt(m.Output, 10) + " out"
		if m.Micro > 0 {
			s += ", " + Dollars(m.Micro)
		}
	}
	return strings.TrimSpace(s)
}

// Exchanged is the exchange that an entry's erasable part tells of: the members of
// an object that the ledger may have cut off anywhere, as far as they are whole.
// The zero Exchange is what is none.
func Exchanged(text []byte) (x holdfast.Exchange) {
	d := json.NewDecoder(bytes.NewReader(text))
	whole := map[string]json.RawMessage{}
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return x
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if s, ok := name.(string); err != nil || !ok || d.Decode(&value) != nil {
			break
		} else {
			whole[s] = value
		}
	}
	b, err := json.Marshal(whole)
	if err != nil || json.Unmarshal(b, &x) != nil {
		return holdfast.Exchange{}
	}
	return x
}

// where is the address, with the port only where the scheme has another.
func where(x *holdfast.Exchange) string {
	host := x.Host
	usual := map[string]uint16{"http": 80, "https": 443, "ws": 80, "wss": 443}[x.Scheme]
	switch {
	case x.Port != 0 && x.Port != usual:
		host = net.JoinHostPort(host, strconv.Itoa(int(x.Port)))
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	if x.Scheme == "" {
		return host + excerpt.Of(x.Path, shownPath)
	}
	return fmt.Sprintf("%s://%s%s", x.Scheme, host, excerpt.Of(x.Path, shownPath))
}
