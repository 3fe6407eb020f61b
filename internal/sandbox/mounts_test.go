package sandbox

import (
	"fmt"
	"testing"
)

func TestMounts(t *testing.T) {
	line := func(point string) string {
		return fmt.Sprintf("36 35 0:31 / %s rw,relatime shared:1 - tmpfs tmpfs rw\n", point)
	}
	const before = "21 26 0:20 / /proc rw - proc proc rw\n26 1 254:0 / / rw - ext4 /dev/vda rw\n"
	own := []string{"/tmp/TestOwn/001/vm", "/tmp/with space/"}
	for point, counts := range map[string]bool{
		"/sys": true, "/": true, "/run/x": true, "/tmp": true, "/var/tmp": true, "/tmpfs": true,
		"/tmp/TestOwn/001/vm": true, "/tmp/TestOwn/001/vm/roots/a/tmp": true, `/tmp/with\040space/x`: true,
		"/tmp/TestOther/001/runs/a": false, "/tmp/TestOwn/001/vmware": false, "/var/tmp/b": false,
	} {
		if n := Mounts(before+line(point), own...); n != 2 && !counts || n != 3 && counts {
			t.Errorf("%s: %d mounts", point, n)
		}
	}
	if n := Mounts("what is this\n"); n != 1 {
		t.Errorf("what cannot be read counts as %d", n)
	}
}
