package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// list reads what a commit holds, in order of paths, without the contents.
func (r *repo) list(ctx context.Context, commit string) ([]entry, error) {
	if !isName(commit) {
		return nil, refused(holdfast.KindNotFound, "`holdfast snapshot ls` lists them", "%.100q is no version", commit)
	}
	b, err := r.git.run(ctx, nil, maxNamesRead, "ls-tree", "-r", "-z", "-l", "--full-tree", commit)
	if err != nil {
		return nil, unreadable(err)
	}
	var out []entry
	var about entry
	for line := range bytes.SplitSeq(b, []byte{0}) {
		if len(line) == 0 {
			continue
		}
		e, err := entryOf(string(line))
		if err != nil {
			return nil, err
		}
		if e.path == metaName {
			about = e
			continue
		}
		if !goodPath(e.path) {
			return nil, damaged("it names " + shown(e.path))
		}
		out = append(out, e)
	}
	var text []byte
	if about.path != "" {
		if text, err = r.git.run(ctx, nil, 64<<20, "cat-file", "blob", hexOf(about.blob)); err != nil {
			return nil, unreadable(err)
		}
		if blobOf(text) != about.blob {
			return nil, damaged("its modes are not what they were")
		}
	}
	if out, err = applyMeta(out, text); err != nil {
		return nil, damaged(err.Error())
	}
	return out, nil
}

// damaged is the error of a version that is not what was kept.
func damaged(why string) error {
	return &holdfast.Error{Kind: holdfast.KindInternal, Rule: "snapshot/damaged", Why: "the version is damaged: " + why,
		Hint: "nothing was changed by it; another one is in `holdfast snapshot ls`, or in the archive"}
}

// isDamaged says whether an error is of a version that is not what was kept.
func isDamaged(err error) bool {
	var own *holdfast.Error
	return errors.As(err, &own) && own.Rule == "snapshot/damaged"
}

// unreadable is the error of a version that git does not give: a damaged one, but where
// git is missing or was ended.
func unreadable(err error) error {
	var own *holdfast.Error
	if errors.As(err, &own) && own.Rule == "git/failed" {
		return damaged(err.Error())
	}
	return err
}

// entryOf reads "100644 blob NAME   SIZE\tPATH".
func entryOf(line string) (entry, error) {
	head, path, ok := strings.Cut(line, "\t")
	f := strings.Fields(head)
	if !ok || len(f) != 4 {
		return entry{}, damaged(fmt.Sprintf("git says %.200q", line))
	}
	e := entry{path: path}
	switch f[0] + " " + f[1] {
	case "100644 blob":
		e.kind = file
	case "100755 blob":
		e.kind = program
	case "120000 blob":
		e.kind = link
	default:
		return entry{}, damaged(fmt.Sprintf("%s is %.20q", shown(path), f[0]))
	}
	name, err := hex.DecodeString(f[2])
	size, err2 := strconv.ParseInt(f[3], 10, 64)
	if err != nil || err2 != nil || len(name) != 20 || size < 0 {
		return entry{}, damaged(fmt.Sprintf("git says %.200q", line))
	}
	e.blob, e.size = [20]byte(name), size
	return e, nil
}

// blobs gives the contents of versions, one after the other.
type blobs struct {
	ctx context.Context // with which git ends
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader

	cut bool // in the middle of a content, of which git waits to be rid
}

func (r *repo) blobs(ctx context.Context) (*blobs, error) {
	cmd := r.git.command(ctx, "cat-file", "--batch")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, r.git.failure(ctx, "cat-file", err, "")
	}
	return &blobs{ctx: ctx, cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<18)}, nil
}

// copy writes the content of e to w and fills in its SHA-256. What is not what its
// name says is an error, after some of it was written; after an error there is no
// other content to be had.
func (b *blobs) copy(e *entry, w io.Writer) error {
	err := b.next(e, w)
	if err != nil && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	b.cut = b.cut || err != nil
	return err
}

func (b *blobs) next(e *entry, w io.Writer) error {
	if _, err := fmt.Fprintln(b.in, hexOf(e.blob)); err != nil {
		return damaged("git ended")
	}
	line, err := b.out.ReadString('\n')
	if err != nil {
		return damaged("git ended")
	}
	f := strings.Fields(line)
	if len(f) != 3 || f[0] != hexOf(e.blob) || f[1] != "blob" || f[2] != strconv.FormatInt(e.size, 10) {
		return damaged(fmt.Sprintf("the content of %s is not there (%.100q)", shown(e.path), strings.TrimSpace(line)))
	}
	one, two := sha1.New(), sha256.New()
	fmt.Fprintf(one, "blob %d\x00", e.size)
	n, err := io.Copy(io.MultiWriter(w, one, two), io.LimitReader(b.out, e.size))
	if err != nil {
		return err
	}
	if n != e.size || [20]byte(one.Sum(nil)) != e.blob {
		return damaged("the content of " + shown(e.path) + " is not what it was")
	}
	if _, err := b.out.Discard(1); err != nil {
		return damaged("git ended")
	}
	e.sum, e.read = [32]byte(two.Sum(nil)), true
	return nil
}

func (b *blobs) close() error {
	if b.cut {
		_ = b.cmd.Process.Kill()
		_, _ = b.in.Close(), b.cmd.Wait()
		return nil // the error of what cut it is the one
	}
	err := b.in.Close()
	if werr := b.cmd.Wait(); werr != nil && !errors.Is(werr, exec.ErrWaitDelay) {
		err = errors.Join(err, werr)
	}
	return err
}
