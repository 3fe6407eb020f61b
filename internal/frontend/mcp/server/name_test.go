package server

import (
	"strings"
	"testing"
)

func TestNameForCommand(t *testing.T) {
	for argv, want := range map[string]string{
		"npx -y @modelcontextprotocol/server-filesystem /srv":                                 "filesystem",
		"npx -y @modelcontextprotocol/server-filesystem@2026.8.31 /srv":                       "filesystem",
		"npx --yes mcp-server-git":                                                            "git",
		"uvx mcp-server-time --local-timezone=UTC":                                            "time",
		"python -m mcp_server_fetch":                                                          "fetch",
		"node /opt/notes/server-notes.js /srv":                                                "notes",
		"/usr/local/bin/github-mcp-server stdio":                                              "github",
		"docker run -i ghcr.io/github/github-mcp-server":                                      "github",
		"docker run -i --rm -e GITHUB_PERSONAL_ACCESS_TOKEN ghcr.io/github/github-mcp-server": "github",
		"docker run -i --rm --mount type=bind,src=/a,dst=/b mcp/filesystem:1.0 /b":            "filesystem",
		"uvx mcp-server-git --repository /srv/repo":                                           "git",
		"uvx --from git+https://example.com/x mcp-server-fetch":                               "fetch",
		"npx -y -p @modelcontextprotocol/server-filesystem mcp-server-filesystem /srv":        "filesystem",
		"npx -p x":              "x",
		"-mcp-server":           "-mcp-server",
		"go run ./cmd/server-x": "x",
		"server-":               "server-",
		"npx":                   "npx",
	} {
		if got := NameForCommand(strings.Fields(argv)); got != want {
			t.Errorf("%s: %q, want %q", argv, got, want)
		}
	}
}
