package mapping

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/redact"
)

var testOwner = Owner{"acme", "coder", "s1", "api.anthropic.com"}

func newTestSession() *Session { return NewSessions([]byte("key"), time.Now).Find(testOwner) }

// replaceAll has an engine replace what it finds in texts, as the proxy does.
func replaceAll(t *testing.T, s *Session, texts ...string) (out []string, r *Request) {
	t.Helper()
	e, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var in [][]byte
	for _, text := range texts {
		in = append(in, []byte(text))
	}
	r = s.Begin(in, nil)
	first := e.WithReplace(r.Replace)
	for i, text := range in {
		got, unread, err := first.Replace(text)
		if err != nil || unread {
			t.Fatalf("%q: unread %v, %v", text, unread, err)
		}
		r.Count(got.Findings)
		in[i] = got.Out
	}
	all, err := r.FindAgain()
	if err != nil {
		t.Fatal(err)
	}
	for _, again := range all {
		for i := range in {
			got, _, err := again.Replace(in[i])
			if err != nil {
				t.Fatal(err)
			}
			in[i] = got.Out
		}
	}
	for _, text := range in {
		out = append(out, string(text))
	}
	return out, r
}

func restoreText(s *Session, text string) string {
	out, _ := s.Snapshot().RestoreText(false, []byte(text))
	return string(out)
}

// TestEscapedValueIsReplaced: no letter of a value stays because it is percent-encoded or a \u escape; signs that
// are escaped do.
func TestEscapedValueIsReplaced(t *testing.T) {
	s := newTestSession()
	r := s.Begin(nil, nil)
	for _, value := range []string{"%51%7a%37%21%6b%66%6d%57", "%51%7A%37%21%6B%66%6D%57",
		`\u0051\u007a\u0037\u0021\u006b\u0066\u006d\u0057`, "abcdefgh12%51%7a%37%6b", "%C3%A4bcdefgh1234"} {
		got := string(r.Replace("secret.assignment", []byte(value)))
		was, now := listCodings([]byte(value))[0].decoded, listCodings([]byte(got))
		if len(now) > 0 {
			got = string(now[0].decoded)
		}
		for i := range len(was) - 2 {
			if part := string(was[i : i+3]); strings.Contains(got, part) {
				t.Errorf("%q became %q, which has %q", value, got, part)
			}
		}
		got = string(r.Replace("secret.assignment", []byte(value)))
		if back := restoreText(s, "x "+got+" y"); back != "x "+value+" y" {
			t.Errorf("%q came back as %q", value, back)
		}
	}
	if got := string(r.Replace("secret.url", []byte("abcdef%40ghijk12"))); got[6:9] != "%40" {
		t.Errorf("an escaped sign is lost in %q", got)
	}
}

func TestPlaceholderHasTheFormOfItsValue(t *testing.T) {
	s := newTestSession()
	r := s.Begin(nil, nil)
	for _, c := range []struct{ rule, value, prefix, suffix string }{
		{"email", "alice@corp.com", "", MailDomain},
		{"secret.github", "ghp_0123456789abcdefghijABCDEFGHIJ012345", "ghp_", ""},
		{"secret.model_key", "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ", "sk-ant-api03-", ""},
		{"secret.aws_key_id", "AKIAIOSFODNN7EXAMPLE", "AKIA", ""},
		{"secret.assignment", `Ma"ple 417!xq`, "", ""},
		{"card", "4111 1111 1111 1111", "", ""},
		{"pii.phone", "+49 475 319022", "+", ""},
		{"pii.ssn", "219-09-9999", "", ""},
		{"secret.private_key", "-----BEGIN X-----\nabcdEFGH0123\nabcdEFGH0123\n-----END X-----",
			"-----BEGIN X-----\n", "\n-----END X-----"},
	} {
		got := string(r.Replace(c.rule, []byte(c.value)))
		if got == c.value || !strings.HasPrefix(got, c.prefix) || !strings.HasSuffix(got, c.suffix) {
			t.Errorf("%s: %q became %q", c.rule, c.value, got)
		}
		if c.rule != "email" {
			if len(got) != len(c.value) {
				t.Errorf("%s: %q has another length than %q", c.rule, got, c.value)
			}
			for i := range c.value {
				if a, b := c.value[i], got[i]; isLetter(a) != isLetter(b) || isDigit(a) != isDigit(b) ||
					!isLetter(a) && !isDigit(a) && a != b {
					t.Fatalf("%s: %q is not like %q", c.rule, got, c.value)
				}
			}
		}
		if back := restoreText(s, "x "+got+" y"); back != "x "+c.value+" y" {
			t.Errorf("%q restored to %q", got, back)
		}
	}
	for _, short := range []string{"x1y2", "hunter2", "4711", "abc"} {
		got := string(r.Replace("secret.assignment", []byte(short)))
		if len(got) < 10 || restoreText(s, got) != short {
			t.Errorf("%q became %q", short, got)
		}
	}
}

