package kernel_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// BenchmarkCross is whole crossings on a real store, from one caller and from
// 64, to be profiled; `go run -C bench . kernel` sets them beside bare rows.
func BenchmarkCross(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			w := newWorld(b, "", unlimited)
			payload := `{"path":"/srv/a.json","text":"` + strings.Repeat("lorem ", 160) + `"}`
			var reqs []holdfast.Request
			for i := range callers {
				reqs = append(reqs, holdfast.Request{Boundary: "test/cost", Payload: []byte(payload), Token: w.who(fmt.Sprint("agent", i))})
			}
			var n atomic.Int64
			b.SetParallelism(max(1, callers/2))
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				req := reqs[int(n.Add(1)-1)%callers]
				for pb.Next() {
					if _, err := w.k.Cross(b.Context(), req, ok); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
