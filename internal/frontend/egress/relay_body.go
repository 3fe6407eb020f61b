package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/coding"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/frames"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
)

// pieceSize is how much of a long answer is read at a time.
const pieceSize = 32 << 10

// body gives the answer's body to the client in the way that its kind asks for.
func (a *answer) body(ctx context.Context) error {
	if a.mode == domain.Off {
		return a.asSent()
	}
	list, err := coding.Parse(a.resp.Header["Content-Encoding"])
	if err != nil {
		if a.d.Binary && len(a.secret) == 0 && a.mode != domain.Restore { // else the credential could stand in it
			return a.unread(a.resp.Body, a.resp.Header["Content-Encoding"])
		}
		return upstreamLied(a.resp, "an encoding that is not known, though it was asked for none", err)
	}
	in, err := coding.Decode(a.resp.Body, list, a.p.out.memory.NewShare(heldBy(a.ctx)))
	if err != nil {
		return a.readError(err)
	}
	defer in.Close()
	var capped io.Reader = coding.UpTo(in, a.most)
	kind, params := coding.MediaKind(a.got.contentType)
	length := a.resp.ContentLength
	if len(list) > 0 {
		length = -1
	}
	switch {
	case kind == "text/event-stream":
		return a.events(ctx, capped, frames.Events)
	}
	if a.mode == domain.Restore {
		a.resp.ContentLength = length
		return a.restoreBody(capped, length)
	}
	capped = a.model.read(capped)
	switch {
	case coding.IsLines(kind):
		return a.events(ctx, capped, frames.Lines)
	case length >= 0 && length <= maxWhole, length < 0 && coding.IsDocument(kind), a.c.HasDetector():
		return a.whole(capped, max(length, 0))
	}
	return a.pieces(capped, kind, params, length)
}

// whole reads an answer to its end and redacts it as one document. What turns
// out too long for that goes on in pieces.
func (a *answer) whole(in io.Reader, length int64) error {
	share := a.p.out.memory.NewShare(heldBy(a.ctx))
	defer share.Done()
	most := int64(maxWhole)
	if a.c.HasDetector() {
		most = detector.MaxText
	}
	raw, err := coding.ReadWhole(io.LimitReader(in, most+1), most+1, min(length, most), share.Grow)
	if err != nil {
		return a.readError(err)
	}
	if int64(len(raw)) > most {
		if a.c.HasDetector() && !(a.d.Binary && coding.IsBinary(raw)) {
			return coding.NewSizeError("answer of a row with a detector", most)
		}
		kind, params := coding.MediaKind(a.got.contentType)
		return a.pieces(io.MultiReader(bytes.NewReader(raw), in), kind, params, -1)
	}
	out, found, failed := a.p.out.cleaners.CleanBody(a.c, a.listRules(), a.got.contentType, raw, share)
	if failed != nil {
		if cleaner.IsUnscannable(failed) && coding.IsBinary(raw) {
			return a.binaryRefused()
		}
		return failed
	}
	a.found(found)
	a.binary = coding.IsBinary(out) || a.d.Binary && coding.IsPackets(a.got.contentType, out)
	a.header["Content-Length"] = []string{strconv.Itoa(len(out))}
	if len(out) == 0 {
		a.begin()
		return nil
	}
	_, err = a.Write(out)
	return err
}

// pieces redacts a long answer, or one whose length is not known, as it comes.
func (a *answer) pieces(in io.Reader, kind string, params map[string]string, length int64) error {
	buf := make([]byte, pieceSize)
	n, err := readSome(in, buf)
	if n == 0 {
		if err != io.EOF {
			return a.readError(err)
		}
		a.begin()
		return nil
	}
	first := buf[:n]
	rest := io.MultiReader(bytes.NewReader(bytes.Clone(first)), &failing{in, err})
	if coding.LooksBinary(first) || !coding.IsTextual(kind) && a.d.Binary && (coding.IsBinary(first) ||
		coding.IsPackets(kind, first)) {
		if !a.d.Binary {
			return a.binaryRefused()
		}
		if length >= 0 {
			a.header["Content-Length"] = []string{strconv.FormatInt(length, 10)}
		}
		return a.watchBinary(rest, buf)
	}
	if !coding.IsReadableSet(params["charset"]) {
		return cleaner.AsRedactionError(errors.New("text in a character set that cannot be read as it comes"))
	}
	return a.copyText(rest, buf)
}

