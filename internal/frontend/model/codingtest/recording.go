package codingtest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

//go:embed recorded/*.jsonl
var recorded embed.FS

// ReadRecording returns the requests of a host, "claude" or "codex", that worked through the task without Holdfast.
func ReadRecording(host string) ([]Asked, error) {
	text, err := recorded.ReadFile("recorded/" + host + ".jsonl")
	if err != nil {
		return nil, err
	}
	var all []Asked
	var tools json.RawMessage
	for line := range bytes.Lines(text) {
		var a Asked
		var body map[string]json.RawMessage
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, fmt.Errorf("cannot read recorded request %d: %w", len(all), err)
		}
		if err := json.Unmarshal(a.Body, &body); err != nil {
			return nil, fmt.Errorf("cannot read body of recorded request %d: %w", len(all), err)
		}
		if string(body["tools"]) == "null" {
			body["tools"] = tools
			if a.Body, err = json.Marshal(body); err != nil {
				return nil, err
			}
		}
		tools = body["tools"]
		all = append(all, a)
	}
	return all, nil
}

// omitted are the headers that a recording leaves out: credentials, and what a client of HTTP sets.
var omitted = []string{"Authorization", "X-Api-Key", "Cookie", "Connection", "Content-Length", "Accept-Encoding",
	"Host"}

// maxOwnText is the length to which a recording cuts a host's own texts, in bytes.
const maxOwnText = 120

// WriteRecording writes the requests of a host to a file, each in a line. It names the work tree /srv/project,
// leaves out credentials and tools that are those of the request before, and cuts the host's own instructions.
func WriteRecording(file string, all []Asked, tree string) error {
	var out bytes.Buffer
	var tools []byte
	for _, a := range all {
		for _, name := range omitted {
			delete(a.Header, name)
		}
		var body document
		if err := json.Unmarshal(a.Body, &body); err != nil {
			return err
		}
		for name, value := range body {
			if name != "messages" && name != "input" {
				body[name] = cutOwnTexts(value)
			}
		}
		for _, name := range []string{"messages", "input"} {
			list, _ := body[name].([]any)
			for i, m := range list {
				if v, _ := m.(document); v["role"] == "system" || v["role"] == "developer" {
					list[i] = cutOwnTexts(m)
				}
				cutReminders(m)
			}
		}
		now, err := json.Marshal(body["tools"])
		if err != nil {
			return err
		}
		if slices.Equal(now, tools) {
			body["tools"] = nil
		}
		tools = now
		a.Body = json.RawMessage(encodeArguments(body))
		line := strings.ReplaceAll(encodeArguments(a), tree, "/srv/project")
		line = deviceID.ReplaceAllString(line, "${1}0")
		out.WriteString(agentName.ReplaceAllString(line, "${1}agent") + "\n")
	}
	return os.WriteFile(file, out.Bytes(), 0o600)
}

// deviceID and agentName are what hosts derive from the machine and its user.
var (
	deviceID  = regexp.MustCompile(`(device_id\\+":\\+")[0-9a-f]+`)
	agentName = regexp.MustCompile(`(agent_name\\*":\\*")/root`)
)

// cutReminders cuts the host's own texts in the content of a message of a user.
func cutReminders(m any) {
	message, _ := m.(document)
	parts, _ := message["content"].([]any)
	for _, p := range parts {
		part, _ := p.(document)
		if text, _ := part["text"].(string); strings.HasPrefix(text, "<system-reminder>") {
			part["text"] = cutOwnTexts(text)
		}
	}
}

// cutOwnTexts returns a value with its texts cut to maxOwnText.
func cutOwnTexts(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ToValidUTF8(v[:min(len(v), maxOwnText)], "")
	case []any:
		for i := range v {
			v[i] = cutOwnTexts(v[i])
		}
	case document:
		for name := range v {
			v[name] = cutOwnTexts(v[name])
		}
	}
	return v
}
