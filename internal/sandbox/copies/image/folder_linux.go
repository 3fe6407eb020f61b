package image

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// copyFolder copies what s found below the open folder root into the new folder
// to, and looks again: what changed meanwhile is refused. Files that may not be
// read are left out, and noted in s.
func (s *scanner) copyFolder(root int, to string) error {
	second := map[[2]uint64]string{} // the copies of files that have several names
	for _, i := range s.list {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		at := filepath.Join(to, i.name) // its parents are folders that were made here
		var err error
		switch {
		case i.is(unix.S_IFDIR):
			err = os.Mkdir(at, 0o700)
		case i.is(unix.S_IFLNK):
			err = os.Symlink(i.link, at)
		default:
			id := [2]uint64{i.st.Dev, i.st.Ino}
			if first := second[id]; first != "" {
				err = os.Link(first, at)
				break
			}
			err = i.copyTo(root, at)
			if errors.Is(err, unix.EACCES) {
				s.notes.hidden(i.name)
				err = nil
			} else if i.st.Nlink > 1 {
				second[id] = at
			}
		}
		if err != nil {
			return err
		}
	}
	again, err := scan(s.ctx, root, s.tally.limits, s.home)
	if err != nil {
		return err
	}
	if again.key() != s.key() {
		return refuse("let nobody write there meanwhile, and try again", "it changed while it was read")
	}
	return s.permit(to)
}

func (i item) copyTo(root int, at string) error {
	f, err := openItem(root, i)
	if err != nil {
		return err
	}
	defer f.Close()
	out, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(f, i.st.Size))
	if err == nil && (n != i.st.Size || !i.same(int(f.Fd()))) {
		err = changed(i.name, nil)
	}
	return errors.Join(err, out.Chmod(mode(i.st.Mode, 0o400)), out.Close(), os.Chtimes(at, time.Time{}, time.Unix(i.st.Mtim.Unix())))
}

// permit gives the copies of folders their modes, when nothing more is made in
// them.
func (s *scanner) permit(to string) error {
	for _, i := range s.list {
		if i.is(unix.S_IFDIR) {
			if err := os.Chmod(filepath.Join(to, i.name), mode(i.st.Mode, 0o700)); err != nil {
				return err
			}
		}
	}
	return nil
}

// mode is what a copy may: what the original may, without bits that give another
// identity, and always what its owner needs to read and to remove it.
func mode(of uint32, least os.FileMode) os.FileMode { return os.FileMode(of&0o777) | least }
