package language

import (
	"bufio"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// loader finds libraries as the dynamic loader does: by RPATH or RUNPATH, then
// in the loader's own directories and those of /etc/ld.so.conf.
type loader struct {
	dirs []string
	seen map[string]bool // names that were looked for
}

func newLoader() *loader {
	triplet := map[elf.Machine]string{elf.EM_X86_64: "x86_64-linux-gnu", elf.EM_AARCH64: "aarch64-linux-gnu"}[Machine()]
	dirs := []string{"/lib/" + triplet, "/usr/lib/" + triplet, "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"}
	return &loader{dirs: append(dirs, configured("/etc/ld.so.conf", 0)...), seen: map[string]bool{}}
}

// configured reads the directories of a loader configuration, with what it
// includes.
func configured(path string, depth int) []string {
	f, err := os.Open(path)
	if err != nil || depth > 4 {
		return nil
	}
	defer f.Close()
	var dirs []string
	for s := bufio.NewScanner(f); s.Scan(); {
		line, _, _ := strings.Cut(s.Text(), "#")
		fields := strings.Fields(line)
		switch {
		case len(fields) == 2 && fields[0] == "include":
			pattern := fields[1]
			if !filepath.IsAbs(pattern) {
				pattern = filepath.Join(filepath.Dir(path), pattern)
			}
			more, _ := filepath.Glob(pattern) // its only error is a bad pattern
			for _, p := range more {
				dirs = append(dirs, configured(p, depth+1)...)
			}
		case len(fields) == 1 && filepath.IsAbs(fields[0]):
			dirs = append(dirs, fields[0])
		}
	}
	return dirs
}

// object is what one ELF file asks for.
type object struct {
	interp string
	needed []string
	paths  []string // RPATH or RUNPATH, $ORIGIN resolved
}

// readObject reads an ELF file of this machine; ok is false for another file.
func readObject(path string) (o object, ok bool, err error) {
	f, err := elf.Open(path)
	if err != nil {
		if _, bad := err.(*elf.FormatError); bad {
			return o, false, nil
		}
		return o, false, err
	}
	defer f.Close()
	if f.Machine != Machine() || f.Class != elf.ELFCLASS64 {
		return o, false, nil
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b := make([]byte, min(p.Filesz, 4096))
			if _, err := p.ReadAt(b, 0); err != nil {
				return o, false, err
			}
			o.interp = strings.TrimRight(string(b), "\x00")
		}
	}
	if o.needed, err = f.ImportedLibraries(); err != nil {
		return o, false, fmt.Errorf("%s: %w", path, err)
	}
	o.paths = searchPaths(f, path)
	return o, true, nil
}

func searchPaths(f *elf.File, path string) []string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path
	}
	list, _ := f.DynString(elf.DT_RUNPATH) // no dynamic section: nothing is needed either
	if len(list) == 0 {
		list, _ = f.DynString(elf.DT_RPATH)
	}
	origin := strings.NewReplacer("$ORIGIN", filepath.Dir(real), "${ORIGIN}", filepath.Dir(real))
	var dirs []string
	for _, p := range list {
		for dir := range strings.SplitSeq(p, ":") {
			if dir = origin.Replace(dir); filepath.IsAbs(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// find is the file that a library's name means to an object.
func (l *loader) find(name string, o object) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	for _, dirs := range [][]string{o.paths, l.dirs} {
		for _, dir := range dirs {
			p := filepath.Join(dir, name)
			if _, err := os.Stat(p); err != nil {
				continue
			}
			if _, ok, err := readObject(p); err == nil && ok {
				return p, nil
			}
		}
	}
	return "", fmt.Errorf("the library %s is not found", name)
}

// program adds an executable, its loader, and every library that it needs.
func (m *manifest) program(src, dst string) error {
	o, ok, err := readObject(src)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%s is no program for this machine", src)
	}
	if o.interp != "" {
		m.loader.seen[filepath.Base(o.interp)] = true
		if err := m.file(o.interp, o.interp); err != nil {
			return err
		}
		if err := m.libraryHome(o); err != nil {
			return err
		}
	}
	if err := m.file(src, dst); err != nil {
		return err
	}
	if err := m.needs(src, o); err != nil {
		return err
	}
	return m.unspoken(src, o)
}

// unspoken adds the library that glibc loads by itself when a thread is told to
// end, as Python's daemon threads are when the program does: without it the whole
// program is aborted. A host that has none does as it would there.
func (m *manifest) unspoken(src string, o object) error {
	const unwinder = "libgcc_s.so.1"
	if _, err := m.loader.find(unwinder, o); m.libs == "" || err != nil {
		return nil
	}
	o.needed = []string{unwinder}
	return m.needs(src, o)
}

// libraryHome says where libraries go: where the C library was found, which is
// a directory that the loader searches without being told.
func (m *manifest) libraryHome(o object) error {
	for _, name := range o.needed {
		if strings.HasPrefix(name, "libc.") {
			p, err := m.loader.find(name, o)
			if err == nil {
				m.libs = filepath.Dir(p)
			}
			return err
		}
	}
	return nil
}

// needs adds what an object needs, and what that needs.
func (m *manifest) needs(src string, o object) error {
	for _, name := range o.needed {
		base := filepath.Base(name)
		if m.loader.seen[base] {
			continue
		}
		m.loader.seen[base] = true
		p, err := m.loader.find(name, o)
		if err != nil {
			return fmt.Errorf("%s: %w", src, err)
		}
		next, _, err := readObject(p)
		if err != nil {
			return err
		}
		if err := m.file(p, filepath.Join(m.libs, base)); err != nil {
			return err
		}
		if err := m.needs(p, next); err != nil {
			return err
		}
	}
	return nil
}
