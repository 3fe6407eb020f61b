package workroot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/grant"
)

// Descriptors of such a launcher beside its socket.
const (
	SpecFD  = 4 // the order for its root, as JSON
	TreesFD = 5 // and on: mounts that are ready to be put in their places
)

// Root is what the root of a workspace is made of. Paths are those of
// the host, and inside they are the same.
type Root struct {
	Root    bool         `json:"root"`  // Holdfast is root: trees come as mounts
	ID      int          `json:"id"`    // who the workload is inside
	Owner   int          `json:"owner"` // the workload in the launcher's namespace
	Home    string       `json:"home"`
	Shell   string       `json:"shell"`
	Host    string       `json:"host"`
	Toolbox []string     `json:"toolbox"`
	Trees   []grant.Tree `json:"trees"`
	Exec    bool         `json:"exec"`

	Network *sandbox.Network `json:"network,omitempty"`
	Listed  bool             `json:"listed,omitempty"` // it does without nf_tables
}

// The root is built step by step: room is where what is built stands, and old where the host's files are meanwhile.
const (
	room = "/new"
	old  = "/old"
)

// Step is one step of building the root.
type Step struct {
	What string
	Do   func() error
}

// ListSteps returns how the root is built, once mounts are private.
func (w *Root) ListSteps() []Step {
	return []Step{
		{"put the host's files aside", aside},
		{"make a root", w.make},
		{"make room to write", w.scratch}, // before what may lie in /tmp
		{"bind the toolbox", w.toolbox},
		{"fill /etc", w.etc},
		{"say whom to trust", w.trust},
		{"fill /dev", w.devices},
		{"mount a /proc", func() error {
			return unix.Mount("proc", room+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		}},
		{"bind the work tree", w.trees},
	}
}

// Read reads what to build.
func (w *Root) Read() error {
	unix.Umask(0o022)
	f := os.NewFile(SpecFD, "spec")
	defer f.Close()
	return json.NewDecoder(f).Decode(w)
}

// aside makes a tmpfs the root, under which the host's files lie below old.
func aside() error {
	base := ""
	for _, d := range []string{"/tmp", "/mnt", "/var", "/usr"} {
		if st, err := os.Lstat(d); err == nil && st.IsDir() {
			base = d
			break
		}
	}
	if base == "" {
		return errors.New("there is no /tmp to begin in")
	}
	if err := unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return err
	}
	for _, d := range []string{old, room} {
		if err := os.Mkdir(base+d, 0o755); err != nil {
			return err
		}
	}
	if err := unix.PivotRoot(base, base+old); err != nil {
		return err
	}
	return unix.Chdir("/")
}

func (w *Root) make() error {
	if err := unix.Mount("tmpfs", room, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=16m,nr_inodes=16k"); err != nil {
		return err
	}
	for _, d := range []string{"/proc", "/dev", "/tmp", "/etc", "/run", "/var", "/usr"} {
		if err := os.Mkdir(room+d, 0o755); err != nil {
			return err
		}
	}
	return os.Symlink("../tmp", room+"/var/tmp")
}

// SystemDirs are the places where a distribution keeps its programs.
var SystemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

const readOnlyBind = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

func (w *Root) toolbox() error {
	for _, d := range append(append([]string{}, SystemDirs...), w.Toolbox...) {
		if err := place(d, readOnlyBind); err != nil {
			return err
		}
	}
	return nil
}

// place puts what the host has at p at the same place, if it is there: a link
// as a link, all else as a bind.
func place(p string, attr uint64) error {
	st, err := os.Lstat(old + p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		to, err := os.Readlink(old + p)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(path.Dir(room+p), 0o755); err != nil {
			return err
		}
		return os.Symlink(to, room+p)
	}
	if err := mountpoint(room+p, st.IsDir()); err != nil {
		return err
	}
	return bind(old+p, room+p, attr)
}

// mountpoint makes an empty file or directory to mount on, unless it is there.
func mountpoint(p string, dir bool) error {
	if _, err := os.Lstat(p); err == nil {
		return nil
	}
	if dir {
		return os.MkdirAll(p, 0o755)
	}
	if err := os.MkdirAll(path.Dir(p), 0o755); err != nil {
		return err
	}
	return os.WriteFile(p, nil, 0o644)
}

// bind shows src at dst too, with what is mounted below it, and sets attributes
// on all of it.
func bind(src, dst string, attr uint64) error {
	if err := unix.Mount(src, dst, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return &fs.PathError{Op: "bind", Path: strings.TrimPrefix(src, old), Err: err}
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, dst, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr}); err != nil {
		return &fs.PathError{Op: "set the flags of", Path: strings.TrimPrefix(src, old), Err: err}
	}
	return nil
}

// fromEtc is what programs need of the host's /etc, and nothing that tells of
// its people: where libraries and certificates are, which of several programs a
// name means, what time it is here.
var fromEtc = []string{
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "timezone", "os-release", "debian_version", "lsb-release",
	"ssl/certs", "ssl/openssl.cnf", "ca-certificates", "ca-certificates.conf", "pki/tls/certs", "pki/tls/cert.pem", "pki/ca-trust", "crypto-policies",
	"mime.types", "magic", "magic.mime", "protocols", "services", "ethertypes", "terminfo", "inputrc", "bash.bashrc", "fonts", "perl", "python3", "python3.11", "python3.12", "python3.13",
	"java-17-openjdk", "java-21-openjdk", "maven", "login.defs", "nanorc", "vim",
}

