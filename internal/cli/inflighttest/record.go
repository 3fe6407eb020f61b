package inflighttest

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// WaitRecorded waits until the server that records in file has recorded something so
// often, and calls then with when.
func WaitRecorded(file, what string, n int, then func([]int64)) error {
	for start := time.Now(); time.Since(start) < 30*time.Second; time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		var when []int64
		for line := range strings.Lines(string(b)) {
			word, at, _ := strings.Cut(strings.TrimSpace(line), " ")
			if ns, err := strconv.ParseInt(at, 10, 64); word == what && err == nil {
				when = append(when, ns)
			}
		}
		if len(when) >= n {
			then(when)
			return nil
		}
	}
	return fmt.Errorf("the server did not record %q %d times", what, n)
}
