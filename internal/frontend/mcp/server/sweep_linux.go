package server

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxPasses bounds how often a sweep looks again: each pass that finds
// somebody may have missed whom that one made meanwhile.
const maxPasses = 50

// sweep kills every process whose environment holds the mark, and returns how
// many it found. It reaches what left the server's group, by setsid or
// otherwise, and kept the variable; of other users' processes it sees none.
func sweep(mark string) int {
	want := []byte(markName + "=" + mark)
	return sweepWhere(func(found []byte) bool { return bytes.Equal(found, want) })
}

// SweepLost kills what is left of servers whose Holdfast is no more: it was
// killed, and they had left their groups. It returns how many it found. Of
// Holdfast processes that live, this one's included, it touches no server.
func SweepLost() int {
	return sweepWhere(func(found []byte) bool {
		owner, ok := strings.CutPrefix(string(found), markName+"=")
		return ok && ownerGone(owner)
	})
}

// ownerGone says whether the process that made a mark has ended. What is no
// mark of ours has no owner and is left alone.
func ownerGone(mark string) bool {
	parts := strings.Split(mark, "-")
	if len(parts) != 3 {
		return false
	}
	pid, err := strconv.Atoi(parts[0])
	if err != nil || pid <= 0 || parts[1] == "" {
		return false
	}
	now := startOf(pid)
	return now != parts[1] && (now != "" || errors.Is(unix.Kill(pid, 0), unix.ESRCH))
}

func sweepWhere(ours func(found []byte) bool) int {
	killed := map[int]bool{}
	for range maxPasses {
		found := pass(ours)
		for _, pid := range found {
			killed[pid] = true
		}
		if len(found) == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return len(killed)
}

// pass looks at each process once, and returns the numbers of those it killed.
func pass(ours func([]byte) bool) []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var killed []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != os.Getpid() && killWhere(pid, ours) {
			killed = append(killed, pid)
		}
	}
	return killed
}

// killWhere kills one process if its mark is ours. The handle is taken before
// the look, so that a number that is given anew meanwhile kills nobody.
func killWhere(pid int, ours func([]byte) bool) bool {
	env, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	defer env.Close()
	// environ stays that of the process it was opened for.
	if found := findMark(env); found == nil || !ours(found) {
		return false
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	// The second look is through the open handle's process: were the first
	// one gone, the read would find nothing.
	if _, err := env.Seek(0, io.SeekStart); err != nil || findMark(env) == nil {
		return false
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}

// maxEnviron bounds what is read of an environment, in bytes.
const maxEnviron = 4 << 20

// findMark returns the mark in an environment, with its name, or nil.
func findMark(r io.Reader) []byte {
	b, err := io.ReadAll(io.LimitReader(r, maxEnviron))
	if err != nil {
		return nil
	}
	for kv := range bytes.SplitSeq(b, []byte{0}) {
		if bytes.HasPrefix(kv, []byte(markName+"=")) {
			return kv
		}
	}
	return nil
}

// startOf returns when a process started, in the system's ticks since boot,
// which with its number tells it from every other; "" where there is none.
func startOf(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The name in parentheses may hold anything; 20 fields follow it.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}
