package code

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

const instructions = "run_code runs a program where it can reach nothing: no network, no file of this machine, an empty working directory. Use it to compute."

// reply answers everything but a call.
func (c *Conn) reply(m mcp.Message) map[string]any {
	info := map[string]any{"name": "holdfast-code", "version": c.cfg.Version}
	able := map[string]any{"tools": map[string]any{}}
	switch m.Method {
	case "initialize":
		v := mcp.ListVersions()[1]
		var p struct {
			Version string `json:"protocolVersion"`
		}
		// What has no handshake is not agreed on in one.
		if json.Unmarshal(m.Params, &p) == nil && slices.Contains(mcp.ListVersions()[1:], p.Version) {
			v = p.Version
		}
		return result(map[string]any{"protocolVersion": v, "capabilities": able, "serverInfo": info, "instructions": instructions})
	case "server/discover":
		return result(map[string]any{"resultType": "complete", "supportedVersions": mcp.ListVersions(),
			"capabilities": able, "instructions": instructions,
			"ttlMs": 0, "cacheScope": "private", "_meta": map[string]any{"io.modelcontextprotocol/serverInfo": info}})
	case "ping":
		return result(map[string]any{})
	case "tools/list":
		return result(map[string]any{"resultType": "complete", "tools": []any{tool()}, "ttlMs": 0, "cacheScope": "private"})
	}
	return failure(mcp.CodeNoMethod, "there is no such method here")
}

// tool describes the one tool. Nothing that it does outlives it or leaves the
// sandbox, so that by itself it only reads.
func tool() map[string]any {
	text := func(about string) map[string]any { return map[string]any{"type": "string", "description": about} }
	return map[string]any{
		"name": Tool, "title": "Run code in the sandbox",
		"description": "Run a program behind walls: no network, no file of this machine, no second process, at most 30 seconds and 512 MB where no stronger tier is chosen. " +
			"Returns what it printed, its exit code and the text files that it left in its working directory. Nothing is kept between two runs.",
		"inputSchema": map[string]any{
			"type": "object", "additionalProperties": false, "required": []any{"language", "code"},
			"properties": map[string]any{
				"language":        text("python3 or node, or an exact version such as python3.11"),
				"code":            text("the program's text"),
				"files":           map[string]any{"type": "object", "description": "text files for the program, by relative name", "additionalProperties": map[string]any{"type": "string"}},
				"timeout_seconds": map[string]any{"type": "number", "exclusiveMinimum": 0, "maximum": 3600, "description": "by the wall clock; 10 if absent, at most 30; in a container or VM 300, at most 3600"},
				"memory_mb":       map[string]any{"type": "integer", "minimum": 16, "maximum": 8192, "description": "256 if absent, at most 512; in a container 4096; in a VM 512 if absent"},
				"tier":            map[string]any{"type": "string", "enum": []any{"process", "container", "vm"}, "description": "the least sandbox that is asked for"},
				"evidence": map[string]any{
					"type": "object", "additionalProperties": false, "description": "what is known of the work; it can make the sandbox stronger, never weaker, and what is missing beside another counts as its worst",
					"properties": map[string]any{
						"predicted_entropy": map[string]any{"type": "number", "minimum": 0, "maximum": 100},
						"novelty":           map[string]any{"type": "number", "minimum": 0, "maximum": 1},
						"trust":             map[string]any{"type": "string", "enum": []any{"baseline", "medium", "high", "highest"}},
					},
				},
			},
		},
		"annotations": map[string]any{"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
	}
}

// call runs one call, whose context ends with it.
func (c *Conn) call(ctx context.Context, params []byte) map[string]any {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return failure(mcp.CodeBadParams, "the parameters cannot be read")
	}
	if p.Name != Tool {
		return failure(mcp.CodeBadParams, "there is no such tool here")
	}
	var r Request
	d := json.NewDecoder(bytes.NewReader(p.Arguments))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return result(shown(Answer{Text: "the arguments cannot be read: " + err.Error(), Failed: true}))
	}
	return result(shown(c.cfg.Run(ctx, r)))
}

func shown(a Answer) map[string]any {
	out := map[string]any{"resultType": "complete", "content": []any{map[string]any{"type": "text", "text": a.Text}}, "isError": a.Failed}
	if a.Structured != nil {
		out["structuredContent"] = a.Structured
	}
	return out
}

func result(v map[string]any) map[string]any { return map[string]any{"result": v} }

func failure(code int, why string) map[string]any {
	return map[string]any{"error": map[string]any{"code": code, "message": why}}
}