func TestPlaceholderIsTheSameInEveryRequestAndAfterARestart(t *testing.T) {
	history := []string{"write to alice@corp.com", "password: Maple417!xq"}
	first, _ := replaceAll(t, newTestSession(), history...)
	other := newTestSession()
	second, _ := replaceAll(t, other, append(history, "and to bob@corp.com")...)
	if first[0] != second[0] || first[1] != second[1] {
		t.Fatalf("%q, then %q", first, second)
	}
	if strings.Contains(strings.Join(second, ""), "corp.com") || strings.Contains(second[1], "Maple") {
		t.Fatalf("a value was sent: %q", second)
	}
	if got := restoreText(other, second[2]); got != "and to bob@corp.com" {
		t.Fatalf("%q", got)
	}
}

func TestPlaceholderBelongsToOneOwner(t *testing.T) {
	all := NewSessions([]byte("key"), time.Now)
	sent, _ := replaceAll(t, all.Find(testOwner), "to alice@corp.com")
	for _, o := range []Owner{
		{"other", testOwner.Agent, testOwner.Session, testOwner.Row},
		{testOwner.Tenant, "other", testOwner.Session, testOwner.Row},
		{testOwner.Tenant, testOwner.Agent, "other", testOwner.Row},
		{testOwner.Tenant, testOwner.Agent, testOwner.Session, "other"},
	} {
		s := all.Find(o)
		if got := restoreText(s, sent[0]); got != sent[0] {
			t.Errorf("%v got %q", o, got)
		}
		if same, _ := replaceAll(t, s, "to alice@corp.com"); same[0] == sent[0] {
			t.Errorf("%v has the same placeholder", o)
		}
	}
}

func TestSecretFoundOnceIsReplacedEverywhere(t *testing.T) {
	s := newTestSession()
	got, _ := replaceAll(t, s, "connect with Maple417!xq please", "password: Maple417!xq",
		"TWFwbGU0MTcheHE= is TWFwbGU0MTcheHE=", "Maple417%21xq")
	all := strings.Join(got, "\n")
	for _, v := range []string{"Maple417", "TWFwbGU0MTcheHE"} {
		if strings.Contains(all, v) {
			t.Errorf("%q was sent: %q", v, got)
		}
	}
	if back := restoreText(s, got[0]); back != "connect with Maple417!xq please" {
		t.Errorf("%q", back)
	}
}

func TestRegisteredSecretIsNeverRestored(t *testing.T) {
	s := newTestSession()
	r := s.Begin(nil, nil)
	p := string(r.Replace("secret.literal", []byte("holdfast-own-secret-1")))
	if got := restoreText(s, p); got != p {
		t.Fatalf("%q", got)
	}
}

func TestPlaceholderThatIsRealTextIsNotRestored(t *testing.T) {
	s := newTestSession()
	sent, _ := replaceAll(t, s, "to alice@corp.com")
	p := strings.TrimPrefix(sent[0], "to ")
	// A person types what looks like the placeholder.
	again, _ := replaceAll(t, s, "to alice@corp.com", "my address is "+p)
	if again[0] == sent[0] {
		t.Fatalf("%q is real text, and still means a value", p)
	}
	if got := restoreText(s, p); got == "alice@corp.com" {
		t.Fatal("real text was restored")
	}
	if got := restoreText(s, again[0]+", "+again[1]); got != "to alice@corp.com, my address is "+p {
		t.Fatalf("%q", got)
	}
	// Also where the request that has it is the session's first, as after a restart.
	fresh := newTestSession()
	if got, _ := replaceAll(t, fresh, "to alice@corp.com", "my address is "+p); got[0] == sent[0] {
		t.Fatalf("%q", got)
	}
}

