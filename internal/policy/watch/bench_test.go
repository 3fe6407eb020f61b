package watch

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

// BenchmarkAdd is what watching adds to a crossing, among 10,000 agents, beside
// the least that it could: a map's entry found and counted under a lock.
func BenchmarkAdd(b *testing.B) {
	const agents = 10_000
	names := make([]string, agents)
	for i := range names {
		names[i] = fmt.Sprintf("agent-%d", i)
	}
	seen := func(i int) Seen {
		return Seen{Tenant: "local", Agent: names[i%agents], At: start.Add(time.Duration(i) * time.Millisecond), Action: uint64(i / agents), Cost: 10, Step: i%100 == 0}
	}
	b.Run("watch", func(b *testing.B) {
		w := New(Limits{})
		for i := range agents {
			w.Add(seen(i))
		}
		for i := 0; b.Loop(); i++ {
			w.Add(seen(agents + i))
		}
	})
	b.Run("floor", func(b *testing.B) {
		var mu sync.Mutex
		m := map[key]*int{}
		for i := range agents {
			m[key{"local", names[i]}] = new(int)
		}
		for i := 0; b.Loop(); i++ {
			s := seen(agents + i)
			mu.Lock()
			*m[key{s.Tenant, s.Agent}]++
			mu.Unlock()
		}
	})
}

// BenchmarkTick is a look at 10,000 agents that act.
func BenchmarkTick(b *testing.B) {
	w := New(Limits{})
	for i := range 10_000 {
		w.Add(Seen{Tenant: "local", Agent: fmt.Sprint(i), At: start})
	}
	for b.Loop() {
		w.Tick(start.Add(time.Minute))
	}
}

// TestMemoryOfAnAgentHour: 10,000 agents that act in each hour of a day take at
// most 200 bytes an hour each.
func TestMemoryOfAnAgentHour(t *testing.T) {
	const agents, hours = 10_000, 24
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w := New(Limits{})
	for h := range hours {
		for i := range agents {
			w.Add(Seen{Tenant: "local", Agent: fmt.Sprintf("agent-%d", i), At: start.Add(time.Duration(h) * time.Hour), Action: uint64(h), Cost: 10})
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / (agents * hours)
	t.Logf("%.0f bytes an agent and hour", each)
	if each > 200 {
		t.Errorf("%.0f bytes", each)
	}
	runtime.KeepAlive(w)
}
