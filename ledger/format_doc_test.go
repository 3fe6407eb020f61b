package ledger

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// doc/ledger-format.md lists the fields of each kind of record in their order:
// who writes a reader from it must not be led astray.
func TestFormatIsWrittenDown(t *testing.T) {
	page, err := os.ReadFile("../doc/ledger-format.md")
	if err != nil {
		t.Fatal(err)
	}
	field := regexp.MustCompile("`([a-z0-9_]+)`")
	lists := map[string][]string{}
	for _, p := range strings.Split(string(page), "\n\n") {
		name, text, ok := strings.Cut(p, "** - ")
		if !ok {
			continue
		}
		name = strings.TrimPrefix(name, "**")
		text, _, _ = strings.Cut(text, ". Of a crossing")
		for _, m := range field.FindAllStringSubmatch(text, -1) {
			lists[name] = append(lists[name], m[1])
		}
	}
	between := func(list []string, from, to string) []string {
		return slices.Clone(list[slices.Index(list, from) : slices.Index(list, to)+1])
	}
	facts, begin, entry := lists["the facts"], lists["begin"], lists["entry"]
	if len(facts) == 0 || len(begin) == 0 || len(entry) == 0 || len(lists["event"]) == 0 {
		t.Fatalf("a list is not there: %v", lists)
	}
	agent := between(begin, "agent", "risk")
	begin = slices.Insert(begin, slices.Index(begin, "rates"), facts...)
	entry = slices.Replace(entry, slices.Index(entry, "agent"), slices.Index(entry, "risk")+1, agent...)
	entry = slices.Insert(entry, slices.Index(entry, "opinions"), facts...)
	for kind, c := range map[string]struct {
		r    appender
		want []string
	}{"begin": {fullBegin(), begin}, "entry": {fullEntry(), entry}, "event": {fullEvent(), lists["event"]}} {
		record, err := c.r.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		want := append([]string{"v", "kind", "id", "tenant_id"}, c.want...)
		if got := keysOf(t, record); !slices.Equal(got, want) {
			t.Errorf("%s\nis written %v\nthe page says %v", kind, got, want)
		}
	}
	if want := strconv.Itoa(maxLine); !strings.Contains(strings.ReplaceAll(string(page), ",", ""), "at most "+want+" bytes") {
		t.Errorf("the page does not say that a line has at most %s bytes", want)
	}
}

// keysOf are an object's names, in order.
func keysOf(t *testing.T, record []byte) (out []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(record)))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		out = append(out, name.(string))
	}
	return out
}
