package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/ledger"
)

// What the files that verification is given may hold, in bytes.
const (
	maxKeyText = 4 << 10
	maxNotes   = 1 << 20
	maxProof   = 4 << 20
)

// openPlain opens a regular file, and waits for nobody.
func openPlain(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fail("name a file", "%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readPlain reads a regular file of at most limit bytes.
func readPlain(path string, limit int64) ([]byte, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, fail("", "%s has more than %s", path, bytesOf(limit))
	}
	return b, err
}

// verifier is the public key: given as text or in a file, else the state's.
func (a *app) verifier(text string) (*ledger.Verifier, error) {
	if text == "" {
		p, err := a.paths()
		if err != nil {
			return nil, err
		}
		return daemon.LedgerKey(p)
	}
	v, err := ledger.ParseVerifier(strings.TrimSpace(text))
	if err == nil {
		return v, nil
	}
	b, ferr := readPlain(text, maxKeyText)
	if ferr != nil && !errors.Is(ferr, os.ErrNotExist) {
		return nil, ferr
	}
	if ferr != nil {
		return nil, usage("give what `holdfast ledger key` prints, or a file that holds it", "--key is no public key: %v", err)
	}
	return ledger.ParseVerifier(strings.TrimSpace(string(b)))
}

// checkpoints opens the notes that files hold, several to a file with an
// empty line between them, as `ledger checkpoint` prints them.
func checkpoints(key *ledger.Verifier, files []string) ([]ledger.SignedCheckpoint, error) {
	var out []ledger.SignedCheckpoint
	for _, file := range files {
		b, err := readPlain(file, maxNotes)
		if err != nil {
			return nil, err
		}
		for _, note := range notes(b) {
			c, err := key.Open(note)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// notes splits a text into signed notes: a body, an empty line, and lines of
// signatures, each of which begins with a dash.
func notes(b []byte) [][]byte {
	var out [][]byte
	var cur []byte
	signed := false
	for line := range bytes.Lines(b) {
		if signed && !bytes.HasPrefix(line, []byte("— ")) {
			out, cur, signed = append(out, cur), nil, false
		}
		if len(cur) == 0 && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		cur = append(cur, line...)
		signed = signed || bytes.HasPrefix(line, []byte("— "))
	}
	if len(cur) > 0 {
		out = append(out, cur)
	}
	return out
}
