package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// content is the SHA-256 over everything that a version holds: of each name, in
// order, what it is, its mode, and the SHA-256 of its bytes. It is in the ledger,
// and does not rest on git.
func content(entries []entry) string {
	h := sha256.New()
	var n []byte
	for i := range entries {
		e := &entries[i]
		n = append(n[:0], byte(e.kind))
		n = binary.AppendUvarint(n, uint64(e.perm))
		n = binary.AppendUvarint(n, uint64(len(e.path)))
		h.Write(n)
		io.WriteString(h, e.path)
		h.Write(e.sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// modes are those which most names of a version have.
type modes struct{ file, program, folder uint32 }

func (m modes) of(k kind) uint32 {
	switch k {
	case file:
		return m.file
	case program:
		return m.program
	case folder:
		return m.folder
	}
	return 0
}

// usual finds the modes that most names have.
func usual(entries []entry) modes {
	count := [folder + 1]map[uint32]int{}
	for i := range count {
		count[i] = map[uint32]int{}
	}
	for _, e := range entries {
		count[e.kind][e.perm]++
	}
	most := func(k kind, otherwise uint32) uint32 {
		best := otherwise
		for perm, n := range count[k] {
			if n > count[k][best] || n == count[k][best] && perm < best {
				best = perm
			}
		}
		return best
	}
	return modes{most(file, 0o644), most(program, 0o755), most(folder, 0o755)}
}

// meta is what git does not keep of a version, as text: the usual modes, other
// ones, and folders in which nothing is. It is nil where there is nothing to say.
func meta(entries []entry) []byte {
	m := usual(entries)
	var b bytes.Buffer
	fmt.Fprintf(&b, "holdfast modes v1 %o %o %o\n", m.file, m.program, m.folder)
	plain := b.Len()
	for i, e := range entries {
		empty := e.kind == folder && !holds(entries, i)
		if e.kind != link && (empty || e.perm != m.of(e.kind)) {
			word := "mode"
			if e.kind == folder {
				word = "folder"
			}
			fmt.Fprintf(&b, "%s %o %s\n", word, e.perm, strconv.QuoteToASCII(e.path))
		}
	}
	if b.Len() == plain && m == (modes{0o644, 0o755, 0o755}) {
		return nil
	}
	return b.Bytes()
}

// holds says whether something lies in the folder entries[i]: what follows it in
// order may be another name that begins the same ("a-b" before "a/b").
func holds(entries []entry, i int) bool {
	below := entries[i].path + "/"
	at, _ := slices.BinarySearchFunc(entries, below, func(e entry, p string) int { return strings.Compare(e.path, p) })
	return at < len(entries) && strings.HasPrefix(entries[at].path, below)
}

// applyMeta gives the entries of a version, in order, their modes, and adds its
// folders: those that names lie in, and empty ones.
func applyMeta(entries []entry, text []byte) ([]entry, error) {
	m, other, empty := modes{0o644, 0o755, 0o755}, map[string]uint32{}, map[string]bool{}
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if text == nil {
			break
		}
		if i == 0 {
			if _, err := fmt.Sscanf(line, "holdfast modes v1 %o %o %o", &m.file, &m.program, &m.folder); err != nil {
				return nil, fmt.Errorf("its modes cannot be read: %w", err)
			}
			continue
		}
		fields := strings.SplitN(line, " ", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("line %d of its modes cannot be read", i+1)
		}
		perm, err1 := strconv.ParseUint(fields[1], 8, 9)
		path, err2 := strconv.Unquote(fields[2])
		if err1 != nil || err2 != nil || !goodPath(path) {
			return nil, fmt.Errorf("line %d of its modes cannot be read", i+1)
		}
		other[path] = uint32(perm)
		if fields[0] == "folder" {
			empty[path] = true
		}
	}
	there := map[string]bool{}
	for i := range entries {
		e := &entries[i]
		if e.kind != link {
			e.perm = m.of(e.kind)
			if p, ok := other[e.path]; ok {
				e.perm = p
			}
		}
		for dir, _ := split(e.path); dir != "" && !there[dir]; dir, _ = split(dir) {
			there[dir] = true
		}
	}
	for path := range empty {
		for dir := path; dir != "" && !there[dir]; dir, _ = split(dir) {
			there[dir] = true
		}
	}
	for path := range there {
		perm, ok := other[path]
		if !ok {
			perm = m.folder
		}
		entries = append(entries, entry{path: path, kind: folder, perm: perm, read: true})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	for i := 1; i < len(entries); i++ {
		if entries[i].path == entries[i-1].path {
			return nil, fmt.Errorf("it names %s twice", shown(entries[i].path))
		}
	}
	return entries, nil
}

// goodPath says whether a path of a version may be written: below the tree, no
// part of git's own, nothing that means another folder.
func goodPath(path string) bool {
	if path == "" || path == metaName || len(path) > 4096 || strings.ContainsRune(path, 0) {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." || isGit(part) {
			return false
		}
	}
	return true
}
