// Package vm runs code in a virtual machine of its own: QEMU with a kernel and
// a file system that Holdfast builds, in which Holdfast itself is the first
// process and opens the process tier. So two kernels' worth of walls stand
// around the code. The machine is started once, and its memory kept when it
// waits for work; every run is restored from that and thrown away (spec 000
// "Sandboxing model", decisions D15 to D21a).
package vm

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Inside is the tier that runs the code in the guest.
type Inside interface {
	Run(context.Context, sandbox.Spec) (*posture.Result, error)
	Languages() ([]string, map[string]string)
	Posture() posture.Posture
	// Settle returns when nothing is made ready any more for runs to come.
	Settle(context.Context)
	// Last says that one more run comes and no other: nothing is made ready
	// beside it.
	Last()
}

// Groups makes control groups of the host's: the process tier.
type Groups interface {
	Group(id string, share sandbox.Share) (sandbox.Group, error)
	// GroupHomes are the directories in which they lie.
	GroupHomes() []string
	// Posture says which of the walls memory, cpu and pids groups hold up.
	Posture() posture.Posture
}

// Config is what a tier needs. A zero Kernel or QEMU is looked for.
type Config struct {
	// Dir is where templates are kept; it is the tier's own.
	Dir string
	// QEMU is the program qemu-system-x86_64: on PATH if empty.
	QEMU string
	// Kernel is what guests boot: a Linux for cloud machines of at least 5.19,
	// /boot/vmlinuz-*-cloud-amd64 if empty.
	Kernel string
	// Program is what guests have as their first process: a static program that
	// calls Guest; this one if empty.
	Program string
	// MemoryMB is a guest's memory: 1024 if 0, 384 to 8192.
	MemoryMB int
	// Roots returns the directories that a guest's file system is made of, one
	// for each language: private copies of runtimes. They are only read.
	Roots func(context.Context) ([]string, error)
	// Groups holds QEMU to its share of the host; nil leaves it out of any
	// control group.
	Groups Groups
	// NoKVM leaves hardware virtualisation alone, though it be there.
	NoKVM bool
	// Secret says whether a text holds a secret; nil refuses every environment.
	Secret func(string) bool
	// Note takes a line about what takes long, such as starting a template. It
	// may be nil.
	Note func(string)
}

// Defaults and bounds.
const (
	defaultMemoryMB = 1024
	minMemoryMB     = 384
	maxMemoryMB     = 8192
	guestOwnMB      = 192 // of a guest's memory, what its kernel and its runtimes take

	// boxBytes is the memory that Holdfast and a guest share: a request, and
	// after it the answer. It takes what is in it and no more.
	boxBytes = 256 << 20
	// boxAddress is where it is in a guest's memory, above everything else: QEMU
	// places it when it starts, so that it is there before a state is restored.
	boxAddress = 16 << 30

	// A template has bootWithin by software to say that it is ready, and
	// kvmWithin on hardware: many times what it takes. By software it takes the
	// processors, and those of a machine at work have little to give.
	bootWithin = 5 * time.Minute
	kvmWithin  = 12 * time.Second
	// acceptWithin is how long a restored guest may take to take its order, and
	// answerAfter how long after its time a run may take to be told of.
	acceptWithin = 20 * time.Second
	answerAfter  = 20 * time.Second
)

// RoomMB is what a guest of that memory, in MB as in Config, has for code.
func RoomMB(memory int) int64 {
	if memory == 0 {
		memory = defaultMemoryMB
	}
	return int64(memory - guestOwnMB)
}
