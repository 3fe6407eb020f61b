package dissimilar_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast/internal/assure/dissimilar"
	"github.com/holdfast-dev/holdfast/ledger"
)

// BenchmarkJudge judges crossings as the kernel records them, each with its own
// id, flow, payload and reservation. One million of them:
//
//	go test -run '^$' -bench Judge -benchtime 1000000x ./internal/assure/dissimilar
func BenchmarkJudge(b *testing.B) {
	const chunk = 5000
	book := newBook(b)
	book.event("agent_first_seen", "user:alice", "ada", "", map[string]any{"level": "baseline"}, nil)
	v := dissimilar.New(dissimilar.Options{Found: func(f dissimilar.Finding) { b.Fatal(f.String()) }})
	var took time.Duration
	var size int64
	next, n := int64(0), 0
	for n < b.N {
		for ; n < b.N && len(book.leaves["acme"]) < 2*chunk; n++ {
			n := n
			g, seq := book.begin(func(g *ledger.Begin) {
				g.ExactHash, g.Key = sha(fmt.Append(nil, n)), sha(fmt.Append(nil, "k", n))
				g.Correlation = uuid.NewString()
				g.TokenExpires = g.Timestamp.Add(time.Hour)
				g.Draws = []ledger.Draw{{Key: "acme/agent/ada/llm_tokens", Resource: "llm_tokens", Amount: 10, Limit: 1 << 50, Window: 86400, Name: "llm_tokens per agent"}}
			})
			book.end(g, next+seq, func(e *ledger.Entry) { e.Uses[0].Before = int64(10 * n) })
		}
		leaves := book.leaves["acme"]
		start := time.Now()
		for i, l := range leaves {
			size += int64(len(l.Record))
			v.Leaf(dissimilar.Leaf{Tenant: l.Tenant, Seq: next + int64(i), Record: l.Record, Part: l.Part})
		}
		took += time.Since(start)
		next += int64(len(leaves))
		book.leaves["acme"] = leaves[:0]
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(next)/took.Seconds(), "leaves/s")
	b.ReportMetric(float64(n)/took.Seconds(), "crossings/s")
	b.ReportMetric(float64(m.HeapAlloc)/1e6, "MB-kept")
	b.ReportMetric(float64(size)/float64(next), "bytes/leaf")
	runtime.KeepAlive(v)
}
