package workroot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// A workspace with a network runs in its launcher's, which belongs to the
// launcher's user namespace: whatever rights a program had in its own, it has
// none there. The network has a loopback and no other interface, so that nothing
// can leave it. The launcher makes the sockets and hands them out; nothing of
// Holdfast stays inside, and a socket stays in the network where it was made.

// OpenNetwork makes the network, and returns its sockets: of the proxy, of names, and then
// those that hear what was meant for others. listed is why only connections to
// ports that are heard come to them.
func (w *Root) OpenNetwork() (fds []int, listed, err error) {
	if err := up(); err != nil {
		return nil, nil, fmt.Errorf("its loopback: %w", err)
	}
	if err := anAddress(sandbox.NamedAddress()); err != nil {
		return nil, nil, fmt.Errorf("its address: %w", err)
	}
	if err := everyAddressHere(); err != nil {
		return nil, nil, fmt.Errorf("its route: %w", err)
	}
	return w.openDoors()
}

// openDoors makes the sockets.
func (w *Root) openDoors() (fds []int, listed, err error) {
	proxy, err := listenOn(unix.SockaddrInet4{Port: sandbox.ProxyPort, Addr: [4]byte{127, 0, 0, 1}}, false)
	if err != nil {
		return fds, nil, fmt.Errorf("the proxy's socket: %w", err)
	}
	fds = append(fds, proxy)
	names, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fds, nil, fmt.Errorf("the socket for names: %w", err)
	}
	fds = append(fds, names)
	if err := unix.Bind(names, &unix.SockaddrInet4{Port: sandbox.NamePort}); err != nil {
		return fds, nil, fmt.Errorf("the socket for names: %w", err)
	}
	all, bad := w.hearAll()
	if bad == nil {
		return append(fds, all), nil, nil
	}
	for _, p := range w.Network.Heard() {
		fd, err := listenOn(unix.SockaddrInet4{Port: int(p)}, false)
		if err != nil {
			return fds, nil, fmt.Errorf("the socket of port %d: %w", p, err)
		}
		fds = append(fds, fd)
	}
	return fds, bad, nil
}

// hearAll makes the socket to which the kernel leads each connection, where it
// can do that.
func (w *Root) hearAll() (int, error) {
	if w.Listed {
		return -1, unix.EOPNOTSUPP
	}
	fd, err := listenOn(unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}, true)
	if err != nil {
		return -1, err
	}
	at, err := unix.Getsockname(fd)
	if err == nil {
		err = everyPortTo(uint16(at.(*unix.SockaddrInet4).Port))
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// waiting is how many connections may wait to be accepted at one socket.
const waiting = 1024

func listenOn(at unix.SockaddrInet4, transparent bool) (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	if transparent {
		err = unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1)
	}
	if err == nil {
		err = unix.Bind(fd, &at)
	}
	if err == nil {
		err = unix.Listen(fd, waiting)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// up brings the loopback up, and with it 127.0.0.1 and ::1.
func up() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// rootPlaces are where the clients of distributions look for the certificates
// that they trust, as one file.
var rootPlaces = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/tls/cert.pem", "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/usr/lib/ssl/cert.pem", "/usr/local/share/certs/ca-root-nss.crt"}

// maxRoots bounds the host's file of roots, in bytes; a usual one has 0.25 MB.
const maxRoots = 4 << 20

// trust lets clients inside trust the host's roots and the network's authority:
// one file, read-only, that the variables name, and that stands wherever the host
// has such a one.
func (w *Root) trust() error {
	if w.Network == nil {
		return nil
	}
	const made = room + sandbox.TrustFile
	if err := os.WriteFile(made, append(hostRoots(), w.Network.Authority...), 0o444); err != nil {
		return err
	}
	in, err := unix.Open(room, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(in)
	for _, p := range rootPlaces {
		if err := coverFile(in, p, made); err != nil {
			return &fs.PathError{Op: "put the certificates at", Path: p, Err: err}
		}
	}
	return nil
}

// hostRoots are the certificates that the host trusts, as far as it has them in
// one file.
func hostRoots() []byte {
	in, err := unix.Open(old, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(in)
	for _, p := range rootPlaces {
		fd, err := inRoot(in, p, unix.O_RDONLY|unix.O_NONBLOCK)
		if err != nil {
			continue
		}
		f := os.NewFile(uintptr(fd), p)
		b, err := io.ReadAll(io.LimitReader(f, maxRoots))
		f.Close()
		if err == nil && len(b) < maxRoots && bytes.Contains(b, []byte("-----BEGIN CERTIFICATE-----")) {
			return append(b, '\n')
		}
	}
	return nil
}

// inRoot opens p as it is seen in the root at in, links and all.
func inRoot(in int, p string, flags uint64) (int, error) {
	return unix.Openat2(in, strings.TrimPrefix(p, "/"), &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
}

// coverFile shows made in place of the file that stands at p of the new root, if
// one does.
func coverFile(in int, p, made string) error {
	at, err := inRoot(in, p, unix.O_PATH)
	if slices.Contains([]error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP}, err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	var there, own unix.Stat_t
	if err := errors.Join(unix.Fstat(at, &there), unix.Stat(made, &own)); err != nil {
		return err
	}
	if there.Mode&unix.S_IFMT != unix.S_IFREG || there.Dev == own.Dev && there.Ino == own.Ino {
		return nil // by another name it is covered already
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, made, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: readOnlyBind | unix.MOUNT_ATTR_NOEXEC}); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// resolver is what /etc/resolv.conf says, and hosts where names are looked for.
func (w *Root) resolver() (conf, hosts string) {
	if w.Network == nil {
		return "", "files"
	}
	return "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n", "files dns"
}
