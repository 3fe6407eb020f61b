package egress

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// TestAttackInside_PartsThatReadersSplitInAnotherWay: where Holdfast and the
// upstream do not agree on where a part begins or how it is written, the secret
// in it must not pass in the upstream's reading.
func TestAttackInside_PartsThatReadersSplitInAnotherWay(t *testing.T) {
	w := attacked(t, setup{})
	passed := 0
	for _, s := range allPlanted {
		q := quoted(s)
		part := func(fields string) string {
			return "--a\r\nContent-Disposition: form-data; name=\"x\"\r\n" + fields + "\r\n\r\n" + q + "\r\n--a--\r\n"
		}
		const qp = "Content-Transfer-Encoding: quoted-printable"
		for name, l := range map[string]leak{
			"as it should be":         {kind: "multipart/form-data; boundary=a", body: part(qp)},
			"another case":            {kind: "Multipart/FORM-data; Boundary=a", body: part("CONTENT-TRANSFER-ENCODING: Quoted-Printable")},
			"a comment":               {kind: "multipart/form-data; boundary=a", body: part(qp + " (x)")},
			"blanks around":           {kind: "multipart/form-data; boundary=a", body: part("Content-Transfer-Encoding:  quoted-printable ")},
			"folded":                  {kind: "multipart/form-data; boundary=a", body: part("Content-Transfer-Encoding:\r\n quoted-printable")},
			"twice":                   {kind: "multipart/form-data; boundary=a", body: part("Content-Transfer-Encoding: 8bit\r\n" + qp)},
			"two boundaries":          {kind: "multipart/form-data; boundary=b; boundary=a", body: part(qp)},
			"two boundaries, first":   {kind: "multipart/form-data; boundary=a; boundary=b", body: part(qp)},
			"a boundary in pieces":    {kind: "multipart/form-data; boundary*0=a", body: part(qp)},
			"a boundary of RFC 2231":  {kind: "multipart/form-data; boundary*=us-ascii''a", body: part(qp)},
			"a quoted boundary":       {kind: `multipart/form-data; boundary="\a"`, body: part(qp)},
			"a boundary with a blank": {kind: `multipart/form-data; boundary="a "`, body: part(qp)},
			"a boundary behind more":  {kind: "multipart/form-data; x=y, multipart/form-data; boundary=a", body: part(qp)},
			"no boundary":             {kind: "multipart/form-data", body: part(qp)},
			"not said to be parts":    {kind: "text/plain", body: part(qp)},
			"another kind of parts":   {kind: "multipart/x-none; boundary=a", body: part(qp)},
			"lines with LF alone":     {kind: "multipart/form-data; boundary=a", body: strings.ReplaceAll(part(qp), "\r\n", "\n")},
			"a preamble":              {kind: "multipart/form-data; boundary=a", body: "words\r\n" + part(qp)},
			"without its end":         {kind: "multipart/form-data; boundary=a", body: strings.TrimSuffix(part(qp), "--\r\n") + "\r\n"},
			"behind the end":          {kind: "multipart/form-data; boundary=a", body: "--a--\r\n" + part(qp)},
			"blanks at the boundary":  {kind: "multipart/form-data; boundary=a", body: strings.Replace(part(qp), "--a\r\n", "--a \t\r\n", 1)},
			"a longer boundary":       {kind: "multipart/form-data; boundary=a", body: "--ab\r\n\r\nx\r\n" + part(qp)},
			"soft breaks":             {kind: "multipart/form-data; boundary=a", body: strings.Replace(part(qp), q, strings.Join(everyNth(q, 9), "=\r\n"), 1)},
			"only signs escaped":      {kind: "multipart/form-data; boundary=a", body: strings.Replace(part(qp), q, s[:3]+"="+fmt.Sprintf("%02X", s[3])+s[4:], 1)},
			"no field but that":       {kind: "multipart/mixed; boundary=a", body: "--a\r\n" + qp + "\r\n\r\n" + q + "\r\n--a--\r\n"},
			"a message in a part":     {kind: "multipart/mixed; boundary=a", body: "--a\r\nContent-Type: message/rfc822\r\n\r\n" + qp + "\r\n\r\n" + q + "\r\n--a--\r\n"},
			"a message":               {kind: "message/rfc822", body: "Subject: x\r\n" + qp + "\r\n\r\n" + q + "\r\n"},
			"a message in parts":      {kind: "message/rfc822", body: "Subject: x\r\nContent-Type: multipart/mixed; boundary=a\r\n\r\n" + part(qp)},
			"a message not said":      {kind: "text/plain", body: "Subject: x\r\n" + qp + "\r\n\r\n" + q + "\r\n"},
			"a message in JSON":       {kind: "application/json", body: `{"raw":"` + base64.URLEncoding.EncodeToString([]byte("To: x\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed;\r\n boundary=a\r\n\r\n"+part(qp))) + `"}`},
			"a part of many":          {kind: "multipart/mixed; boundary=a", body: strings.Repeat("--a\r\n\r\nx\r\n", 500) + part(qp)},
		} {
			before := len(w.plain.requests())
			r := say(w.dial(w.open), l.text(fmt.Sprintf("plain.test:%d", w.plain.port)))
			if r != nil && r.StatusCode == 200 {
				passed++
			}
			seen := w.plain.requests()[before:]
			for i := range seen { // as whoever decodes one level more reads it
				for _, text := range readings(seen[i].Body) {
					seen[i].Body += "\n" + text
				}
			}
			if what := leaked(seen); what != "" {
				t.Errorf("%s: %s", name, what)
			}
		}
	}
	if passed == 0 {
		t.Error("nothing passed at all: this test sees nothing")
	}
}