func TestOnlyExactPlaceholdersAreRestored(t *testing.T) {
	s := newTestSession()
	sent, _ := replaceAll(t, s, "token ghp_0123456789abcdefghijABCDEFGHIJ012345")
	p := strings.TrimPrefix(sent[0], "token ")
	for _, altered := range []string{p[:len(p)-4], strings.ToUpper(p), p[:20] + "-" + p[20:], p[:20] + "XXXXXXXX"} {
		out, n := s.Snapshot().RestoreText(false, []byte("x "+altered+" y"))
		if string(out) != "x "+altered+" y" || n.Restored != 0 {
			t.Errorf("%q became %q", altered, out)
		}
		if altered != strings.ToUpper(p) && n.Altered == 0 {
			t.Errorf("%q is not counted as altered", altered)
		}
	}
}

func TestRestoringEscapesAsTheModelDoes(t *testing.T) {
	s := newTestSession()
	r := s.Begin(nil, nil)
	value := "Ma\"p\\le\n417é!xq"
	p := string(r.Replace("secret.assignment", []byte(value)))
	for _, c := range []struct {
		inJSON    bool
		has, want string
	}{
		{false, p, value},
		{false, `x = "` + quoteJSON(p) + `"`, `x = "` + quoteJSON(value) + `"`},
		{true, `{"a":"` + quoteJSON(p) + `"}`, `{"a":"` + quoteJSON(value) + `"}`},
		{true, `{"a":"x = \"` + quoteJSON(quoteJSON(p)) + `\""}`, `{"a":"x = \"` + quoteJSON(quoteJSON(value)) +
			`\""}`},
	} {
		if got, _ := s.Snapshot().RestoreText(c.inJSON, []byte(c.has)); string(got) != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.has, got, c.want)
		}
	}
	shell := "Ma$ple's`417`\"xq"
	q := string(r.Replace("secret.assignment", []byte(shell)))
	for _, way := range []func(string) string{
		func(v string) string { return `'` + strings.ReplaceAll(v, `'`, `'\''`) + `'` },
		func(v string) string { return `'` + strings.ReplaceAll(v, `'`, `\'`) + `'` },
		func(v string) string {
			return `"` + strings.NewReplacer("$", "\\$", "`", "\\`", `"`, `\"`).Replace(v) + `"`
		},
		func(v string) string { return `grep '` + regexp.QuoteMeta(v) + `'` },
	} {
		if got := restoreText(s, way(q)); got != way(shell) {
			t.Errorf("%q\n got %q\nwant %q", way(q), got, way(shell))
		}
	}
	address := string(r.Replace("email", []byte("bob@corp.com")))
	if got := restoreText(s, `grep '`+regexp.QuoteMeta(address)+`'`); got != `grep 'bob@corp\.com'` {
		t.Errorf("%q", got)
	}
	mail := string(r.Replace("email", []byte("o'brien+x@corp.com")))
	if got := restoreText(s, "https://x/?to="+strings.ReplaceAll(mail, "@",
		"%40")); got != "https://x/?to=o%27brien%2Bx%40corp.com" {
		t.Errorf("%q", got)
	}
}

// However a text is cut, what comes out is the restoration of the whole.
func TestRestoringInPiecesIsRestoringTheWhole(t *testing.T) {
	s := newTestSession()
	r := s.Begin(nil, nil)
	var parts []string
	for i := range 50 {
		parts = append(parts, string(r.Replace("secret.github", fmt.Appendf(nil, "ghp_%036d", i))), "ghp_",
			" and ", "g", "hf-",
			string(r.Replace("email", fmt.Appendf(nil, "u%d@corp.com", i))), string(r.Replace(
				"secret.assignment", fmt.Appendf(nil, "k%d", i))))
	}
	rnd := rand.New(rand.NewPCG(27, 1))
	for range 300 {
		var text strings.Builder
		for range 1 + rnd.IntN(30) {
			part := parts[rnd.IntN(len(parts))]
			text.WriteString(part[:len(part)-min(len(part)-1, rnd.IntN(3)*rnd.IntN(5))])
		}
		want, n := s.Snapshot().RestoreText(false, []byte(text.String()))
		var out bytes.Buffer
		stream := s.Snapshot().Restore(false, &out)
		for rest := text.String(); rest != ""; {
			k := 1 + rnd.IntN(min(len(rest), 12))
			if _, err := stream.Write([]byte(rest[:k])); err != nil {
				t.Fatal(err)
			}
			if stream.Held() > 200 {
				t.Fatalf("%d bytes are held", stream.Held())
			}
			rest = rest[k:]
		}
		if err := stream.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != string(want) || stream.Counts().Restored != n.Restored {
			t.Fatalf("%q\n got %q %v\nwant %q %v", text.String(), out.String(), stream.Counts(), want, n)
		}
	}
}

