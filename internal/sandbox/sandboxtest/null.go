package sandboxtest

import (
	"fmt"
	"os"
	"syscall"
)

// NullKept runs a package's tests, and fails them where the machine's /dev/null has
// another owner or other rights afterwards: container runtimes give what they are
// started with to the user of their program, and what is started with nothing is
// started with /dev/null. It returns what the package's process ends with.
func NullKept(run func() int) int {
	before := nullOwner()
	code := run()
	if after := nullOwner(); after != before {
		fmt.Fprintf(os.Stderr, "FAIL: %s is %s, and was %s before these tests: a program that was started with it, by them or by tests beside them, gave it away\n", os.DevNull, after, before)
		return max(code, 1)
	}
	return code
}

func nullOwner() string {
	info, err := os.Stat(os.DevNull)
	if err != nil {
		return err.Error()
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Mode().String()
	}
	return fmt.Sprintf("%v %d:%d", info.Mode(), st.Uid, st.Gid)
}
