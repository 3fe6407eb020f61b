package alert

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/testdisk"
)

// TestFullDiskLosesNoNotice: what is put while the disk is full is delivered, is a problem, and is kept
// over a restart once there is room.
func TestFullDiskLosesNoNotice(t *testing.T) {
	if testdisk.RunOnSmallDisk(t, "1m") {
		return
	}
	s := newSite(t)
	a, stop := s.startService()
	free := testdisk.Fill(t, s.dir)
	put := func(why string) { a.TakeNotice(kernel.Notice{Level: "error", Event: "x", Why: why}) }
	put("1 " + strings.Repeat("x", 8<<10))
	s.waitUntil("the first", func() bool { return len(s.took()) == 1 })
	if p := strings.Join(a.ListProblems(), "\n"); !strings.Contains(p, "cannot be kept over a restart: ") {
		t.Errorf("%q", p)
	}
	s.set(func() { s.answer = http.StatusServiceUnavailable })
	put("2 " + strings.Repeat("x", 8<<10))
	free()
	put("3")
	s.waitUntil("the failure", func() bool {
		isWebhook := func(e kernel.Event) bool { return e.Subject == webhookName }
		return slices.ContainsFunc(s.named("notice_failed"), isWebhook)
	})
	stop()
	s.set(func() { s.answer = http.StatusOK })
	a, _ = s.startService()
	s.waitUntil("the others", func() bool { return len(s.took()) == 3 })
	var order []string
	for _, v := range s.took() {
		order = append(order, v["why"].(string)[:1])
	}
	if !slices.Equal(order, []string{"1", "2", "3"}) {
		t.Errorf("%q", order)
	}
	if p := strings.Join(a.ListProblems(), "\n"); strings.Contains(p, "cannot be kept") {
		t.Errorf("%q", p)
	}
}
