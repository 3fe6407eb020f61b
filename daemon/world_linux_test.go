package daemon

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tests of this file's kind run in a network of their own, in which every
// address there is (the internet's, other machines', a cloud's metadata) is the
// test's: whatever gets past Holdfast arrives somewhere, and is seen. Nothing of
// Holdfast is different there. It reads the name servers and hosts of that world
// where it reads the machine's, and dials its addresses.

// worldEnv is set for who runs in a world. Descriptor 3 then sees every packet.
const worldEnv = "HOLDFAST_TEST_WORLD"

// inWorlds runs the test that calls it again in a world of its own, by root and
// by an ordinary user, and says of each part how it ended there.
func inWorlds(t *testing.T, parts func(rootless bool) []string) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes a network with the internet's addresses; the half without root is run by it too")
	}
	for _, mode := range []string{"root", "rootless"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			rootless := mode == "rootless"
			out := againInWorld(t, strings.SplitN(t.Name(), "/", 2)[0], rootless)
			for _, name := range parts(rootless) {
				t.Run(name, func(t *testing.T) {
					if !regexp.MustCompile(`(?m)^ +--- PASS: Test\w+/` + regexp.QuoteMeta(name) + ` `).MatchString(out) {
						t.Error("it did not pass there")
					}
				})
			}
		})
	}
}

// againInWorld runs the test name again and returns what it said.
func againInWorld(t *testing.T, name string, rootless bool) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, tmp := filepath.Join(dir, "bin", "self"), filepath.Join(dir, "tmp")
	b, err := os.ReadFile("/proc/self/exe")
	if err := errors.Join(err, os.Mkdir(filepath.Dir(self), 0o755), os.WriteFile(self, b, 0o755), os.Mkdir(tmp, 0o700)); err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.run=^" + name + "$", "-test.v"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Dir = tmp
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE"), "HOME=" + tmp, "TMPDIR=" + tmp, worldEnv + "=yes"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if rootless {
		const nobody = 65534
		if err := os.Chown(tmp, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and ends with it: the thread is of another network
		ended <- inNewWorld(dir, cmd)
	}()
	if err := <-ended; err != nil {
		t.Errorf("in a world: %v\n%s", err, out.String())
	}
	return out.String()
}

// inNewWorld starts cmd in a world and waits for it. It changes its thread.
func inNewWorld(dir string, cmd *exec.Cmd) error {
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	for file, text := range map[string]string{
		"/etc/resolv.conf": "nameserver 127.0.0.1\nsearch found.test\noptions ndots:5 attempts:1 timeout:2\n",
		"/etc/hosts":       "127.0.0.1 localhost\n10.0.0.9 hosted.special.test\n",
	} {
		at := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(at, file, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	for name, value := range map[string]string{"ip_unprivileged_port_start": "0", "ping_group_range": "0 2147483647"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0); err != nil {
			return err
		}
	}
	if err := everyAddress(); err != nil {
		return err
	}
	packets, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(ethernetOrder(unix.ETH_P_ALL)))
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(packets), "packets")
	defer f.Close()
	if err := unix.SetsockoptInt(packets, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20); err != nil {
		return err
	}
	cmd.ExtraFiles = []*os.File{f}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Wait()
}

func ethernetOrder(n uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, n))
}

// everyAddress brings the loopback of this thread's network up and makes every
// address one of this network: `ip route add local default dev lo`, of both
// families.
func everyAddress() error {
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
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return err
	}
	if err := everyAddressOf(unix.AF_INET); err != nil {
		return fmt.Errorf("the route: %w", err)
	}
	if err := everyAddressOf(unix.AF_INET6); err != nil && !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("the route of IPv6: %w", err)
	}
	return nil
}

func everyAddressOf(family byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	body := []byte{family, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0}
	body = binary.NativeEndian.AppendUint16(body, 8)
	body = binary.NativeEndian.AppendUint16(body, unix.RTA_OIF)
	body = binary.NativeEndian.AppendUint32(body, 1)
	m := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	m = binary.NativeEndian.AppendUint16(m, unix.RTM_NEWROUTE)
	m = binary.NativeEndian.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	m = append(append(m, make([]byte, 8)...), body...)
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || n < 20 {
		return errors.Join(err, errors.New("no answer"))
	}
	if bad := int32(binary.NativeEndian.Uint32(answer[16:])); bad != 0 {
		return unix.Errno(-bad)
	}
	return nil
}

// sniffer says what went through a world's network, but for what its servers
// and its name server were asked in the right place.
type sniffer struct {
	fd int

	mu   sync.Mutex
	seen []string // guarded by mu; "tcp 203.0.113.66:22", each once
}

// sniff begins to watch, by the descriptor that came along.
func sniff(t *testing.T) *sniffer {
	t.Helper()
	s := &sniffer{fd: 3}
	if err := unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000}); err != nil {
		t.Fatal(err)
	}
	ending, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		b := make([]byte, 1<<16+64)
		for {
			n, from, err := unix.Recvfrom(s.fd, b, 0)
			if at, ok := from.(*unix.SockaddrLinklayer); ok && err == nil && at.Pkttype != unix.PACKET_OUTGOING {
				s.packet(at.Protocol, b[:n])
			}
			select {
			case <-ending:
				if err != nil {
					return
				}
			default:
			}
		}
	}()
	t.Cleanup(func() {
		close(ending)
		<-ended
		if st, err := unix.GetsockoptTpacketStats(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err != nil || st.Drops > 0 {
			t.Errorf("of the packets %d were not seen (%v)", st.Drops, err)
		}
	})
	return s
}

// packet keeps where a packet goes, if neither end of it is expected.
func (s *sniffer) packet(protocol uint16, b []byte) {
	from, to := ends(ethernetOrder(protocol), b)
	knocks := strings.HasSuffix(from, ":"+ownPort) || strings.HasSuffix(to, ":"+ownPort)
	if knocks || slices.Contains(expected, from) || slices.Contains(expected, to) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.seen, to) {
		s.seen = append(s.seen, to)
	}
}

// expected is where packets may go: to the servers by name, and to the name
// server that the machine has. Besides, the good server knocks at ownPort.
var expected = []string{"tcp " + goodAddress + ":443", "tcp " + goodAddress + ":80", "udp 127.0.0.1:53"}

// ends are the two ends of a packet behind an Ethernet header.
func ends(protocol uint16, b []byte) (from, to string) {
	const head = 14
	odd := fmt.Sprintf("ethernet %#04x of %d bytes", protocol, len(b))
	var kind byte
	var a, z net.IP
	switch {
	case protocol == unix.ETH_P_IP && len(b) >= head+20:
		kind, a, z = b[head+9], net.IP(b[head+12:head+16]), net.IP(b[head+16:head+20])
		b = b[min(len(b), head+4*int(b[head]&15)):]
	case protocol == unix.ETH_P_IPV6 && len(b) >= head+40:
		kind, a, z = b[head+6], net.IP(b[head+8:head+24]), net.IP(b[head+24:head+40])
		b = b[head+40:]
	default:
		return odd, odd
	}
	name := map[byte]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp"}[kind]
	if name == "" || len(b) < 4 {
		return fmt.Sprintf("ip %d %s", kind, a), fmt.Sprintf("ip %d %s", kind, z)
	}
	end := func(ip net.IP, port []byte) string {
		return name + " " + net.JoinHostPort(ip.String(), fmt.Sprint(binary.BigEndian.Uint16(port)))
	}
	return end(a, b), end(z, b[2:])
}

// strange is where else packets went until now.
func (s *sniffer) strange() []string {
	time.Sleep(100 * time.Millisecond) // what was sent is seen
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}
