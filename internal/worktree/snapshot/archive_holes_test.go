package snapshot

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestArchiveWithHoles: a file with holes is refused by name, in either form in which
// tar has them, whether they make it of any size or are none; nothing of it is written.
func TestArchiveWithHoles(t *testing.T) {
	s := newSite(t)
	s.write("a", "one")
	good := s.packed(s.take())
	for name, c := range map[string]struct {
		size int64 // 0 is that of the text, which has no hole then
		make func(*testing.T, tar.Header, []byte, int64) []byte
		why  []string // of archiveStore, and of a file of a tree
	}{
		"a record of holes":               {0, sparse, []string{"with holes", "with holes"}},
		"a terabyte":                      {1 << 40, sparse, []string{"with holes", "with holes"}},
		"the old form":                    {0, oldSparse, []string{"lacks", "no file, folder or link"}},
		"eight gigabytes of the old form": {1<<33 - 1, oldSparse, []string{"lacks", "more of"}},
	} {
		for i, file := range []string{archiveStore, "trees/0/a"} {
			dir := t.TempDir()
			bad := s.exchanged(good, file, func(h tar.Header, text []byte) []byte {
				return c.make(t, h, text, cmp.Or(c.size, int64(len(text))))
			})
			_, err := Unpack(t.Context(), bytes.NewReader(bad), dir)
			if err == nil || !strings.Contains(err.Error(), c.why[i]) {
				t.Errorf("%s, %s: %v", name, file, err)
			}
			if info, err := os.Stat(filepath.Join(dir, file)); err == nil && info.Size() > 0 {
				t.Errorf("%s, %s: %d bytes of it were written", name, file, info.Size())
			}
		}
	}
	if _, err := Unpack(t.Context(), bytes.NewReader(s.exchanged(good, "", nil)), t.TempDir()); err != nil {
		t.Errorf("without any: %v", err)
	}
}

// exchanged is an archive in which make has written what has that name.
func (s *site) exchanged(archive []byte, name string, make func(tar.Header, []byte) []byte) []byte {
	s.t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out)
	if err != nil {
		s.t.Fatal(err)
	}
	s.eachName(archive, func(h *tar.Header, text []byte) {
		var b []byte
		if h.Name == name {
			b = make(*h, text)
		} else {
			b = inTar(s.t, *h, text)
		}
		_, werr := z.Write(b)
		err = errors.Join(err, werr)
	})
	_, werr := z.Write(bytes.Repeat([]byte{0}, 1024))
	if err := errors.Join(err, werr, z.Close()); err != nil {
		s.t.Fatal(err)
	}
	return out.Bytes()
}

// inTar is one name as a tar has it, without the tar's end.
func inTar(t *testing.T, h tar.Header, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := w.WriteHeader(&h)
	_, werr := w.Write(text)
	if err := errors.Join(err, werr, w.Flush()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sparse is a file with a record of its holes, of which none is within text. The
// library writes no such record, so that it stands under another name first.
func sparse(t *testing.T, h tar.Header, text []byte, size int64) []byte {
	h.Format, h.PAXRecords = tar.FormatPAX, map[string]string{}
	for key, value := range map[string]string{"major": "0", "minor": "1", "numblocks": "1", "map": fmt.Sprint("0,", len(text)), "size": fmt.Sprint(size)} {
		h.PAXRecords["GNU_sparse."+key] = value
	}
	return bytes.ReplaceAll(inTar(t, h, text), []byte("GNU_sparse."), []byte("GNU.sparse."))
}

// oldSparse is a file of the type that is one with holes.
func oldSparse(t *testing.T, h tar.Header, text []byte, size int64) []byte {
	h.Format = tar.FormatGNU
	b := inTar(t, h, text)
	b[156] = tar.TypeGNUSparse
	copy(b[386:], fmt.Sprintf("%011o\x00%011o\x00", 0, len(text)))
	copy(b[483:], fmt.Sprintf("%011o\x00", size))
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b[:512] {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}