func (w *Root) etc() error {
	for _, name := range fromEtc {
		if err := place("/etc/"+name, readOnlyBind|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return err
		}
	}
	conf, hosts := w.resolver()
	own := map[string]string{
		"passwd":        fmt.Sprintf("root:x:0:0:root:/:/usr/sbin/nologin\nagent:x:%d:%d:agent:%s:%s\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n", w.ID, w.ID, w.Home, w.Shell),
		"group":         fmt.Sprintf("root:x:0:\nagent:x:%d:\nnogroup:x:65534:\n", w.ID),
		"hosts":         "127.0.0.1 localhost " + w.Host + "\n::1 localhost ip6-localhost\n",
		"hostname":      w.Host + "\n",
		"host.conf":     "multi on\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: " + hosts + "\nservices: files\nprotocols: files\n",
		"resolv.conf":   conf,
		"shells":        "/bin/sh\n/bin/bash\n/usr/bin/bash\n",
	}
	for name, text := range own {
		if err := os.WriteFile(room+"/etc/"+name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return os.Symlink("/proc/self/mounts", room+"/etc/mtab")
}

// deviceNames are harmless, and each is the host's own: only its times could be
// changed, and the mount is read-only.
var deviceNames = []string{"null", "zero", "full", "random", "urandom", "tty"}

func (w *Root) devices() error {
	dev := room + "/dev"
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=0755,size=64k,nr_inodes=64"); err != nil {
		return err
	}
	for _, d := range deviceNames {
		if err := os.WriteFile(dev+"/"+d, nil, 0o644); err != nil {
			return err
		}
		if err := bind(old+"/dev/"+d, dev+"/"+d, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return err
		}
	}
	for _, l := range [][2]string{{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"}} {
		if err := os.Symlink(l[0], dev+"/"+l[1]); err != nil {
			return err
		}
	}
	for _, d := range []string{"pts", "shm"} {
		if err := os.Mkdir(dev+"/"+d, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", dev+"/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,max=64"); err != nil {
		return err
	}
	if err := w.room("/dev/shm", 0o1777, false); err != nil {
		return err
	}
	return unix.MountSetattr(unix.AT_FDCWD, dev, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

func (w *Root) scratch() error {
	if err := w.room("/tmp", 0o1777, w.Exec); err != nil {
		return err
	}
	if err := os.MkdirAll(room+w.Home, 0o755); err != nil {
		return err
	}
	return w.room(w.Home, 0o700, w.Exec)
}

// room mounts a tmpfs of the workload's own, bounded in bytes and inodes.
func (w *Root) room(at string, mode int, exec bool) error {
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if exec {
		flags &^= unix.MS_NOEXEC
	}
	own := w.Owner
	data := fmt.Sprintf("size=%d,nr_inodes=%d,mode=%o,uid=%d,gid=%d", sandbox.WorkspaceScratch, sandbox.WorkspaceScratchInodes, mode, own, own)
	return unix.Mount("tmpfs", room+at, "tmpfs", flags, data)
}

// Enter makes the root read-only, and has pivot make it this process's own.
func (w *Root) Enter(pivot func(root string) error) error {
	if err := unix.MountSetattr(unix.AT_FDCWD, room, 0, &unix.MountAttr{Attr_set: readOnlyBind}); err != nil {
		return err
	}
	if err := pivot(room); err != nil {
		return err
	}
	for i := range w.Trees { // their descriptors, where they came as mounts
		unix.Close(TreesFD + i)
	}
	return nil
}

// trees puts the work tree, and the repositories that belong to it, in their
// places.
func (w *Root) trees() error {
	for i, t := range w.Trees {
		if err := mountpoint(room+t.Path, true); err != nil {
			return err
		}
		if err := w.tree(i, t); err != nil {
			return err
		}
		if err := t.Hold(room); err != nil {
			return err
		}
	}
	return nil
}

func (w *Root) tree(i int, t grant.Tree) error {
	fd := TreesFD + i
	if !w.Root {
		at, err := t.OpenSame(old + t.Path)
		if err != nil {
			return &fs.PathError{Op: "open", Path: t.Path, Err: err}
		}
		defer unix.Close(at)
		if fd, err = unix.OpenTree(at, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE); err != nil {
			return &fs.PathError{Op: "bind", Path: t.Path, Err: err}
		}
		defer unix.Close(fd)
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE,
			&unix.MountAttr{Attr_set: grant.TreeAttributes(w.Exec)}); err != nil {
			return &fs.PathError{Op: "set the flags of", Path: t.Path, Err: err}
		}
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, room+t.Path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return &fs.PathError{Op: "mount", Path: t.Path, Err: err}
	}
	if w.Root {
		return nil
	}
	return coverBelow(room + t.Path)
}

// coverBelow hides what else is mounted below the tree behind something empty:
// where Holdfast is not root the kernel does not let it be left away.
func coverBelow(tree string) error {
	b, err := os.ReadFile(old + "/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		at := sandbox.UnescapeMount(f[4])
		st, err := os.Lstat(at)
		switch {
		case !strings.HasPrefix(at, tree+"/"):
		case errors.Is(err, fs.ErrNotExist): // behind one that is covered already
		case err != nil:
			return err
		case st.IsDir():
			if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0755,size=4k,nr_inodes=2"); err != nil {
				return &fs.PathError{Op: "cover", Path: at, Err: err}
			}
		default:
			if err := unix.Mount(old+"/dev/null", at, "", unix.MS_BIND, ""); err != nil {
				return &fs.PathError{Op: "cover", Path: at, Err: err}
			}
		}
	}
	return nil
}
