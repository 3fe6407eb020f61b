package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strings"
	"unicode/utf16"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// canary is what is planted at one door: a secret that was registered, and one
// that its own form tells. Its hearts are what must not be seen anywhere, in
// any encoding.
type canary struct {
	Registered string `json:"registered"`
	Known      string `json:"known"`
	Hearts     [2]string
}

// plant makes the canary of a door. Seeded, so that every process knows it.
func plant(door string) canary {
	h := fnv.New64a()
	_, _ = h.Write([]byte(door))
	r := rand.New(rand.NewPCG(h.Sum64(), 20251122))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"[r.IntN(62)]
		}
		return string(b)
	}
	a, b := word(24), word(36)
	return canary{Registered: "zq." + a + ".end", Known: "ghp_" + b, Hearts: [2]string{a, b[6:30]}}
}

// text is a sentence with both.
func (c canary) text() string { return "take " + c.Registered + " and " + c.Known + " now" }

// spellings are the ways in which a heart could stand somewhere: none of them is
// made by the code under test.
func spellings(heart string) map[string][]byte {
	out := map[string][]byte{"plain": []byte(heart), "hex": []byte(hex.EncodeToString([]byte(heart))),
		"HEX": []byte(strings.ToUpper(hex.EncodeToString([]byte(heart))))}
	var le, be bytes.Buffer
	var percent, escaped, numbers strings.Builder
	for _, u := range utf16.Encode([]rune(heart)) {
		le.Write([]byte{byte(u), byte(u >> 8)})
		be.Write([]byte{byte(u >> 8), byte(u)})
		fmt.Fprintf(&percent, "%%%02X", u)
		fmt.Fprintf(&escaped, `\u%04x`, u)
		fmt.Fprintf(&numbers, "%d ", u)
	}
	out["UTF-16LE"], out["UTF-16BE"], out["escaped"] = le.Bytes(), be.Bytes(), []byte(escaped.String())
	out["percent"], out["percent lower"] = []byte(percent.String()), []byte(strings.ToLower(percent.String()))
	out["numbers"], out["numbers in JSON"] = []byte(numbers.String()), []byte(strings.ReplaceAll(numbers.String(), " ", ","))
	for name, text := range map[string][]byte{"base64": []byte(heart), "base64 of UTF-16": le.Bytes()} {
		for shift := range 3 {
			b := base64.StdEncoding.EncodeToString(append(make([]byte, shift), text...))
			b = b[(shift*8+5)/6 : (shift+len(text))*8/6]
			out[fmt.Sprint(name, "+", shift)] = []byte(b)
			out[fmt.Sprint(name, "url+", shift)] = []byte(strings.NewReplacer("+", "-", "/", "_").Replace(b))
		}
	}
	return out
}

// leakyServer is a real MCP server that says secrets wherever a server can say
// anything. What reaches it goes to the file of its first argument.
func leakyServer() {
	reached, err := os.OpenFile(os.Args[1], os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		os.Exit(1)
	}
	note := func(what string, v any) {
		b, _ := json.Marshal(v)
		fmt.Fprintf(reached, "%s %s\n", what, b)
	}
	note("env", os.Getenv("LEAKY_ENV"))
	say := func(door string) string { return plant(door).text() }
	fmt.Fprintln(os.Stderr, "starting with", say("stderr"), "and", os.Getenv("LEAKY_ENV"))
	s := mcp.NewServer(&mcp.Implementation{Name: "leaky " + plant("server name").Known, Title: say("server title"), Version: plant("server version").Known},
		&mcp.ServerOptions{Instructions: say("instructions")})
	type in struct {
		Text string `json:"text"`
	}
	tool := func(name, door, hint string) {
		yes := true
		ann := &mcp.ToolAnnotations{ReadOnlyHint: hint == "read"}
		if hint == "destroy" {
			ann.DestructiveHint = &yes
		}
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: say("description"), Annotations: ann},
			func(_ context.Context, _ *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
				note(name, a)
				fmt.Fprintln(os.Stderr, "called with", a.Text)
				switch door {
				case "error":
					return nil, nil, fmt.Errorf("cannot: %s", say("error"))
				case "big":
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("word ", 250) + say("result's cut")}}}, nil, nil
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: say(door)}},
					StructuredContent: map[string]any{"password": plant("structured").Registered, "n": say("structured")}}, nil, nil
			})
	}
	tool("leak", "result", "read")
	tool("big", "big", "read")
	tool("fail", "error", "read")
	tool("ask", "held result", "destroy")
	tool(plant("tool name").Known, "result", "read")
	s.AddResource(&mcp.Resource{URI: "file:///" + plant("resource").Known, Name: say("resource"), Description: say("resource")},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "file:///x", Text: say("resource")}}}, nil
		})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, "ended", say("stderr"), err)
		os.Exit(1)
	}
}
