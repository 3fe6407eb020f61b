package versions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/command"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// send verifies the archive and gives it to the configured command.
func (s *Service) send(ctx context.Context, conf *Archive, a *archived, file, dir string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.verified(ctx, f, a, dir); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	left, said, err := s.pipe(ctx, conf, a.Archive, conf.limit(), f)
	switch a.Said = said; {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &holdfast.Error{Kind: holdfast.KindOperation, Rule: "archive/command", Why: "the archive's command failed: " + excerpt.Of(err.Error(), 256),
			Hint: "run it by hand on a file; the snapshot and the store are as they were", Err: err}
	case left > 0:
		return &holdfast.Error{Kind: holdfast.KindOperation, Rule: "archive/command", Why: "the archive's command ended well before it had read the whole archive",
			Hint: "it must read its standard input to its end"}
	}
	return nil
}

// fetch has the archive that was sent given back, and verifies it as one in a folder is.
// Nothing of it is unpacked before it is known to be byte for byte what was sent.
func (s *Service) fetch(ctx context.Context, conf *Archive, a *archived, dir string) (err error) {
	f, err := os.OpenFile(filepath.Join(dir, "back"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := newSummed(f)
	_, err = s.Run(ctx, command.Command{
		Name: "snapshots.archive.verify", Argv: conf.Verify, Env: conf.environment(a.Archive), Limit: conf.limit(),
		Output: &noMore{sum, a.Bytes},
	})
	switch {
	case errors.Is(err, errMore):
		return notSent(fmt.Sprintf("more than its %d bytes", a.Bytes))
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &holdfast.Error{Kind: holdfast.KindOperation, Rule: "archive/command", Why: "the archive was sent, and the command that gives it back failed: " + excerpt.Of(err.Error(), 256),
			Hint: "run it by hand with HOLDFAST_ARCHIVE=" + a.Archive + "; the snapshot and the store are as they were", Err: err}
	case sum.n == 0:
		return notSent("nothing")
	case sum.text() != a.SHA256:
		return notSent(fmt.Sprintf("%d bytes of SHA-256 %s", sum.n, sum.text()))
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return s.verified(ctx, f, a, dir)
}

// notSent is the error of an archive that does not come back as it was sent.
func notSent(what string) error {
	return &holdfast.Error{Kind: holdfast.KindConflict, Rule: "archive/damaged", Why: "the archive was sent, and what was given back is not it: " + what,
		Hint: "look at what stands where archives go, and archive again once it keeps what it is given"}
}

// noMore takes so many bytes and no more.
type noMore struct {
	to   io.Writer
	left int64
}

var errMore = errors.New("there is more than there should be")

// Write implements io.Writer.
func (n *noMore) Write(p []byte) (int, error) {
	if n.left -= int64(len(p)); n.left < 0 {
		return 0, errMore
	}
	return n.to.Write(p)
}

// pipe runs the command with the archive on its standard input. left is how much of
// it the command never read, though it ended well: that is known because the pipe
// is kept open here too.
func (s *Service) pipe(
	ctx context.Context, conf *Archive, name string, limit time.Duration, f *os.File,
) (left int64, said string, err error) {
	out, in, err := os.Pipe()
	if err != nil {
		return 0, "", err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(in, f)
		ended <- errors.Join(err, in.Close())
	}()
	said, err = s.Run(ctx, command.Command{
		Name: "snapshots.archive", Argv: conf.Command, Env: conf.environment(name), Limit: limit, Input: out,
	})
	if err == nil {
		left, err = io.Copy(io.Discard, out)
	}
	_ = out.Close() // what still writes to it ends
	if err != nil {
		_ = in.SetWriteDeadline(time.Unix(1, 0)) // even where a process that the command left holds its input, and never reads
	}
	if werr := <-ended; err == nil {
		err = werr
	}
	return left, said, err
}
