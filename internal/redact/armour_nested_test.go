package redact

import (
	"bytes"
	"strings"
	"testing"
)

// Of two armours that lie in each other, each longer than a stream's window,
// the outer one's end counts, wherever the inner one ends; whatever follows is
// judged anew, and a stream says what Text says.
func TestArmoursInEachOther(t *testing.T) {
	e := engine(t)
	body := strings.Repeat(strings.Repeat("MIIEpAIB", 8)+"\n", 200)
	pem, pemEnd := "-----BEGIN RSA "+"PRIVATE KEY-----\n", "-----END RSA "+"PRIVATE KEY-----"
	ssh, sshEnd := "---- BEGIN SSH2 ENCRYPTED "+"PRIVATE KEY ----\n", "---- END SSH2 ENCRYPTED "+"PRIVATE KEY ----"
	const tail = "\nkey " + akia + " mail bob@example.com end\n"
	const masked = "\nkey [secret redacted] mail [email hidden] end\n"
	for name, c := range map[string]struct{ text, shown string }{
		"SSH2 around PEM":     {ssh + body + pem + body + pemEnd + "\n" + body + sshEnd + tail, masked},
		"PEM around SSH2":     {pem + body + ssh + body + sshEnd + "\n" + body + pemEnd + tail, masked},
		"PEM around PEM":      {pem + body + pem + body + pemEnd + tail, masked},
		"SSH2, PEM open":      {ssh + body + pem + body + sshEnd + tail, masked},
		"PEM in SSH2 open":    {ssh + body + pem + body + pemEnd + tail, ""},
		"SSH2 in PEM open":    {pem + body + ssh + body + sshEnd + tail, ""},
		"SSH2 behind PEM":     {pem + body + pemEnd + "\n" + ssh + body + sshEnd + tail, masked},
		"short around a long": {pem + "MIIE\n" + ssh + body + sshEnd + "\n" + pemEnd + tail, masked},
	} {
		text := []byte("x\n" + c.text)
		r := e.Text(text)
		if !bytes.HasSuffix(r.Out, []byte(c.shown)) || bytes.Contains(r.Out, []byte("MIIE")) || bytes.Contains(r.Out, []byte(akia)) || c.shown == "" && bytes.Contains(r.Out, []byte("end")) {
			t.Errorf("%s: %.300q", name, r.Out)
		}
		for _, n := range []int{61, 1000, 4096, 9000} {
			agrees(t, e, r, every(text, n)...)
		}
	}
}
