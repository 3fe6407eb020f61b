package main

import (
	"errors"
	"fmt"
	"github.com/holdfast-dev/holdfast/internal/store/statedir"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

func initCommand() command {
	return command{name: "init", about: "make configuration, state and operator key", run: initAll, help: `
Make what Holdfast needs, without ever replacing anything: the state directory
with its keys, the operator key sealed by your passphrase, and a commented
holdfast.yaml. In force in it are contracts for the public MCP servers
filesystem, git, fetch and github, for use with "holdfast mcp": what looks
acts, what changes something waits for you. All else in it is commented out.

    holdfast init [flags]

    --config-out FILE        where the configuration goes; where commands look
                             for it, if absent
    --servers NAMES          contracts for these of filesystem, git, fetch and
                             github, apart by commas; all if absent, or none
    --no-operator            make no operator key
    --operator NAME          whose operator key it is; $USER if absent. Where
                             there is one already, this makes one for NAME as
                             well, which an operator who is there signs for
    --credential-file FILE   a file of yours (0600) whose first line is the
                             passphrase; asked for on the terminal if absent
    --new-credential-file FILE   the same, for the key of a further operator
    --as NAME                which operator signs for a further one

    $ holdfast init --servers filesystem,git
`}
}

// made is what init made or found.
type made struct{ what, path, how string }

func initAll(a *app, args []string) error {
	fs := a.flags("init")
	out := fs.String("config-out", "", "")
	servers := fs.String("servers", "", "")
	noOperator := fs.Bool("no-operator", false, "")
	name := fs.String("operator", "", "")
	further := fs.String("new-credential-file", "", "")
	var who person
	fs.StringVar(&who.credential, "credential-file", "", "")
	fs.StringVar(&who.reviewer, "as", "", "")
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	if *name != "" {
		if err := operator.CheckName(*name); err != nil {
			return err
		}
	}
	names, err := chosen(*servers)
	if err != nil {
		return err
	}
	path, err := a.configPlace(*out)
	if err != nil {
		return err
	}
	p, err := a.paths()
	if err != nil {
		return err
	}
	stateThere := there(p.DB)
	if p, err = statedir.OpenState(p.Dir); err != nil {
		return err
	}
	list, err := a.initConfig(path, names)
	if err == nil {
		err = a.initState(stateThere)
	}
	if err != nil {
		return errors.Join(err, takeBack(list))
	}
	list = append(list, made{"state", p.Dir, verb(!stateThere)})
	if !*noOperator {
		m, err := a.initOperator(p, who, *name, *further)
		if err != nil {
			return err
		}
		list = append(list, m)
	}
	return a.sayMade(list, p)
}

// takeBack removes the files that were made, where init cannot go on: a
// configuration that is refused must not stay in its place.
func takeBack(list []made) error {
	var errs []error
	for _, m := range list {
		if m.how == verb(true) {
			errs = append(errs, os.Remove(m.path))
		}
	}
	return errors.Join(errs...)
}

func verb(fresh bool) string {
	if fresh {
		return "made"
	}
	return "kept"
}

// configPlace is where the configuration goes: the flag, else the first place
// where commands look for it.
func (a *app) configPlace(flag string) (string, error) {
	if flag != "" {
		return filepath.Abs(flag)
	}
	if found, err := config.FindPath(a.config,
		a.lookup); err != nil || found != "" && found != "/etc/holdfast/holdfast.yaml" {
		return found, err
	}
	if dir, _ := a.lookup("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "holdfast", "holdfast.yaml"), nil
	}
	if dir, _ := a.lookup("HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, ".config", "holdfast", "holdfast.yaml"), nil
	}
	return "", usage("name one with --config-out", "there is no place for the configuration")
}

// initConfig writes the configuration, with contracts for those servers, and
// the schema that editors complete and check it with.
func (a *app) initConfig(path string, servers []string) ([]made, error) {
	text, err := configuration(servers)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	schema, err := config.EditorSchema()
	if err != nil {
		return nil, err
	}
	beside := filepath.Join(filepath.Dir(path), "holdfast.schema.json")
	var list []made
	for _, f := range []struct {
		what, path string
		text       []byte
	}{
		{"configuration", path, []byte(text)},
		{"editor schema", beside, append(schema, '\n')},
	} {
		err := durable.CreateFile(f.path, f.text, 0o600)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return list, err
		}
		list = append(list, made{f.what, f.path, verb(err == nil)})
	}
	if a.config == "" {
		a.config = path
	}
	_, err = config.Load(path)
	return list, err
}

// initState opens the state once, which makes its keys and its store.
func (a *app) initState(exists bool) error {
	d, err := a.open(slog.New(slog.DiscardHandler), "")
	if errors.Is(err, daemon.ErrOwned) && exists {
		return nil
	}
	if err != nil {
		return err
	}
	return d.Close()
}

func (a *app) initOperator(p daemon.Paths, who person, name, further string) (made, error) {
	m := made{"operator key", p.OperatorKey, "kept"}
	keys, err := operatorKeys(p)
	if err != nil {
		return m, err
	}
	known := slices.ContainsFunc(keys, func(k operator.Public) bool { return k.Name() == name })
	if len(keys) > 0 && name != "" && !known {
		m.path = p.OperatorKeyOf(name)
		id, err := a.admitOperator(p, who, further, name)
		m.how = "made, " + id
		return m, err
	}
	if there(p.OperatorKey) && there(p.OperatorPub) {
		return m, nil
	}
	id, err := a.makeOperator(p, who.credential, name)
	if holdfast.KindOf(err) == holdfast.KindPermission {
		m.how = "not made: there is no terminal to ask for a passphrase on; --credential-file FILE takes its first line"
		return m, nil
	}
	m.how = "made, " + id
	return m, err
}

// next is a command that works with what was made, wherever that stands.
func (a *app) next(path, cmd string) string {
	if found, err := config.FindPath("", a.lookup); err != nil || found != path {
		cmd = "holdfast --config " + quoted(path) + strings.TrimPrefix(cmd, "holdfast")
	}
	return a.forState(cmd)
}

func (a *app) sayMade(list []made, p daemon.Paths) error {
	var rows [][]string
	for _, m := range list {
		rows = append(rows, []string{m.what, m.path, m.how})
	}
	if a.json {
		out := map[string]any{}
		for _, m := range list {
			out[m.what] = map[string]string{"path": m.path, "how": m.how}
		}
		return a.printJSON(out)
	}
	table(a.out, rows)
	fmt.Fprintf(a.err, "\nNext, run the daemon, whose pages and commands you answer on:\n\n    %s\n", a.next(list[0].path, "holdfast up"))
	fmt.Fprintf(a.err, "\nand put this before the command of a server in your MCP client's configuration:\n\n    %s\n\n", a.next(list[0].path, "holdfast mcp --name NAME --"))
	fmt.Fprintf(a.err, "To undo everything: end the daemon, then\n\n    rm -r %s\n    rm %s %s\n", quoted(p.Dir), quoted(list[0].path), quoted(list[1].path))
	return nil
}
