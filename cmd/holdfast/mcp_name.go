package main

import (
	"path"
	"strings"
)

// runs says whether a program starts another one that is named further on.
func runs(program string) bool {
	switch program {
	case "npx", "bunx", "pnpx", "uvx", "pipx", "npm", "pnpm", "yarn", "bun", "deno", "uv", "node",
		"python", "python3", "go", "docker", "podman", "env", "sh", "bash":
		return true
	}
	return false
}

// between says whether an argument stands between such a program and what it
// runs.
func between(arg string) bool {
	switch arg {
	case "run", "exec", "dlx", "x", "tool", "create":
		return true
	}
	return strings.HasPrefix(arg, "-")
}

// takesValue says whether an option's value is the next argument, of the
// options that stand before a server: a container's, and a runner's packages.
func takesValue(program, option string) bool {
	switch program {
	case "docker", "podman":
		switch option {
		case "-e", "--env", "--env-file", "-v", "--volume", "--mount", "-p", "--publish", "--name", "--network", "--net",
			"-u", "--user", "-w", "--workdir", "-l", "--label", "--entrypoint", "--platform", "--add-host", "-m", "--memory":
			return true
		}
	case "npx", "pnpx", "bunx", "npm":
		return option == "-p" || option == "--package"
	case "uvx", "uv", "pipx":
		switch option {
		case "--from", "--with", "--python", "-p", "--directory", "--spec", "--index-url":
			return true
		}
	}
	return false
}

// serverName makes the server's name of its command: the last path element of
// the package or program, without version, suffix and what all servers' names
// share.
func serverName(argv []string) string {
	program, i := path.Base(argv[0]), 0
	for i < len(argv)-1 && (i == 0 && runs(program) || i > 0 && between(argv[i])) {
		if i > 0 && takesValue(program, argv[i]) && i < len(argv)-2 {
			i++
		}
		i++
	}
	name := path.Base(argv[i])
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	if image, _, tagged := strings.Cut(name, ":"); tagged && (program == "docker" || program == "podman") {
		name = image
	}
	for _, ext := range []string{".js", ".mjs", ".cjs", ".ts", ".py", ".sh", ".exe"} {
		name = strings.TrimSuffix(name, ext)
	}
	for _, p := range []string{"mcp-server-", "mcp_server_", "server-", "server_"} {
		if short, ok := strings.CutPrefix(name, p); ok && short != "" {
			return short
		}
	}
	for _, p := range []string{"-mcp-server", "_mcp_server"} {
		if short, ok := strings.CutSuffix(name, p); ok && short != "" {
			return short
		}
	}
	return name
}
