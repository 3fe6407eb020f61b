package detector

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

func specOf(timeout time.Duration, args ...string) Spec {
	return Spec{Command: append([]string{os.Args[0], programMark}, args...), Timeout: timeout}
}

func newShelf(t *testing.T, specs ...Spec) *Shelf {
	t.Helper()
	s := NewShelf(nil)
	s.Set(specs)
	t.Cleanup(s.Close)
	return s
}

// Rows with the same command share one process, each with its own time; a text is sent once. A process that no row
// names any longer is ended, and the others keep running.
func TestShelfSharesProcesses(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record")
	one, two := specOf(10*time.Second, "record", record), specOf(20*time.Second, "record", record)
	other := specOf(20*time.Second, "good")
	s := newShelf(t, one, two, other)
	text := []byte("Ann Lee")
	for _, spec := range []Spec{one, two, one} {
		list, err := s.FinderOf(spec.Text()).Find(t.Context(), text)
		if err != nil || len(list) != 1 || list[0].Rule != "detector.name" {
			t.Fatal(list, err)
		}
	}
	if got, _ := os.ReadFile(record); strings.Count(string(got), firstText) != 1 ||
		strings.Count(string(got), "Ann Lee") != 1 {
		t.Errorf("%s", got)
	}
	kept, ended := s.byName[commandKey(one.Command)].now, s.byName[commandKey(other.Command)].now
	s.Set([]Spec{one, two})
	if s.byName[commandKey(one.Command)].now != kept {
		t.Error("a program that is still named was started again")
	}
	select {
	case <-ended.done:
	default:
		t.Error("a program that no row names runs")
	}
	if _, err := s.FinderOf(other.Text()).Find(t.Context(), text); !errors.Is(err, ErrClosed) || !IsFailure(err) {
		t.Error(err)
	}
	s.Close()
	s.Set([]Spec{one})
	if _, err := s.FinderOf(one.Text()).Find(t.Context(), text); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if s.FinderOf("") != nil || (*Shelf)(nil).FinderOf("x") == nil {
		t.Error("no spec needs a finder, or a shelf that is missing has none")
	}
}

// A row's own time bounds its answers, whatever others have.
func TestShelfKeepsEachTime(t *testing.T) {
	short, long := specOf(50*time.Millisecond, "late"), specOf(20*time.Second, "late")
	s := newShelf(t, short, long)
	if _, err := s.FinderOf(long.Text()).Find(t.Context(), []byte("slow Ann Lee")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FinderOf(short.Text()).Find(t.Context(), []byte("slow Ann Lee 2")); !errors.Is(err, ErrLate) {
		t.Error(err)
	}
}

// A program that cannot be started fails each search and is shown, until it can.
func TestShelfShowsWhatDoesNotStart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "program")
	spec := Spec{Command: []string{name, programMark, "good"}}
	s := newShelf(t, spec)
	_, err := s.FinderOf(spec.Text()).Find(t.Context(), []byte("Ann Lee"))
	if !errors.Is(err, ErrDown) || !IsFailure(err) {
		t.Error(err)
	}
	if list := s.Health(); len(list) != 1 || !strings.Contains(list[0], "cannot start the redaction detector") {
		t.Error(list)
	}
	if err := os.Symlink(os.Args[0], name); err != nil {
		t.Fatal(err)
	}
	p := s.byName[commandKey(spec.Command)]
	if _, err := p.getOrStart(p.tried.Add(retryAfter - 1)); err == nil {
		t.Error("started again without a pause")
	}
	if _, err := p.getOrStart(p.tried.Add(retryAfter)); err != nil || s.Health() != nil {
		t.Error(err, s.Health())
	}
}

// The texts of a body are searched, and nothing else: members' names and numbers stay.
func TestSearchBodyFindsTexts(t *testing.T) {
	e, err := redact.New(redact.Options{Masks: redact.Egress})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`{"Ann Lee":["Ann Lee",1,{"x":"of red \"Main St 1\""}],"n":"ann"}`: `{"Ann Lee":["[pii]",1,{"x":"of [pii] \"[pii]\""}],"n":"ann"}`,
		`{"a":"{\"to\":\"Ann Lee\"}"}`:                                     `{"a":"{\"to\":\"[pii]\"}"}`,
		`{ "a" : 1.0 }`:                                                    `{ "a" : 1.0 }`,
		"Ann Lee\n":                                                        "[pii]\n",
	} {
		w := new(wordFinder)
		r, err := SearchBody(t.Context(), e, w, "", []byte(in))
		if err != nil || string(r.Out) != want || (in != want) != r.Found() {
			t.Errorf("%s: %s %v %v, not %s", in, r.Out, r.Findings, err, want)
		}
		for _, text := range w.texts {
			if strings.Contains(text, `"n"`) {
				t.Errorf("the finder got %q", text)
			}
		}
		if in == `{ "a" : 1.0 }` && len(w.texts) > 0 {
			t.Errorf("the finder got %q", w.texts)
		}
	}
	if _, err := SearchBody(t.Context(), e, new(wordFinder), "", []byte(`{"a":"fail"}`)); !errors.Is(err, ErrLate) {
		t.Error(err)
	}
	var many strings.Builder
	for i := range 1 << 15 {
		many.WriteString(`,"` + strconv.Itoa(i) + strings.Repeat("w", 200) + `"`)
	}
	_, err = SearchBody(t.Context(), e, new(wordFinder), "", []byte("["+many.String()[1:]+"]"))
	if !errors.Is(err, ErrTooLong) || holdfast.KindOf(err) != holdfast.KindRedaction {
		t.Error(err)
	}
}

// Findings that overlap what must stay are left out.
func TestOverlappingFindingsAreDropped(t *testing.T) {
	f := func(pairs ...int) (list []redact.Finding) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, redact.Finding{Offset: pairs[i], Length: pairs[i+1]})
		}
		return list
	}
	got := dropOverlapping(f(0, 3, 5, 3, 10, 5, 20, 1), f(3, 2, 7, 1, 14, 1))
	if len(got) != 2 || got[0].Offset != 0 || got[1].Offset != 20 {
		t.Error(got)
	}
}
