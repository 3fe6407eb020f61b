// Command verify checks an exported Holdfast ledger with nothing but the
// ledger's public key: every leaf, every erased part, the Merkle trees, the
// signed checkpoints and the log of checkpoints. It is written from
// doc/ledger-format.md, shares no code with Holdfast, and needs only
// golang.org/x/mod.
//
//	go run -C tools/verify . [--key KEY|FILE] [--checkpoint FILE]... EXPORT.jsonl
//
// The exit code is 0 when everything holds, 1 when something does not, which is
// then named by tenant and leaf, and 2 when nothing could be verified.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// files is a flag that may be repeated.
type files []string

func (f *files) String() string     { return strings.Join(*f, " ") }
func (f *files) Set(s string) error { *f = append(*f, s); return nil }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("verify", flag.ContinueOnError)
	fs.SetOutput(stderr)
	keyText := fs.String("key", "", "the ledger's public key, or a file that holds it; the export's own word is taken if absent")
	var kept files
	fs.Var(&kept, "checkpoint", "a file of signed checkpoints that were kept elsewhere")
	if err := fs.Parse(args); err != nil || fs.NArg() != 1 {
		fmt.Fprintln(stderr, "usage: verify [--key KEY|FILE] [--checkpoint FILE]... EXPORT.jsonl")
		return 2
	}
	in := stdin
	if name := fs.Arg(0); name != "-" {
		f, err := open(name)
		if err != nil {
			fmt.Fprintln(stderr, "verify:", err)
			return 2
		}
		defer f.Close()
		in = f
	}
	v, err := newVerifier(*keyText, kept)
	if err != nil {
		fmt.Fprintln(stderr, "verify:", err)
		return 2
	}
	if err := v.read(in); err != nil {
		fmt.Fprintln(stderr, "verify: this does not verify:", err)
		return 1
	}
	v.report(stdout, *keyText != "")
	return 0
}

// maxSmall bounds a file of a key or of checkpoints, in bytes.
const maxSmall = 64 << 10

// open opens a regular file, and waits for no other end of anything.
func open(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file; what comes from elsewhere is read as -", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readSmall reads a file of a key or of checkpoints.
func readSmall(name string) ([]byte, error) {
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSmall+1))
	if err == nil && len(b) > maxSmall {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxSmall)
	}
	return b, err
}

func newVerifier(keyText string, kept []string) (*verifier, error) {
	v := &verifier{logged: map[string][]head{}, kept: map[string][]head{}}
	if keyText != "" {
		text := keyText
		if b, err := readSmall(keyText); err == nil {
			text = string(b)
		} else if !errors.Is(err, os.ErrNotExist) && !strings.Contains(keyText, "+") {
			return nil, fmt.Errorf("--key: %v", err)
		}
		k, err := parseKey(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("--key is no key, and no file that holds one: %v", err)
		}
		v.key = k
	}
	if len(kept) > 0 && v.key == nil {
		return nil, errors.New("--checkpoint needs --key: a checkpoint is worth what its key is")
	}
	for _, file := range kept {
		b, err := readSmall(file)
		if err != nil {
			return nil, err
		}
		for _, text := range splitNotes(string(b)) {
			h, err := v.key.open(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %v", file, err)
			}
			v.kept[h.tenant] = append(v.kept[h.tenant], h)
		}
	}
	return v, nil
}

// report says what was verified, and against what.
func (v *verifier) report(w io.Writer, named bool) {
	for _, t := range v.done {
		fmt.Fprintf(w, "%-24q %d leaves, %d begins, %d entries, %d events, %d open, %d parts erased, signed to %d\n  root %s\n",
			t.name, t.size, t.begins, t.entries, t.events, len(t.open), len(t.missing), t.last.size, t.root)
		if t.size > t.last.size {
			fmt.Fprintf(w, "  nobody has signed the last %d\n", t.size-t.last.size)
		}
	}
	fmt.Fprintf(w, "verified: %d leaves of %d tenants\n", v.leaves, len(v.done))
	if !named {
		fmt.Fprintf(w, "the key is the export's own word: compare it with one you have, or use --key\n  %s\n", v.key)
	}
}
