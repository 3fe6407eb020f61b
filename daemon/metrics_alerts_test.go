package daemon

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// The metrics of alerts count what was really sent, failed and waits, channel by
// channel, and a channel that works again is none that fails. Each metric that a
// rule of Prometheus asks for is there.
func Test001_Layer5_Response_metrics(t *testing.T) {
	t.Parallel()
	p := newPhones(t)
	p.set("/mail", 500)
	d, c, down := alerted(t, p, "")
	defer down()
	until := func(name, want string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !strings.Contains("\n"+scrape(t, c, name)+"\n", "\n"+want+"\n"); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s is\n%s\nwant %s", name, scrape(t, c, name), want)
			}
		}
	}
	for _, channel := range []string{"sms", "mail", "chat"} {
		counts(t, c, "alerts_total", `{channel="`+channel+`",result="sent"} 0`)
		counts(t, c, "alerts_total", `{channel="`+channel+`",result="failed"} 0`)
		counts(t, c, "alert_channel_failing", `{channel="`+channel+`"} 0`)
		counts(t, c, "alerts_waiting", `{channel="`+channel+`"} 0`)
	}
	d.alerts.TakeFinding(finding(watch.Rapid, watch.Medium, "ann"))
	d.alerts.TakeFinding(finding(watch.Rapid, watch.Medium, "bob"))
	d.alerts.TakeFinding(finding(watch.Loop, watch.High, "bob"))
	d.alerts.TakeFinding(finding(watch.ErrorRate, watch.High, "bob"))
	until("alerts_total", `{channel="chat",result="sent"} 2`)
	until("alert_channel_failing", `{channel="mail"} 1`)
	counts(t, c, "alerts_waiting", `{channel="mail"} 2`)
	counts(t, c, "alerts_waiting", `{channel="chat"} 0`)
	counts(t, c, "alerts_total", `{channel="mail",result="sent"} 0`)
	counts(t, c, "alerts_total", `{channel="chat",result="failed"} 0`)
	counts(t, c, "alert_channel_failing", `{channel="chat"} 0`)
	if got := scrape(t, c, "alerts_total"); strings.Contains(got, `{channel="mail",result="failed"} 0`) || strings.Contains(got, phoneSecret) {
		t.Error(got)
	}

	p.set("/mail", 0)
	d.alerts.Reload(d.config().AlertSettings()) // as a reload does: it is tried now
	until("alerts_total", `{channel="mail",result="sent"} 2`)
	counts(t, c, "alerts_waiting", `{channel="mail"} 0`)
	counts(t, c, "alert_channel_failing", `{channel="mail"} 0`)
	counts(t, c, "alerts_total", `{channel="sms",result="sent"} 0`)

	rules, err := os.ReadFile("../deploy/prometheus/holdfast.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, own, _ := strings.Cut(string(rules), "name: holdfast-alerts\n")
	asked := regexp.MustCompile(`expr: holdfast_(\w+)`).FindAllStringSubmatch(own, -1)
	for _, m := range asked {
		if scrape(t, c, m[1]) == "" {
			t.Errorf("a rule asks for %s, which is not there", m[1])
		}
	}
	if len(asked) == 0 {
		t.Error("no rule is of a channel that fails")
	}
}
