package egress

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/coding"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/pieces"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/modeltext"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/substitute"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
)

// maxRestored bounds an answer that is restored as one document, in bytes. A longer one keeps its placeholders.
const maxRestored = 16 << 20

// responseOf returns what happens to the answers of a row: placeholders are restored only where those of the
// request are known.
func responseOf(d *domain.Domain, m *model) domain.Redaction {
	if d.Response == domain.Restore && (m == nil || m.mapped == nil) {
		return domain.Mask
	}
	return d.Response
}

// restoreDocument gives an answer that is one document to the client, with the values of its placeholders.
func (a *answer) restoreDocument(in io.Reader, length int64) error {
	share := a.p.out.memory.NewShare(heldBy(a.ctx))
	defer share.Done()
	raw, err := coding.ReadWhole(io.LimitReader(in, maxRestored+1), maxRestored+1, length, share.Grow)
	if err != nil {
		return a.readError(err)
	}
	a.keepText(raw)
	if len(raw) > maxRestored {
		return a.copyBinary(io.MultiReader(bytes.NewReader(raw), in), make([]byte, pieceSize))
	}
	out := a.hideSent(raw)
	if a.got.status < http.StatusBadRequest {
		var n mapping.Counts
		out, n = substitute.Restore(a.model.mapped.placeholders, a.model.req.Dialect, out)
		a.model.mapped.addCounts(n)
	}
	a.header["Content-Length"] = []string{strconv.Itoa(len(out))}
	a.begin()
	_, err = a.Write(out)
	return err
}

// hideSent masks the credential that was sent, where a provider tells it.
func (a *answer) hideSent(b []byte) []byte {
	if len(a.secret) == 0 || !bytes.Contains(b, a.secret) {
		return b
	}
	return bytes.ReplaceAll(b, a.secret, []byte("[secret]"))
}

// restoreBody gives the body of a model's answer to the client: nothing in it is changed but placeholders.
func (a *answer) restoreBody(in io.Reader, length int64) error {
	if kind, _ := coding.MediaKind(a.got.contentType); coding.IsDocument(kind) {
		return a.restoreDocument(a.model.read(in), max(length, 0))
	}
	return a.unread(a.model.read(in), nil)
}

// keepText keeps the beginning of an answer for its record, and all of one that rules judge whole.
func (a *answer) keepText(b []byte) {
	most := maxText
	if _, held := a.w.(*heldResponse); held {
		most = maxHeld
	}
	if room := most - len(a.text); room > 0 {
		a.text = append(a.text, b[:min(len(b), room)]...)
	}
}

// restoreEvent makes an event of data in which the placeholders of its texts are restored. What a model says in
// pieces is restored as one text. What only keeps the connection awake waits for nothing.
func (e *events) restoreEvent(ev *pieces.Event, block, data []byte) error {
	if pieces.IsKeepalive(data) {
		e.out = append(e.out, block...)
		return nil
	}
	m := e.a.model
	if e.pieces == nil {
		e.pieces = modeltext.NewPieceReader(m.req.Dialect)
	}
	ev.Doc = bytes.Clone(bytes.TrimSpace(e.a.hideSent(data)))
	list, err := e.pieces.ListPieces(ev.Doc)
	if err != nil {
		list = nil // what is no event of the dialect passes as it is
	}
	for _, p := range list {
		value := ev.Doc[p.Start:p.End]
		if len(value) == 0 {
			continue // the end of a text that came before
		}
		switch {
		case p.Kind == modeltext.Signed:
			e.signed.AddPiece(p.Key, value)
			continue
		case p.Kind == modeltext.Data:
			out, n := m.mapped.placeholders.RestoreText(true, value)
			m.mapped.addCounts(n)
			ev.Slots = append(ev.Slots, pieces.NewFilledSlot(p.Start, p.End, false, out))
		case p.Kind == modeltext.Plain, p.Kind == modeltext.Arguments:
			text, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				continue
			}
			open := func(w io.Writer) pieces.Stream {
				return m.mapped.placeholders.Restore(p.Kind == modeltext.Arguments, w)
			}
			s := pieces.NewSlot(p.Start, p.End, true)
			if err := e.place([]byte(p.Key), open).Put(s, text); err != nil {
				return err
			}
			ev.Slots = append(ev.Slots, s)
		}
	}
	for _, p := range list {
		if p.Ends {
			e.endPlace(p.Key)
			e.signed.NoteWhole(p.Key, m.mapped.placeholders)
		}
	}
	e.push(ev)
	return nil
}
