package process

import "golang.org/x/sys/unix"

// Landlock's rights as of ABI 7, by the ABI that brought them.
const (
	landlockRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockV1   = 1<<13 - 1
	landlockV2   = landlockV1 | unix.LANDLOCK_ACCESS_FS_REFER
	landlockV3   = landlockV2 | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	landlockV5   = landlockV3 | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	landlockNet   = 3 // bind and connect TCP, ABI 4
	landlockScope = 3 // abstract sockets and signals, ABI 6
)

// landlockABI is the version that the kernel has; 0 is none.
func landlockABI() int {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(v)
}

func landlockRights(abi int) uint64 {
	switch {
	case abi >= 5:
		return landlockV5
	case abi >= 3:
		return landlockV3
	case abi == 2:
		return landlockV2
	}
	return landlockV1
}

// lock holds the workload to reading the runtime and to its scratch, a second
// wall behind the mounts.
func (o *order) lock(r *recorder) {
	r.stage = stageLandlock
	rights, net, scope := landlockRights(o.landlockABI), uint64(0), uint64(0)
	size := 8
	if o.landlockABI >= 4 {
		net, size = landlockNet, 16
	}
	if o.landlockABI >= 6 {
		scope, size = landlockScope, 24
	}
	r.keep(slotRules, unix.SYS_LANDLOCK_CREATE_RULESET, r.words(rights, net, scope), size, 0)
	write := uint64(rights &^ uint64(unix.LANDLOCK_ACCESS_FS_EXECUTE|unix.LANDLOCK_ACCESS_FS_MAKE_CHAR|unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK|unix.LANDLOCK_ACCESS_FS_MAKE_SOCK))
	o.rule(r, "/", landlockRead)
	o.rule(r, "/tmp", write)
	o.rule(r, "/dev/null", unix.LANDLOCK_ACCESS_FS_READ_FILE|unix.LANDLOCK_ACCESS_FS_WRITE_FILE)
	r.call(unix.SYS_LANDLOCK_RESTRICT_SELF, slot(slotRules), 0)
	r.call(unix.SYS_CLOSE, slot(slotRules))
	r.stage = stagePrivileges
}

func (o *order) rule(r *recorder, path string, rights uint64) {
	r.keep(slotFile, unix.SYS_OPENAT, unix.AT_FDCWD, r.cstring(path), unix.O_PATH|unix.O_CLOEXEC)
	attr := r.bytes(make([]byte, 12))
	r.fill(attr, rights)
	r.store(slot(slotFile), attr+8)
	r.call(unix.SYS_LANDLOCK_ADD_RULE, slot(slotRules), unix.LANDLOCK_RULE_PATH_BENEATH, attr, 0)
	r.call(unix.SYS_CLOSE, slot(slotFile))
}
