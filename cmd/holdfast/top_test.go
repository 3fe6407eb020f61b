package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
)

// crowdedNow is more than any terminal shows, named by agents that mean harm.
func crowdedNow() *api.Now {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	n := &api.Now{At: at, PID: 7, Health: health.Yellow, MoreAgents: 1000, Alarms: []api.Alarm{}}
	for i := range 50 {
		n.Because = append(n.Because, "line\x1b[2Jone\nline two "+strings.Repeat("w", 500))
		n.Alarms = append(n.Alarms, api.Alarm{Tenant: "t\x1b[31m", Agent: strings.Repeat("a\r\n", 300), Condition: "loop", Severity: "HIGH", Since: at.Add(-time.Minute)})
		n.Agents = append(n.Agents, api.AgentNow{Tenant: holdfast.Local, Agent: fmt.Sprintf("agent%02d\x1b]0;mine\a\u202e", i), Last: at, Alarms: []string{"loop", "errors", strings.Repeat("x", 300)}})
	}
	return n
}

// Whatever agents are called and however many there are, what is drawn stays within
// the terminal, holds nothing that steers it, and says how much is left out.
func TestBad_Top_staysWithinTheTerminal(t *testing.T) {
	for _, size := range [][2]int{{40, 12}, {40, 1}, {80, 24}, {200, 60}} {
		lines := topLines(crowdedNow(), look{columns: size[0]}, size[1])
		if len(lines) > max(size[1], leastRows) {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, line := range lines {
			if width(line) > size[0] || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\u202e' }) {
				t.Errorf("%v: %q", size, line)
			}
		}
		all := strings.Join(lines, "\n")
		if strings.Count(all, " more alarms") != 1 || strings.Count(all, " more agents") != 1 || !strings.Contains(all, "agent00") {
			t.Errorf("%v:\n%s", size, all)
		}
	}
}

// What nobody knows is called so, and is never zero.
func TestTop_unknownIsNoZero(t *testing.T) {
	all := strings.Join(topLines(&api.Now{}, look{columns: 80}, 24), "\n")
	for _, want := range []string{"x RED", "unknown wait", "unknown are paused", "alarms   unknown", "no daemon answers"} {
		if !strings.Contains(all, want) {
			t.Errorf("it does not say %q:\n%s", want, all)
		}
	}
}