// readSome waits for the first bytes, and for no more than come with them.
func readSome(r io.Reader, buf []byte) (int, error) {
	for range 100 {
		if n, err := r.Read(buf); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// failing is r, which has already failed with err if that is not nil.
type failing struct {
	r   io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.r.Read(p)
}

// copyText is text through the engine: held back is only what may be part of a
// finding, and what is free goes to the client at once.
func (a *answer) copyText(in io.Reader, buf []byte) error {
	a.flush = true
	s := a.c.Stream(a)
	defer func() { a.found(s.Findings()) }()
	for {
		n, err := in.Read(buf)
		if bytes.IndexByte(buf[:n], 0) >= 0 {
			// No text in a set that is readable here has it: what follows
			// could be in one that is not.
			return a.binaryRefused()
		}
		if n > 0 {
			if _, err := s.Write(buf[:n]); err != nil {
				return err
			}
			if refused := a.listRules().ListRefused(s.Findings()); len(refused) > 0 {
				return a.listRules().Refuse("the answer", refused)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return a.readError(err)
		}
	}
	if err := s.Close(); err != nil {
		return err
	}
	a.begin()
	return nil
}

// unread passes a body of which nothing is read: it is hashed and capped.
func (a *answer) unread(in io.Reader, encoding []string) error {
	if len(encoding) > 0 {
		a.header["Content-Encoding"] = encoding
	}
	if a.resp.ContentLength >= 0 {
		a.header["Content-Length"] = []string{strconv.FormatInt(a.resp.ContentLength, 10)}
	}
	a.flush = a.resp.ContentLength < 0
	return a.copyBinary(coding.UpTo(in, a.most), make([]byte, pieceSize))
}

// copyBinary passes what is not looked into, but for the credential that was
// sent: an answer that tells it ends before it.
func (a *answer) copyBinary(in io.Reader, buf []byte) error {
	a.binary = true
	var held []byte // what the credential may begin with
	for {
		n, err := in.Read(buf)
		if n > 0 {
			b := append(held, buf[:n]...)
			if len(a.secret) > 0 && bytes.Contains(b, a.secret) {
				return cleaner.AsRedactionError(errors.New("the upstream tells the credential that it was sent"))
			}
			keep := overlap(b, a.secret)
			if _, err := a.Write(b[:len(b)-keep]); err != nil {
				return err
			}
			held = bytes.Clone(b[len(b)-keep:])
		}
		if err == io.EOF {
			if _, err := a.Write(held); err != nil {
				return err
			}
			return nil
		}
		if err != nil {
			return a.readError(err)
		}
	}
}

// overlap is how many of b's last bytes are s's first.
func overlap(b, s []byte) int {
	for n := min(len(b), len(s)-1); n > 0; n-- {
		if bytes.HasSuffix(b, s[:n]) {
			return n
		}
	}
	return 0
}

// watched is how much of a binary answer is held until what follows it was
// looked at: a registered secret is not longer, in any of its forms.
const watched = 8 << 10

// watchBinary passes a binary answer as far as no registered secret and no
// credential that was sent stands in it; they cannot be masked there.
func (a *answer) watchBinary(in io.Reader, buf []byte) error {
	a.binary = true
	var held []byte
	for {
		n, err := in.Read(buf)
		if err != nil && err != io.EOF {
			return a.readError(err)
		}
		held = append(held, buf[:n]...)
		if len(held) < pieceSize && err == nil {
			continue
		}
		failed := a.p.out.cleaners.RunWithin(len(held), func() error { _, err := a.c.PassBinary(held); return err })
		if failed != nil {
			return cleaner.AsRedactionError(failed)
		}
		free := len(held)
		if err == nil {
			free -= watched
		}
		if free > 0 {
			if _, err := a.Write(held[:free]); err != nil {
				return err
			}
			held = append(held[:0], held[free:]...)
		}
		if err == io.EOF {
			a.begin()
			return nil
		}
	}
}

func (a *answer) binaryRefused() error {
	return &holdfast.Error{
		Kind: holdfast.KindDomainBlocked, Gate: holdfast.K2, Rule: "egress/binary",
		Why:  "the answer of " + a.d.Name + " is binary, and cannot be looked into",
		Hint: "ask for text; where binary answers are meant, the domain says `binary: allow`",
	}
}
