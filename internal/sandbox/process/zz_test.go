package process

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { Launcher(); os.Exit(m.Run()) }

type notif struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}
type resp struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

func TestProto(t *testing.T) {
	root := os.Getenv("HF_ROOT")
	z, err := startLauncher(root)
	if err != nil {
		t.Fatal(err)
	}
	defer z.close()
	code := os.Getenv("HF_CODE")
	p := newProfile(threads)
	f, err := p.compile(nativeArch())
	if err != nil {
		t.Fatal(err)
	}
	one := func(verbose bool) time.Duration {
		start := time.Now()
		o := &order{id: "abc", argv: []string{"/usr/bin/python3.11", "-I", "-S", "/code/main.py"}, env: []string{"PATH=/usr/bin"}, code: []byte(code), codeName: "main.py", filter: f, scratch: 100 << 20, inodes: 16384, landlockABI: min(landlockABI(), 7),
			limits: []rlimit{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_NOFILE, 256}}}
		pl, err := o.plan()
		if err != nil {
			t.Fatal(err)
		}
		memfd, err := unix.MemfdCreate("tape", unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(memfd)
		unix.Ftruncate(memfd, int64(len(pl.tape)))
		mem, err := unix.Mmap(memfd, 0, len(pl.tape), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Munmap(mem)
		copy(mem, pl.tape)
		ours, theirs, err := socketPair()
		if err != nil {
			t.Fatal(err)
		}
		defer ours.Close()
		null, _ := os.Open("/dev/null")
		r, w, _ := os.Pipe()
		er, ew, _ := os.Pipe()
		t1 := time.Since(start)
		tf, _ := theirs.SyscallConn()
		var tfd int
		tf.Control(func(fd uintptr) { tfd = int(fd) })
		pidfd, err := z.clone(unix.CLONE_NEWUSER|unix.CLONE_NEWPID|unix.CLONE_NEWNS|unix.CLONE_NEWNET|unix.CLONE_NEWUTS|unix.CLONE_NEWIPC|unix.CLONE_NEWCGROUP, len(mem),
			[]int{memfd, tfd, int(null.Fd()), int(w.Fd()), int(ew.Fd())})
		t2 := time.Since(start)
		theirs.Close()
		w.Close()
		ew.Close()
		null.Close()
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(pidfd)
		fr, fds, err := receive(ours)
		if err != nil {
			t.Fatal(err)
		}
		t3 := time.Since(start)
		if fr.kind != frameReady {
			t.Fatalf("%x stage %v op %d errno %v", fr.kind, pl.stages[fr.a], fr.a, unix.Errno(fr.b))
		}
		defer closeAll(fds)
		go func() {
			execs := 0
			for {
				pfd := []unix.PollFd{{Fd: int32(fds[0]), Events: unix.POLLIN}}
				unix.Poll(pfd, -1)
				if pfd[0].Revents&unix.POLLIN == 0 {
					return
				}
				var n notif
				_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fds[0]), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
				if e != 0 {
					continue
				}
				c := newCall(n.nr, n.arch, n.args)
				rs := resp{id: n.id}
				if c.name == "execve" && execs == 0 {
					execs++
					rs.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
				} else {
					j := judge(c)
					if verbose {
						fmt.Println("call", c.name, c.abi, j)
					}
					if j.kind != kindRefused {
						unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
						return
					}
					rs.err = refusal(j.errno)
				}
				unix.Syscall(unix.SYS_IOCTL, uintptr(fds[0]), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&rs)))
			}
		}()
		fr, _, err = receive(ours)
		t4 := time.Since(start)
		out, _ := io.ReadAll(r)
		errout, _ := io.ReadAll(er)
		r.Close()
		er.Close()
		t5 := time.Since(start)
		if verbose {
			fmt.Println(fr, err, "status", binary.LittleEndian.Uint32(mem[pl.status:]), "out", string(out), "err", string(errout))
			fmt.Println("prep", t1, "cloned", t2, "ready", t3, "ended", t4, "all", t5)
			m := func(i int) uint64 { return binary.LittleEndian.Uint64(mem[8*(slotMarks+i):]) }
			for i := 1; i < 8; i++ {
				fmt.Print(i, " ", int64(m(i)-m(0))/1000, "us  ")
			}
			fmt.Println()
		}
		return t5
	}
	one(true)
	if os.Getenv("HF_N") != "" {
		var a, b []time.Duration
		for range 200 {
			a = append(a, one(false))
			s := time.Now()
			os.WriteFile("/tmp/hf/main.py", []byte(code), 0o600)
			exec.Command("/usr/bin/python3.11", "-I", "-S", "/tmp/hf/main.py").Run()
			b = append(b, time.Since(s))
		}
		fmt.Println("sandbox p50", p50(a), "bare", p50(b))
	}
}

func p50(d []time.Duration) time.Duration {
	for i := range d {
		for j := i; j > 0 && d[j] < d[j-1]; j-- {
			d[j], d[j-1] = d[j-1], d[j]
		}
	}
	return d[len(d)/2]
}
