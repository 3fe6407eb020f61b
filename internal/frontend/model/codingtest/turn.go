package codingtest

import (
	"net/url"
	"strings"
)

// chooseForClaude returns what the model does next with the tools of Claude Code.
func (c *conversation) chooseForClaude() turn {
	known := c.listKnown()
	run := func(command string) turn {
		return turn{tool: "Bash", arguments: document{"command": command, "description": "Work for " +
			known["new address"]}}
	}
	file := known["directory"] + "/"
	switch step := len(c.results); step {
	case 0, 4, 5, 7:
		next := run(known.listCommands()[step])
		next.think, next.say = known.thinkAloud(step)
		return next
	case 1:
		return turn{say: "I read the service.", tool: "Read", arguments: document{"file_path": file + "service.py"}}
	case 2:
		was, now := known.editService()
		return turn{tool: "Edit", arguments: document{"file_path": file + "service.py", "old_string": was,
			"new_string": now}}
	case 3:
		return turn{tool: "Write", arguments: document{"file_path": file + "notes.json", "content": known.writeNotes()}}
	case 6:
		return turn{tool: "Write", arguments: document{"file_path": file + "send.py", "content": known.writeProgram()}}
	}
	return turn{say: known.sayDone()}
}

// chooseForCodex returns what the model does next with the tools of Codex.
func (c *conversation) chooseForCodex() turn {
	known := c.listKnown()
	step := len(c.results)
	command, ok := known.listCommands()[step]
	switch step {
	case 1:
		command = "cat service.py"
	case 2:
		was, now := known.editService()
		command = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: service.py\n@@\n-" + was + "\n+" +
			strings.ReplaceAll(now, "\n", "\n+") + "\n*** End Patch\nEOF"
	case 3:
		command = "cat >notes.json <<'EOF'\n" + known.writeNotes() + "EOF"
	case 6:
		command = "cat >send.py <<'EOF'\n" + known.writeProgram() + "EOF"
	default:
		if !ok {
			return turn{say: known.sayDone()}
		}
	}
	next := turn{tool: "exec_command", arguments: document{"cmd": command}}
	next.think, next.say = known.thinkAloud(step)
	return next
}

// listCommands returns the shell commands of the task, by step.
func (f found) listCommands() map[int]string {
	author := "git -c user.name='Carol Reyes' -c user.email='" + f["new address"] + "' "
	return map[int]string{
		0: "cat config.env contacts.csv key.pem; git log -1 --format='last commit by %ae'; echo \"directory $PWD\"",
		4: "printf 'in base64 %s\\n' \"$(printf %s '" + f["token"] + "' | base64 -w0)\"; " +
			"printf 'in hex %s\\n' \"$(printf %s '" + f["password"] + "' | od -An -tx1 | tr -d ' \\n')\"",
		5: "printf '%s\\n' '" + f["base64"] + "' " + f["hex"] + " >encoded.txt; cat encoded.txt service.py",
		7: "git add -A && " + author + "commit -qm \"Send to " + f["new address"] + "\n\nand " + f["address"] +
			"\" && git log -2 --format='%an <%ae> %s' && git show HEAD:notes.json",
	}
}

// thinkAloud returns what the model thinks and says before a call.
func (f found) thinkAloud(step int) (think, say string) {
	switch step {
	case 0:
		return "The contact is " + f["new address"] + ", the token " + f["new token"] + ".",
			"I look at the files for " + f["new address"] + "."
	case 4:
		return "", "I use `" + f["token"] + "` and '" + f["password"] + "' now."
	}
	return "", ""
}

// editService returns a line of service.py and what replaces it.
func (f found) editService() (was, now string) {
	was = "SUPPORT = \"" + f["support"] + "\""
	return was, was + "\nCONTACT = '" + f["new address"] + "'\nTOKEN = \"" + f["new token"] + "\"\nDATABASE = \"" +
		f["connection"] + "\""
}

// writeNotes returns notes.json.
func (f found) writeNotes() string {
	return encodeArguments(document{
		"contacts":    []string{f["address"], f["new address"], f["support"], f["committer"]},
		"phone":       f["phone"],
		"card":        f["card"],
		"credentials": document{"github": f["token"], "password": f["password"], "aws": f["secret key"]},
		"key":         f["private key"] + "\n",
		"nested":      encodeArguments(document{"to": f["address"], "password": f["password"]}),
	}) + "\n"
}

// writeProgram returns send.py.
func (f found) writeProgram() string {
	return "TO = [\"" + f["address"] + "\", '" + f["committer"] + "']\n" +
		"TOKEN = b\"" + f["token"] + "\"\n" +
		"HEADERS = {\"Authorization\": f\"Bearer " + f["new token"] + "\"}\n" +
		"LINK = \"https://api.corp-example.com/send?to=" + url.QueryEscape(f["address"]) + "&password=" +
		url.QueryEscape(f["password"]) + "\"\n" +
		"KEY = " + encodeArguments(f["private key"]) + "\n" +
		"AWS = {'secret': '" + f["secret key"] + "', 'card': '" + f["card"] + "'}\n"
}

// sayDone returns the last text.
func (f found) sayDone() string {
	return "Sent to " + f["new address"] + " with " + f["token"] + " and " + f["password"] + "; card " + f["card"] +
		", phone " + f["phone"] + ".\n\n```\n" + f["private key"] + "\n```\n"
}
