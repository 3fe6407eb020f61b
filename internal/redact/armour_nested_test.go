package redact

import (
	"bytes"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

// Of armours that lie in each other or across each other's end, each longer than
// a stream's window, the last end counts; one that does not end hides its own lines.
// Whatever follows is judged anew, and a stream says what Text says.
func TestArmoursInEachOther(t *testing.T) {
	e := newEngine(t)
	body := strings.Repeat(strings.Repeat("MIIEpAIB", 8)+"\n", 200)
	pem, pemEnd := "-----BEGIN RSA "+"PRIVATE KEY-----\n", "-----END RSA "+"PRIVATE KEY-----"
	ssh, sshEnd := "---- BEGIN SSH2 ENCRYPTED "+"PRIVATE KEY ----\n", "---- END SSH2 ENCRYPTED "+"PRIVATE KEY ----"
	const tail = "\nkey " + akia + " mail bob@example.com end\n"
	const masked = "\nkey [secret redacted] mail [email hidden] end\n"
	for name, c := range map[string]struct{ text, shown string }{
		"SSH2 around PEM":     {ssh + body + pem + body + pemEnd + "\n" + body + sshEnd + tail, masked},
		"PEM around SSH2":     {pem + body + ssh + body + sshEnd + "\n" + body + pemEnd + tail, masked},
		"PEM around PEM":      {pem + body + pem + body + pemEnd + "\n" + body + pemEnd + tail, masked},
		"PEM across SSH2":     {pem + body + ssh + body + pemEnd + "\n" + body + sshEnd + tail, masked},
		"SSH2 across PEM":     {ssh + body + pem + body + sshEnd + "\n" + body + pemEnd + tail, masked},
		"two PEM, one end":    {pem + body + pem + body + pemEnd + tail, masked},
		"SSH2, PEM open":      {ssh + body + pem + body + sshEnd + tail, masked},
		"PEM in SSH2 open":    {ssh + body + pem + body + pemEnd + tail, masked},
		"SSH2 in PEM open":    {pem + body + ssh + body + sshEnd + tail, masked},
		"SSH2 behind PEM":     {pem + body + pemEnd + "\n" + ssh + body + sshEnd + tail, masked},
		"short around a long": {pem + "MIIE\n" + ssh + body + sshEnd + "\n" + pemEnd + tail, masked},
	} {
		text := []byte("x\n" + c.text)
		r := e.Text(text)
		if !bytes.HasSuffix(r.Out, []byte(c.shown)) || bytes.Contains(r.Out, []byte("MIIE")) ||
			bytes.Contains(r.Out, []byte(akia)) {
			t.Errorf("%s: %.300q", name, r.Out)
		}
		for _, n := range []int{61, 1000, 4096, 9000} {
			agrees(t, e, r, every(text, n)...)
		}
	}
}

// Short ones lie across each other as long ones do, of any labels, and each way
// of cutting the text gives the same.
func TestArmoursAcrossEachOther(t *testing.T) {
	e := newEngine(t)
	begin := func(kind string) string { return "-----BEGIN " + kind + "PRIVATE KEY-----\nMIIEpAIB\n" }
	end := func(kind string) string { return "-----END " + kind + "PRIVATE KEY-----\nMIIEpAIB\n" }
	ssh := "---- BEGIN SSH2 ENCRYPTED " + "PRIVATE KEY ----\nMIIEpAIB\n"
	sshEnd := "---- END SSH2 ENCRYPTED " + "PRIVATE KEY ----"
	last := func(kind string) string { return "-----END " + kind + "PRIVATE KEY-----" }
	const tail = "\nmail bob@example.com end\n"
	for name, c := range map[string]struct{ text string }{
		"two labels":  {begin("RSA ") + begin("EC ") + end("RSA ") + last("EC ")},
		"one label":   {begin("") + begin("") + end("") + last("")},
		"three":       {begin("RSA ") + begin("EC ") + begin("") + end("EC ") + end("RSA ") + last("")},
		"SSH2 in PEM": {begin("") + ssh + end("") + sshEnd},
		"PEM in SSH2": {ssh + begin("") + sshEnd + "\nMIIEpAIB\n" + last("")},
		"both twice": {ssh + begin("") + ssh + begin("") + sshEnd + "\nMIIEpAIB\n" + sshEnd +
			"\nMIIEpAIB\n" + end("") + last("")},
		"a certificate in it": {begin("") +
			"-----BEGIN CERTIFICATE-----\nMIIEpAIB\n-----END CERTIFICATE-----\nMIIEpAIB\n" + last("")},
		"an end of no label": {begin("") + "-----END"},
		"an end too many":    {begin("") + sshEnd + "\nMIIEpAIB\n" + last("")},
		"one without end":    {begin("RSA ") + begin("EC ") + last("RSA ")},
		"too many":           {strings.Repeat(begin(""), 64+1) + strings.Repeat(end(""), 64) + last("")},
		"many":               {strings.Repeat(begin(""), 64-1) + strings.Repeat(end(""), 64-2) + last("")},
	} {
		text := []byte("x\n" + c.text + tail)
		want := "x\n" + mask.Secret + "\nmail [email hidden] end\n"
		r := e.Text(text)
		if string(r.Out) != want {
			t.Errorf("%s: %.300q", name, r.Out)
		}
		step := 1
		if len(text) > 1000 {
			step = 97
		}
		for i := 0; i <= len(text); i += step {
			agrees(t, e, r, text[:i], text[i:])
		}
		agrees(t, e, r, bytewise(text)...)
	}
}
