package server

import (
	"path"
	"strings"
)

// NameForCommand returns the name that boundaries have for the server that argv starts: the last path element of the
// package or program, without its version, its suffix and the words that names of servers share.
func NameForCommand(argv []string) string {
	program, i := path.Base(argv[0]), 0
	for i < len(argv)-1 && (i == 0 && isRunner(program) || i > 0 && precedesProgram(argv[i])) {
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

// isRunner reports whether program starts another program, which a later argument names.
func isRunner(program string) bool {
	switch program {
	case "npx", "bunx", "pnpx", "uvx", "pipx", "npm", "pnpm", "yarn", "bun", "deno", "uv", "node",
		"python", "python3", "go", "docker", "podman", "env", "sh", "bash":
		return true
	}
	return false
}

// precedesProgram reports whether arg comes between a runner and the program that it starts.
func precedesProgram(arg string) bool {
	switch arg {
	case "run", "exec", "dlx", "x", "tool", "create":
		return true
	}
	return strings.HasPrefix(arg, "-")
}

// takesValue reports whether the value of option is the next argument. It knows the options that come before a
// server: those of a container, and those that name packages.
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
