package main

// command is one subcommand, or a group of them.
type command struct {
	name  string
	about string // one line for the list of all commands
	// help is prose whose example works when pasted.
	help string
	run  func(a *app, args []string) error
	// sub makes it a group: run is then nil.
	sub []command
	// otherwise is the one of a group that is meant where none is named.
	otherwise string
}

// meant is the arguments of a group with the name of one of its commands first.
func (c command) meant(args []string) []string {
	if c.otherwise == "" || len(args) > 0 && (args[0] == "help" || isHelp(args[0])) {
		return args
	}
	if len(args) > 0 {
		if _, named := find(c.sub, args[0]); named {
			return args
		}
	}
	return append([]string{c.otherwise}, args...)
}

// commands is every subcommand, in the order in which people meet them.
func commands() []command {
	return []command{
		initCommand(), upCommand(), mcpCommand(), runCommand(),
		checkCommand(), explainCommand(), stepCommand(), goalCommand(), budgetCommand(), execCommand(),
		reviewCommand(), haltCommand(), resumeCommand(), statusCommand(), topCommand(), alertsCommand(), reportCommand(),
		agentCommand(), ledgerCommand(), egressCommand(), rulesCommand(), snapshotCommand(), rollbackCommand(), stateCommand(), doctorCommand(), passphraseCommand(),
		keyCommand(), validateCommand(), redactCommand(),
		versionCommand(),
	}
}

func find(list []command, name string) (command, bool) {
	for _, c := range list {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}
