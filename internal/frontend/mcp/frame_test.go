package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestParseKeepsBytes(t *testing.T) {
	for _, id := range []string{`1.5`, `9007199254740993`, `"str"`, `"\u0073\/"`, `-7`, `0`, `1e400`, `"` + strings.Repeat("x", MaxID-2) + `"`} {
		line := `{"x-a":[1 , 2],"jsonrpc":"2.0", "id" : ` + id + ` ,"method":"tools/call","params":{"n":1.50,"u":"\u00e9"},"x-b":{"big":9007199254740993}}`
		m, err := Parse([]byte("  " + line + "\r\n"))
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if string(m.Raw) != line || string(m.ID) != id || m.Method != "tools/call" || string(m.Params) != `{"n":1.50,"u":"\u00e9"}` {
			t.Errorf("%s: read as %q %q %q", id, m.ID, m.Method, m.Params)
		}
		if m.Unknown == nil || *m.Unknown != "x-a" {
			t.Errorf("%s: the unknown member is %v", id, m.Unknown)
		}
		want := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"n":1.50,"u":"\u00e9"}}`
		if got := m.Line(); string(got) != want {
			t.Errorf("%s: wrote %s", id, got)
		}
	}
}

// TestLine: of a message, only what has a meaning is written, as it came.
func TestLine(t *testing.T) {
	for line, want := range map[string]string{
		`{"result":{"a":1.50},"x":1,"jsonrpc":"2.0","id":5}`:            `{"jsonrpc":"2.0","id":5,"result":{"a":1.50}}`,
		`{"error":{ },"id":"\u0061","params":{},"jsonrpc":"2.0"}`:       `{"jsonrpc":"2.0","id":"\u0061","params":{},"error":{ }}`,
		`{"jsonrpc":"2.0","result":null,"id":1e400}`:                    `{"jsonrpc":"2.0","id":1e400,"result":null}`,
		`{"jsonrpc":"2.0","method":"a\u0022\u0000<","\u0078":{"a":[]}}`: `{"jsonrpc":"2.0","method":"a\"\u0000<"}`,
	} {
		m, err := Parse([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(m.Line()); got != want {
			t.Errorf("%s is written %s", line, got)
		}
	}
}

func deep(n int) string {
	return `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":` + strings.Repeat("[", n-2) + strings.Repeat("]", n-2) + `}}`
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		code int
		why  string
		id   string
	}{
		"empty":             {"", CodeParse, "empty", ""},
		"batch":             {`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, CodeInvalidRequest, "batch", ""},
		"empty batch":       {`[]`, CodeInvalidRequest, "batch", ""},
		"string":            {`"x"`, CodeParse, "not a JSON object", ""},
		"truncated":         {`{"jsonrpc":"2.0","id":4,"method":"pi`, CodeParse, "JSON", "4"},
		"two messages":      {`{"jsonrpc":"2.0","id":1,"method":"ping"}{}`, CodeParse, "follows", "1"},
		"duplicate member":  {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}`, CodeParse, "duplicate name at /method", "1"},
		"duplicate by \\u":  {`{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"x"}`, CodeParse, "duplicate name", "1"},
		"duplicate inside":  {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":{"b":1,"b":2}}}`, CodeParse, "duplicate name at /params/a/b", "1"},
		"invalid UTF-8":     {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", CodeParse, "invalid UTF-8 at byte 34", "1"},
		"lone surrogate":    {`{"jsonrpc":"2.0","id":1,"method":"\ud800"}`, CodeParse, "not JSON at byte", "1"},
		"NUL":               {"{\"jsonrpc\":\"2.0\",\"id\":1,\x00\"method\":\"m\"}", CodeParse, "not JSON", "1"},
		"BOM":               {"\ufeff{}", CodeParse, "not a JSON object", ""},
		"too deep":          {deep(MaxDepth + 1), CodeInvalidRequest, "nested deeper than 64", "1"},
		"far too deep":      {strings.Repeat(`{"a":`, 1<<20), CodeInvalidRequest, "nested deeper", ""},
		"no version":        {`{"id":1,"method":"ping"}`, CodeInvalidRequest, "jsonrpc", "1"},
		"version as number": {`{"jsonrpc":2.0,"id":1,"method":"ping"}`, CodeInvalidRequest, "jsonrpc", "1"},
		"null id":           {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, CodeInvalidRequest, "id is not", ""},
		"object id":         {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, CodeInvalidRequest, "id is not", ""},
		"long id":           {`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", MaxID) + `","method":"ping"}`, CodeInvalidRequest, "id is not", ""},
		"method as number":  {`{"jsonrpc":"2.0","id":1,"method":1}`, CodeInvalidRequest, "method is not", "1"},
		"empty method":      {`{"jsonrpc":"2.0","id":1,"method":""}`, CodeInvalidRequest, "method is not", "1"},
		"params as array":   {`{"jsonrpc":"2.0","id":1,"method":"m","params":[]}`, CodeInvalidRequest, "params is not", "1"},
		"error as string":   {`{"jsonrpc":"2.0","id":1,"error":"x"}`, CodeInvalidRequest, "error is not", "1"},
		"both answers":      {`{"jsonrpc":"2.0","id":1,"result":null,"error":{}}`, CodeInvalidRequest, "both a result", "1"},
		"method and result": {`{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, CodeInvalidRequest, "both a method", "1"},
		"nothing":           {`{"jsonrpc":"2.0","id":1}`, CodeInvalidRequest, "neither", "1"},
		"answer to nobody":  {`{"jsonrpc":"2.0","result":{}}`, CodeInvalidRequest, "no id", ""},
		"method in capital": {`{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call"}`, CodeInvalidRequest, "only in case", "1"},
		"params, long s":    {`{"jsonrpc":"2.0","id":1,"method":"ping","param\u017f":{}}`, CodeInvalidRequest, "only in case", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.line))
			var f *Fault
			if !errors.As(err, &f) {
				t.Fatalf("got %v, want a fault", err)
			}
			if f.Code != c.code || !strings.Contains(f.Why, c.why) || string(f.ID) != c.id {
				t.Errorf("got %d %q id %q", f.Code, f.Why, f.ID)
			}
		})
	}
	if _, err := Parse([]byte(deep(MaxDepth))); err != nil {
		t.Errorf("depth %d: %v", MaxDepth, err)
	}
	if _, err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":{"s":"` + strings.Repeat("[{", 100) + `\"[["}}`)); err != nil {
		t.Errorf("brackets in a string: %v", err)
	}
}

// TestReaderSkipsLongLines: a line over the limit costs no memory, is answered
// under its id wherever that stands, and the next line is read.
func TestReaderSkipsLongLines(t *testing.T) {
	fill := strings.Repeat("x", MaxLine)
	for name, c := range map[string]struct{ line, id string }{
		"id first": {`{"jsonrpc":"2.0","id":"a","method":"m","params":{"p":"` + fill + `"}}`, `"a"`},
		"id last":  {`{"method":"m","params":{"p":"` + fill + `"},"jsonrpc":"2.0","id":17}`, `17`},
		"no id":    {fill + "x", ``},
	} {
		t.Run(name, func(t *testing.T) {
			in := c.line + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n"
			r := NewReader(iotest.HalfReader(strings.NewReader(in)))
			_, err := r.Next()
			var f *Fault
			if !errors.As(err, &f) || string(f.ID) != c.id || !strings.Contains(f.Why, fmt.Sprint(MaxLine)) {
				t.Fatalf("got %v, id %q", err, f.ID)
			}
			if m, err := r.Next(); err != nil || string(m.ID) != "2" {
				t.Fatalf("after it: %v", err)
			}
			if _, err := r.Next(); err != io.EOF {
				t.Fatalf("at the end: %v", err)
			}
		})
	}
}

func TestReaderAtItsLimit(t *testing.T) {
	head, tail := `{"jsonrpc":"2.0","id":1,"result":"`, `"}`
	for _, more := range []int{0, 1} {
		line := head + strings.Repeat("x", MaxLine-len(head)-len(tail)+more) + tail
		_, err := NewReader(strings.NewReader(line + "\r\n")).Next()
		if (err != nil) != (more == 1) {
			t.Errorf("%d bytes over: %v", more, err)
		}
	}
}

func TestReaderEnds(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	r := NewReader(strings.NewReader("\n \r\n" + ping + "\n\n" + ping))
	for range 2 {
		if m, err := r.Next(); err != nil || string(m.Raw) != ping {
			t.Fatal(err)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if _, err := NewReader(iotest.ErrReader(broken)).Next(); err != broken {
		t.Fatal(err)
	}
}

func TestIDKey(t *testing.T) {
	same := [][2]string{{`"a"`, `"\u0061"`}, {`1`, `1`}}
	other := [][2]string{{`1`, `"1"`}, {`1`, `1.0`}, {`9007199254740992`, `9007199254740993`}, {`"n1"`, `1`}}
	for _, p := range same {
		if IDKey([]byte(p[0])) != IDKey([]byte(p[1])) {
			t.Errorf("%s and %s differ", p[0], p[1])
		}
	}
	for _, p := range other {
		if IDKey([]byte(p[0])) == IDKey([]byte(p[1])) {
			t.Errorf("%s and %s are one", p[0], p[1])
		}
	}
	for _, none := range []string{``, `null`, `true`, `{}`, `[]`} {
		if k := IDKey([]byte(none)); k != "" {
			t.Errorf("%s has the key %q", none, k)
		}
	}
}

func TestEdit(t *testing.T) {
	obj := []byte(` { "a" : 1.50 , "b":{"c":[ ]},"d":null } `)
	set := func(v string, path ...string) string {
		b, err := Set(obj, []byte(v), path...)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	keep := func(names ...string) string {
		b, err := Keep(obj, func(n string) bool { return strings.Contains(strings.Join(names, " "), n) })
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, c := range [][2]string{
		{set(`2`, "a"), ` { "a" : 2 , "b":{"c":[ ]},"d":null } `},
		{set(`2`, "b", "c"), ` { "a" : 1.50 , "b":{"c":2},"d":null } `},
		{set(`2`, "b", "x"), ` { "a" : 1.50 , "b":{"c":[ ],"x":2},"d":null } `},
		{set(`2`, "x", `y"`), ` { "a" : 1.50 , "b":{"c":[ ]},"d":null ,"x":{"y\"":2}} `},
		{set(`2`, "d", "x"), "d: not an object"},
		{keep("a", "b", "d"), string(obj)},
		{keep("a", "d"), `{"a" : 1.50,"d":null}`},
		{keep(), `{}`},
		{string(Get(obj, "b", "c")), `[ ]`},
		{string(Get(obj, "a", "c")), ``},
	} {
		if c[0] != c[1] {
			t.Errorf("got  %s\nwant %s", c[0], c[1])
		}
	}
	b, err := KeepElements([]byte(`[ 1.50 , {"a":[2]},3 ]`), func(i int) bool { return i > 0 })
	if err != nil || string(b) != `[{"a":[2]},3]` {
		t.Errorf("%s %v", b, err)
	}
	if _, err := KeepElements([]byte(`{}`), nil); err == nil {
		t.Error("an object has no elements")
	}
}

// FuzzFrame: whatever is accepted is JSON, and what is written of it reads as
// the same message with nothing beside it.
func FuzzFrame(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"a","arguments":{}},"x":[1e400]}`,
		`{"result":{"a":1},"jsonrpc":"2.0","id":"\u0061"}`, `{"jsonrpc":"2.0","error":{},"id":-0}`,
		`[]`, `{"jsonrpc":"2.0","ID":1}`, `{`, "\xff", deep(65),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := NewReader(bytes.NewReader(line)).Next()
		if err != nil {
			return
		}
		if !json.Valid(m.Raw) {
			t.Fatalf("accepted %q", m.Raw)
		}
		if m.IsRequest() == m.IsNotification() && !m.IsResponse() {
			t.Fatalf("neither or both: %q", m.Raw)
		}
		n, err := Parse(m.Line())
		if err != nil {
			t.Fatalf("written: %v", err)
		}
		if n.Method != m.Method || !bytes.Equal(n.ID, m.ID) || !bytes.Equal(n.Params, m.Params) ||
			!bytes.Equal(n.Result, m.Result) || !bytes.Equal(n.Error, m.Error) || n.Unknown != nil {
			t.Fatalf("%q became %q", m.Raw, n.Raw)
		}
		if m.Params == nil {
			return
		}
		set, err := Set(m.Params, []byte(`"v"`), "_holdfast", "x")
		if err == nil && string(Get(set, "_holdfast", "x")) != `"v"` {
			t.Fatalf("set in %q gave %q", m.Params, set)
		}
	})
}

// TestLongLineKeepsItsID: the id of a line that is too long is found at its end,
// wherever the parts fall in which it is read.
func TestLongLineKeepsItsID(t *testing.T) {
	const tail = `"},"jsonrpc":"2.0","id":"the end"}` + "\n"
	head := `{"method":"tools/call","params":{"a":"`
	for _, over := range []int{1, 100, ends - len(tail), ends, 64<<10 - 20, 64 << 10, 64<<10 + 5, 3*64<<10 - len(tail) - len(head) - 10} {
		line := head + strings.Repeat("x", MaxLine+over) + tail
		r := NewReader(strings.NewReader(line + `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"))
		_, err := r.Next()
		var f *Fault
		if !errors.As(err, &f) || string(f.ID) != `"the end"` {
			t.Errorf("%d bytes over: %v, id %s", over, err, f.ID)
		}
		if m, err := r.Next(); err != nil || m.Method != "ping" {
			t.Errorf("%d bytes over: then %v", over, err)
		}
	}
}
