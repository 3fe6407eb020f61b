package egress

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// openGoproxy starts goproxy; where it cannot be had, absent says why, and where
// it was asked for by name that is an error.
func (w *wayOut) openGoproxy(b *measure.Run, program, dir, roots string) error {
	if program == "" {
		built, err := programs.BuildGoproxy(b)
		if err != nil {
			w.absent = "bench/goproxy could not be built: " + err.Error()
			return nil
		}
		program = built
	}
	ca := filepath.Join(dir, "goproxy.pem")
	c, err := programs.StartChild(b, program, "--dial", fmt.Sprintf("127.0.0.1:%d", w.server.port), "--roots", roots, "--ca", ca)
	if err != nil {
		return fmt.Errorf("goproxy: %w", err)
	}
	w.goproxy = c
	line, err := c.Read()
	if err != nil {
		return err
	}
	at, ok := strings.CutPrefix(line, "listening on ")
	if !ok {
		return fmt.Errorf("goproxy said %q", excerpt.Printable(line))
	}
	w.goproxyAt = at
	w.goproxyCA, err = os.ReadFile(ca)
	return err
}
