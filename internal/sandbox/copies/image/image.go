// Package image makes a root file system for containers of what an operator
// names: a folder that is one, an OCI image layout, or an archive of a root. No
// engine has a part in it.
//
// What is named is copied into a folder of Holdfast's, once for each content, by
// its digest: so that nothing which changes there later gets inside, nothing that
// gets into the page cache reaches the original, and the digest that a posture
// names is that of what ran. The copy belongs to whoever runs Holdfast and has
// directories, regular files and links alone, without set-user-ID bits and
// extended attributes. Whatever stands in what is named is believed to be
// hostile: bounded in bytes, names and depth, and followed nowhere on the host.
package image

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
)

// Source is what an operator names.
type Source struct {
	// Name is the operator's own word for it, which a posture tells.
	Name string
	// Path is an absolute path: of a root's folder, of the folder of an OCI image
	// layout, or of an archive (tar, also packed by gzip or zstd).
	Path string
	// Tag chooses among the images of a layout, by their annotation
	// org.opencontainers.image.ref.name; empty takes the only one.
	Tag string
}

// Limits bound an image. The zero value of each refuses everything.
type Limits struct {
	Bytes  int64 // of all files together, unpacked; of a layout, of all its layers
	Names  int   // files, directories and links; of a layout, of all its layers
	Depth  int   // directories in one another
	Tops   int   // names at the top, each of which is a mount of every run
	Layers int
}

// Usual are the limits where nothing else is said.
func Usual() Limits {
	return Limits{Bytes: 8 << 30, Names: 500_000, Depth: 64, Tops: 64, Layers: 128}
}

// Own says whether a name at the top of a root is the container's: what an image
// has there is not taken.
func Own(name string) bool {
	switch name {
	case "proc", "dev", "sys", "tmp", "code", "workspace":
		return true
	}
	return false
}

// below says whether a path of an image stands at or below a name of Own.
func below(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	return Own(top)
}

// refusal is an image that is not taken, and why.
type refusal struct{ why, hint string }

// Error implements error.
func (r *refusal) Error() string { return r.why }

func refuse(hint, why string, args ...any) error {
	return &refusal{why: fmt.Sprintf(why, args...), hint: hint}
}

// letter is the refusal of a source: a MountError that names it.
func (s Source) letter(err error) error {
	e := &holdfast.Error{Kind: holdfast.KindMount, Why: fmt.Sprintf("the image %s (%s) cannot be used: %v", quoted(s.Name), s.Path, err), Hint: "make it anew; nothing of it was kept", Err: err}
	if r := (*refusal)(nil); errors.As(err, &r) && r.hint != "" {
		e.Hint = r.hint
	}
	return e
}

// quoted shows a name of an image, which may hold anything.
func quoted(name string) string { return fmt.Sprintf("%.200q", name) }

// tally counts what an image takes.
type tally struct {
	limits Limits
	bytes  int64
	names  int
}

func (t *tally) add(name string, size int64) error {
	t.names++
	switch {
	case t.names > t.limits.Names:
		return refuse("take out of it what programs do not need", "it has more than %d files, directories and links", t.limits.Names)
	case size < 0 || size > t.limits.Bytes-t.bytes:
		return refuse("take out of it what programs do not need", "it takes more than %s unpacked, with %s", amount(t.limits.Bytes), quoted(name))
	case strings.Count(name, "/") >= t.limits.Depth:
		return refuse("", "%s lies more than %d directories deep", quoted(name), t.limits.Depth)
	}
	t.bytes += size
	return nil
}

func amount(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// maxLink bounds where a link points to, maxName a path (Linux: PATH_MAX), and
// maxPart one name of it (NAME_MAX).
const (
	maxLink = 4095
	maxName = 4095
	maxPart = 255
)

// goodLink refuses a link whose words climb out of the root from where it
// stands. One that is absolute means the root inside, where it is followed.
func goodLink(name, to string) error {
	switch {
	case to == "" || len(to) > maxLink || strings.ContainsRune(to, 0):
		return refuse("", "the link %s points to no name", quoted(name))
	}
	at := strings.Count(name, "/")
	if strings.HasPrefix(to, "/") {
		at = 0
	}
	for part := range strings.SplitSeq(to, "/") {
		switch part {
		case "", ".":
		case "..":
			if at--; at < 0 {
				return refuse("point it to a name inside of the image", "the link %s climbs out of it, to %s", quoted(name), quoted(to))
			}
		default:
			at++
		}
	}
	return nil
}

// goodTop refuses a name at the top by which nothing could be mounted.
func goodTop(name string) error {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return refuse("rename it", "%s, at its top, is no name that a runtime takes", quoted(name))
	}
	return nil
}

// goodName refuses a name of an archive that is not plainly one inside of it,
// and returns its shortest form; "." is the root itself.
func goodName(name string) (string, error) {
	switch {
	case name == "" || strings.ContainsRune(name, 0):
		return "", refuse("", "it has an entry without a name")
	case strings.HasPrefix(name, "/"):
		return "", refuse("make the archive with names that are relative (`tar -C FOLDER -c .`)", "it has the absolute name %s", quoted(name))
	case len(name) > maxName:
		return "", refuse("", "it has a name of more than %d bytes, %s", maxName, quoted(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", refuse("", "it has the name %s, which climbs out of it", quoted(name))
		}
		if len(part) > maxPart {
			return "", refuse("", "it has a name of more than %d bytes, %s", maxPart, quoted(name))
		}
	}
	return path.Clean(name), nil
}

// notes counts what an image has and its copy has not.
type notes struct {
	setuid, rights, unread   int
	firstSetuid, firstRights string
	firstUnread              string
}

func (n *notes) special(name string) {
	if n.setuid++; n.setuid == 1 {
		n.firstSetuid = name
	}
}

func (n *notes) capable(name string) {
	if n.rights++; n.rights == 1 {
		n.firstRights = name
	}
}

func (n *notes) hidden(name string) {
	if n.unread++; n.unread == 1 {
		n.firstUnread = name
	}
}

// lines are the notes, each a sentence.
func (n *notes) lines() []string {
	var list []string
	tell := func(count int, first, what string) {
		if count > 0 {
			list = append(list, fmt.Sprintf("%d of the image's files %s, %s first", count, what, quoted(first)))
		}
	}
	tell(n.setuid, n.firstSetuid, "lost a set-user-ID or set-group-ID bit")
	tell(n.rights, n.firstRights, "lost capabilities of their own")
	tell(n.unread, n.firstUnread, "are not there, because Holdfast may not read them")
	return list
}