func TestSessionsAreForgotten(t *testing.T) {
	now := time.Unix(0, 0)
	all := NewSessions([]byte("key"), func() time.Time { return now })
	s := all.Find(testOwner)
	s.Begin(nil, nil).Replace("email", []byte("alice@corp.com"))
	if now = now.Add(maxAge - time.Second); all.Find(testOwner) != s {
		t.Fatal("a session that is used was forgotten")
	}
	if now = now.Add(maxAge); all.Find(testOwner) == s {
		t.Fatal("a session is kept for more than a day")
	}
	for i := range maxGroups + 10 {
		all.Find(Owner{Agent: fmt.Sprint(i)})
	}
	if len(all.groups) > maxGroups {
		t.Fatalf("%d sessions", len(all.groups))
	}
	now = now.Add(maxAge)
	if all.Sweep(); len(all.groups) != 0 {
		t.Fatalf("%d sessions are kept that no one uses", len(all.groups))
	}
}

// TestWindowsMissNothing: what is in a text is never said to be unseen from it, and most of what is unseen is.
func TestWindowsMissNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(27, 3))
	text := make([]byte, 50_000)
	for i := range text {
		text[i] = byte('a' + rnd.IntN(26))
	}
	w := newWindows([][]byte{text[:20_000], text[20_000:]})
	for range 2000 {
		i, n := rnd.IntN(19_000), 1+rnd.IntN(40)
		if !w.mayHave(text[i : i+n]) {
			t.Fatalf("%q is in the text", text[i:i+n])
		}
	}
	unseen := 0
	for i := range 2000 {
		if !w.mayHave(fmt.Appendf(nil, "%012d@mail.example", i)) {
			unseen++
		}
	}
	if unseen < 1900 {
		t.Fatalf("only %d of 2000 are known to be unseen", unseen)
	}
}

// TestReplaceTakesLinearTime: a table of twenty thousand addresses has one placeholder for each, all of which are
// restored.
func TestReplaceTakesLinearTime(t *testing.T) {
	s := newTestSession()
	var table strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&table, "%d,user%d@corp-x.com,note %d\n", i, i, i)
	}
	out, r := replaceAll(t, s, table.String())
	if r.Replaced != 20_000 || strings.Contains(out[0], "corp-x") {
		t.Fatalf("%d were replaced", r.Replaced)
	}
	if back := restoreText(s, out[0]); back != table.String() {
		t.Fatal("not restored")
	}
}

