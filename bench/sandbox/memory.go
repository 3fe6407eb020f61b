package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// memory is what one that waits has of its own: the pages that its init and its
// workload have written and share with nobody, and what the kernel has for them.
func (w *warmBench) memory() ([]measure.Figure, error) {
	w.t.Settle(w.Ctx)
	sum, n, kernels := map[string]float64{}, 0.0, 0.0
	waiting, from := thoseWhoWait(os.Getpid())
	for _, init := range waiting {
		n++
		tables, of := 0.0, 0
		for _, pid := range append([]int{init}, children(init)...) {
			if err := dirtied(pid, sum); err != nil {
				return []measure.Figure{{Name: "memory of one that waits", Note: excerpt.Printable(err.Error())}}, nil
			}
			tables, of = tables+statusField(pid, "VmPTE:"), pid
		}
		if k, ok := kernelMemory(of); ok {
			kernels++
			sum["the kernel for it, page tables too"] += k
		} else {
			sum["page tables"] += tables
		}
	}
	if n == 0 {
		return nil, errors.New("none waits")
	}
	own := 0.0
	for what := range sum {
		sum[what] /= n
		own += sum[what]
	}
	f := measure.Figure{Name: "memory of its own, of one that waits", Measured: own, Unit: "MB", Target: "<= 3 MB", Limits: measure.PartsOf("MB", sum),
		Note: fmt.Sprintf("mean of %.0f: Private_Dirty of init and interpreter in /proc/PID/smaps, and what the kernel has, for %.0f of them as their control group counts it, else VmPTE", n, kernels)}
	f.Met = f.Measured <= 3
	shared, err := memoryOf("what those who wait come from, each", from)
	if err != nil {
		shared.Unit, shared.Note = "", excerpt.Printable(err.Error())
	}
	return []measure.Figure{f, shared}, nil
}

// thoseWhoWait are the first processes of namespaces, below a process, in which a
// program waits, and the processes that they are children of.
func thoseWhoWait(pid int) (inits, from []int) {
	for _, child := range children(pid) {
		below := children(child)
		if leadsSpace(child) && len(below) > 0 && !slices.ContainsFunc(below, leadsSpace) {
			inits, from = append(inits, child), append(from, pid)
			continue
		}
		i, f := thoseWhoWait(child)
		inits, from = append(inits, i...), append(from, f...)
	}
	return inits, slices.Compact(from)
}

// leadsSpace says whether a process is the first of a PID namespace of its own.
func leadsSpace(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it may have ended
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "NSpid:" {
			return f[len(f)-1] == "1"
		}
	}
	return false
}

// dirtied adds the pages that only this process has, and has written, to sum, by
// the kind of their mapping, in MB.
func dirtied(pid int, sum map[string]float64) error {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return err
	}
	kind := ""
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if !strings.HasSuffix(f[0], ":") { // the head of a mapping
			kind = "memory without a file"
			if len(f) > 5 {
				kind = mappingKind(f[5])
			}
			continue
		}
		if f[0] == "Private_Dirty:" && len(f) > 1 {
			kb, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				return err
			}
			if kb > 0 {
				sum[kind] += kb * 1024 / 1e6
			}
		}
	}
	return nil
}

// mappingKind says what a mapping with that name is.
func mappingKind(name string) string {
	switch {
	case name == "[heap]":
		return "heap"
	case strings.HasPrefix(name, "[stack"):
		return "stack"
	case strings.HasPrefix(name, "[anon"):
		return "memory without a file"
	case strings.HasPrefix(name, "/"):
		return "data of programs and libraries"
	}
	return name
}

// statusField is a line of /proc/PID/status, in MB; 0 where there is none.
func statusField(pid int, name string) float64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it may have ended
	return field(string(b), name)
}

// kernelMemory is what the kernel has for the processes of a process's control
// group, in MB, where that is not Holdfast's own and says it: version 1 in a file
// of its own, version 2 in its statistics.
func kernelMemory(pid int) (float64, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	own, err2 := os.ReadFile("/proc/self/cgroup")
	if err != nil || err2 != nil {
		return 0, false
	}
	shared := strings.Fields(string(own))
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 || slices.Contains(shared, strings.TrimSpace(line)) {
			continue
		}
		if f[1] == "memory" {
			text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup/memory", f[2], "memory.kmem.usage_in_bytes"))
			if n, bad := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil && bad == nil {
				return n / 1e6, true
			}
		}
		if f[1] != "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", f[2], "memory.stat"))
		if err != nil {
			continue
		}
		for row := range strings.Lines(string(text)) {
			if w := strings.Fields(row); len(w) == 2 && w[0] == "kernel" {
				n, bad := strconv.ParseFloat(w[1], 64)
				return n / 1e6, bad == nil
			}
		}
	}
	return 0, false
}
