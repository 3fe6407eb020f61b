package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// sustainedFor is how long runs follow each other without a pause.
const sustainedFor = 12 * time.Second

// sustained is how many full runs there are in a second and what they leave.
func (w *warmBench) sustained() (_ []measure.Figure, err error) {
	back, err := ownTemporary(w.Run)
	if err != nil {
		return nil, err
	}
	defer back()
	before, err := w.things(nil)
	if err != nil {
		return nil, err
	}
	w.forget()
	callers, cores := 2*runtime.NumCPU(), float64(runtime.NumCPU())
	from, busy := time.Now(), processors()
	below := belowTime(os.Getpid())
	s, err := measure.Drive(callers, w.Span(sustainedFor), w.run)
	if err != nil {
		return nil, err
	}
	took, busy, below := time.Since(from), processors().since(busy), belowTime(os.Getpid())-below
	rate := measure.Figure{Name: fmt.Sprintf("python, full runs per second and core, %d at once", callers), Measured: s.PerSecond / cores, Unit: "/s", Target: ">= 150", Paths: w.counted(),
		Limits: w.processorParts(took.Seconds()*cores, busy, below, s),
		Note:   fmt.Sprintf("%s in %.0f s; p50 %s ms, p99 %s ms", w.told(), took.Seconds(), measure.Number(measure.Millis(s.P50)), measure.Number(measure.Millis(s.P99)))}
	rate.Met = rate.Measured >= 150
	n := w.count()
	after, err := w.things(&before)
	return []measure.Figure{rate, leftBy(n, before, after)}, err
}

// looks is how often things looks, and betweenLooks how many runs there are from
// one look to the next: together more than one generation of those who wait.
const looks, betweenLooks = 12, 10

// things is what there is when all rests. Some of it comes and goes with runs, as
// when those who wait are of an older and of a newer generation: so it is looked
// at several times with some runs between, and the least counts. What is left
// behind is there each time. Where it is enough, which may be nil, it is looked no
// further.
func (w *warmBench) things(enough *[len(counts)]int) (least [len(counts)]int, err error) {
	for look := range looks {
		for i := range betweenLooks * min(look, 1) {
			if err := w.run(i); err != nil {
				return least, err
			}
		}
		w.t.Settle(w.Ctx)
		within := enough != nil
		for i, n := range thingsOf(w.t.Trace()) {
			if look == 0 || n < least[i] {
				least[i] = n
			}
			within = within && least[i] <= enough[i]
		}
		if within {
			break
		}
	}
	return least, nil
}

// count is how many runs there were.
func (w *warmBench) count() (n int) {
	for _, y := range w.ways {
		n += len(y.took)
	}
	return n
}

// processorParts is what the processors did while runs followed each other: for
// the programs that ran, as their results have it, which is from their
// interpreter's start where that was before the request; for other processes of
// the sandbox; for Holdfast itself; for all else, or nothing.
func (w *warmBench) processorParts(all float64, busy processorUse, below float64, s measure.Speed) []measure.Part {
	own, programs := s.Processor.Seconds()*float64(w.count()), w.used.Seconds()+w.sys.Seconds()
	m := map[string]float64{
		"the programs that ran": w.used.Seconds(), "the kernel for them": w.sys.Seconds(), "Holdfast's own process": own,
		"launchers and first processes": below - programs,
	}
	if busy.known {
		m["idle"] = busy.idle
		m["the kernel beside them, other programs"] = all - busy.idle - own - max(below, programs)
	}
	return measure.PartsOf("s of processors", m)
}

// belowTime is the processor time of the processes below one and of those that
// they waited for, in seconds; 0 where the system does not say.
func belowTime(pid int) (sum float64) {
	for _, child := range children(pid) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		_, text, _ := strings.Cut(string(b), ") ")
		f := strings.Fields(text)
		if err != nil || len(f) < 15 {
			continue // it has ended
		}
		for _, word := range f[11:15] { // user, system, and the same of its children
			n, _ := strconv.ParseFloat(word, 64) // the kernel writes numbers
			sum += n / 100                       // USER_HZ
		}
		sum += belowTime(child)
	}
	return sum
}

// processorUse is what all processors together did, in seconds.
type processorUse struct {
	idle  float64
	known bool
}

func (u processorUse) since(before processorUse) processorUse {
	return processorUse{u.idle - before.idle, u.known && before.known}
}

// processors reads what the machine's processors did since it started.
func processors() processorUse {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return processorUse{} // not everywhere
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	if len(f) < 6 || f[0] != "cpu" {
		return processorUse{}
	}
	idle := 0.0
	for _, word := range f[4:6] { // idle, and waiting for a disk
		n, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return processorUse{}
		}
		idle += n / 100 // USER_HZ
	}
	return processorUse{idle, true}
}

// ownTemporary gives this process a directory of its own for temporary files, so
// that those of other programs are not counted, until back is called.
func ownTemporary(b *measure.Run) (back func(), err error) {
	was, set := os.LookupEnv("TMPDIR")
	dir, err := os.MkdirTemp(b.Dir, "tmp-")
	if err != nil {
		return nil, err
	}
	if err := os.Setenv("TMPDIR", dir); err != nil {
		return nil, err
	}
	return func() {
		if set {
			os.Setenv("TMPDIR", was)
			return
		}
		os.Unsetenv("TMPDIR")
	}, nil
}

// leftBy is what runs left behind.
func leftBy(n int, before, after [len(counts)]int) measure.Figure {
	f := measure.Figure{Name: fmt.Sprintf("left behind by %d runs", n), Unit: "things", Target: "0", Things: map[string]measure.BeforeAfter{}}
	var words []string
	for i, name := range counts {
		f.Measured += max(0, float64(after[i]-before[i]))
		f.Things[name] = measure.BeforeAfter{Before: before[i], After: after[i]}
		words = append(words, fmt.Sprintf("%s %d before, %d after", name, before[i], after[i]))
	}
	f.Met, f.Note = f.Measured == 0, strings.Join(words, "; ")
	return f
}