// A request during an answer may take a placeholder away from its value: the answer is restored by what its own
// request had.
func TestSnapshotKeepsWhatItsRequestHad(t *testing.T) {
	s := newTestSession()
	sent, r := replaceAll(t, s, "to alice@corp.com")
	placeholders := r.Snapshot()
	replaceAll(t, s, "my address is "+strings.TrimPrefix(sent[0], "to "))
	for i := range 5 {
		replaceAll(t, s, fmt.Sprintf("password: %sMaple417!xq%d", strings.Repeat("x", maxAgain), i))
	}
	var out bytes.Buffer
	stream := placeholders.Restore(false, &out)
	for _, c := range []byte(sent[0]) {
		if _, err := stream.Write([]byte{c}); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Close(); err != nil || out.String() != "to alice@corp.com" {
		t.Errorf("in pieces %q, %v", out.String(), err)
	}
	if got, _ := placeholders.RestoreText(false, []byte(sent[0])); string(got) != "to alice@corp.com" {
		t.Errorf("whole %q", got)
	}
	if got := restoreText(s, sent[0]); got != sent[0] {
		t.Errorf("a later answer has %q for real text", got)
	}
}

// A placeholder that was real text once is not used again, also when a request does not have the text.
func TestRealTextStaysReal(t *testing.T) {
	s := newTestSession()
	sent, _ := replaceAll(t, s, "to alice@corp.com")
	p := strings.TrimPrefix(sent[0], "to ")
	replaceAll(t, s, "my address is "+p)
	if again, _ := replaceAll(t, s, "to alice@corp.com"); again[0] == sent[0] {
		t.Fatalf("%q is real text, and means a value again", p)
	}
}

func TestNumberIsRestoredAsAWordOnly(t *testing.T) {
	s := newTestSession()
	r := s.Begin(nil, nil)
	for _, value := range []string{"48120391", "4111 1111 1111 1111", "219-09-9999", "4711"} {
		p := string(r.Replace("card", []byte(value)))
		for _, has := range []string{p + "7", "7" + p, "a" + p, p + "f", "\\\\x" + p, "x-y" + p} {
			if got, n := s.Snapshot().RestoreText(false, []byte("id "+has+" end")); n.Restored != 0 {
				t.Errorf("%q became %q", has, got)
			}
		}
		for _, has := range []string{"%s", "(%s)", "id=%s,", `"%s"`, `a\n%s\n`, `\u003c%s\u003e`, "a%%20%s%%20", `\x0a%s`,
			"mysql -p%s", "-p%s", "user_%s_x", "é%sé", "+%s.", "%s:%s"} {
			has := strings.ReplaceAll(strings.ReplaceAll(has, "%s", "\x00"), "%%", "%")
			want := strings.ReplaceAll(has, "\x00", value)
			if got := restoreText(s, strings.ReplaceAll(has, "\x00", p)); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
}

// TestYieldLetsWordsGo: what a text ends with goes at a lull, unless a placeholder may have begun there.
func TestYieldLetsWordsGo(t *testing.T) {
	s := newTestSession()
	r := s.Begin(nil, nil)
	var all []string
	for i := range 400 {
		all = append(all, string(r.Replace("email", fmt.Appendf(nil, "u%d@corp.com", i))))
	}
	for _, c := range []struct{ text, out string }{
		{"I think tha", "I think tha"},
		{"that is " + all[7][:1], "that is "},
		{"that is " + all[7][:9], "that is "},
		{"that is\\n" + all[7][:2], "that is\\n"},
		{"mail " + all[7] + " tha", "mail u7@corp.com tha"},
	} {
		var out bytes.Buffer
		stream := s.Snapshot().Restore(false, &out)
		if _, err := stream.Write([]byte(c.text)); err != nil {
			t.Fatal(err)
		}
		if err := stream.Yield(); err != nil || out.String() != c.out || stream.Held() != len(c.text)-len(c.out) &&
			stream.Counts().Restored == 0 {
			t.Errorf("%q: %q came, %d are held, %v", c.text, out.String(), stream.Held(), err)
		}
	}
	// A lull at every place changes nothing.
	text := "to " + strings.Join(all[:50], ", the ") + " and\\n" + all[50] + ", x@mail.example"
	var out bytes.Buffer
	stream := s.Snapshot().Restore(false, &out)
	for _, c := range []byte(text) {
		_, _ = stream.Write([]byte{c})
		if err := stream.Yield(); err != nil {
			t.Fatal(err)
		}
	}
	_ = stream.Close()
	if want := restoreText(s, text); out.String() != want {
		t.Errorf("got %q\nwant %q", out.String(), want)
	}
}

// TestFindersAreMadeOnce: a session without values to seek everywhere makes no engine for each request.
func TestFindersAreMadeOnce(t *testing.T) {
	s := newTestSession()
	replaceAll(t, s, "to alice@corp.com")
	s.again = []finder{}
	replaceAll(t, s, "to alice@corp.com")
	if s.again == nil {
		t.Fatal("the engines were made again")
	}
}

// TestFindersAreKept: a new value has only the engine made again that finds the newest values.
func TestFindersAreKept(t *testing.T) {
	s := newTestSession()
	var lines strings.Builder
	for i := range maxSetCount + 10 {
		fmt.Fprintf(&lines, "password: Maple417!x%dq\n", i)
	}
	replaceAll(t, s, lines.String())
	before := slices.Clone(s.again)
	replaceAll(t, s, "password: Birch998!xq")
	if len(before) != 2 || len(s.again) != 2 || s.again[0].engine != before[0].engine ||
		s.again[1].engine == before[1].engine {
		t.Fatalf("%d engines, then %d", len(before), len(s.again))
	}
	if got, _ := replaceAll(t, s, "say Maple417!x3q and Birch998!xq"); strings.Contains(got[0], "Maple") ||
		strings.Contains(got[0], "Birch") {
		t.Fatalf("%q", got)
	}
}
