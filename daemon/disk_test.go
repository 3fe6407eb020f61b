package daemon_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
)

// BenchmarkDiskPerCrossing says how many bytes the state directory grows by for
// one crossing with a 1 KB payload and a result of the given size. Run it with
// -benchtime 20000x: it is the size that counts, not the time.
func BenchmarkDiskPerCrossing(b *testing.B) {
	for _, size := range []int{16, 1024, 10240} {
		b.Run(fmt.Sprintf("result=%d", size), func(b *testing.B) { growBy(b, size, "keep") })
	}
	b.Run("requests=none", func(b *testing.B) { growBy(b, 1024, "none") })
}

func growBy(b *testing.B, size int, requests string) {
	dir, config := filepath.Join(b.TempDir(), "state"), filepath.Join(b.TempDir(), "holdfast.yaml")
	text := "version: 1\nboundaries:\n  - {boundary: test/one, risk: LOW, consumes: {file_writes: 1}}\nledger: {requests: " + requests + "}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	d, err := daemon.Open(b.Context(), daemon.Options{State: dir, Config: config})
	if err != nil {
		b.Fatal(err)
	}
	token, err := d.Mint(holdfast.Identity{Agent: "nightly"})
	if err != nil {
		b.Fatal(err)
	}
	result, payload := strings.Repeat("lorem ", size/6+1)[:size], strings.Repeat("x", 1000)
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, err := d.Kernel.Cross(b.Context(), holdfast.Request{Boundary: "test/one", Token: token,
				Payload: fmt.Appendf(nil, `{"s":%q}`, payload)},
				func(context.Context) (holdfast.Output, error) {
					return holdfast.Output{Body: fmt.Appendf(nil, "%q", result)}, nil
				})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	if err := d.Close(); err != nil {
		b.Fatal(err)
	}
	var bytes int64
	files, err := os.ReadDir(dir)
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			b.Fatal(err)
		}
		bytes += info.Size()
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "bytes/crossing")
}
