package payload

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"os/exec"
	"testing"
)

// canonicaliser is RFC 8785 as its text suggests it for ECMAScript: the
// platform's own number form and its own order of strings. One document a
// line comes in, one canonical form a line goes out.
const canonicaliser = `
const canon = v => {
  if (Array.isArray(v)) return '[' + v.map(canon).join(',') + ']';
  if (v !== null && typeof v === 'object')
    return '{' + Object.keys(v).sort().map(k => JSON.stringify(k) + ':' + canon(v[k])).join(',') + '}';
  return JSON.stringify(v);
};
const lines = require('fs').readFileSync(0, 'utf8').split('\n');
lines.pop();
process.stdout.write(lines.map(l => canon(JSON.parse(l)) + '\n').join(''));
`

// TestNode compares 100 000 numbers and random documents with Node.
func TestNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: the comparison with a second implementation of RFC 8785 did not run")
	}
	r := rand.New(rand.NewPCG(2, 8785))
	var lines [][]byte
	for range 100_000 {
		lines = append(lines, []byte(randomNumber(r)))
	}
	for range 3000 {
		// Raw line ends are only space between tokens.
		doc := render(r, randomValue(r, 4))
		lines = append(lines, bytes.ReplaceAll(doc, []byte("\n"), []byte(" ")))
	}
	cmd := exec.Command(node, "-e", canonicaliser)
	cmd.Stdin = bytes.NewReader(append(bytes.Join(lines, []byte("\n")), '\n'))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v", err)
	}
	answers := bufio.NewScanner(bytes.NewReader(out))
	answers.Buffer(nil, 1<<20)
	for i, line := range lines {
		if !answers.Scan() {
			t.Fatalf("node answered %d of %d lines", i, len(lines))
		}
		d, err := Parse(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if !bytes.Equal(d.Canonical(), answers.Bytes()) {
			t.Fatalf("differ on %s\nours %s\nnode %s", line, d.Canonical(), answers.Bytes())
		}
	}
}
