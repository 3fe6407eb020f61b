package daemon

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/excerpt"
)

// send verifies the archive and gives it to the configured command.
func (s *snapshots) send(ctx context.Context, conf *ArchiveConfig, a *archived, file, dir string) error {
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
	limit := time.Duration(cmp.Or(conf.Timeout, Duration(archiveTime)))
	left, said, err := s.pipe(ctx, conf, a.Archive, limit, f)
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

// pipe runs the command with the archive on its standard input. left is how much of
// it the command never read, though it ended well: that is known because the pipe
// is kept open here too.
func (s *snapshots) pipe(ctx context.Context, conf *ArchiveConfig, name string, limit time.Duration, f *os.File) (left int64, said string, err error) {
	out, in, err := os.Pipe()
	if err != nil {
		return 0, "", err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(in, f)
		ended <- errors.Join(err, in.Close())
	}()
	env := append(append([]string(nil), conf.Env...), "HOLDFAST_ARCHIVE="+name)
	said, err = s.d.runHook(ctx, "snapshots.archive", conf.Command, env, limit, out)
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
