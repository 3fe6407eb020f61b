package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"golang.org/x/term"
)

// person holds the flags of an act that needs an operator key (D11).
type person struct{ credential, reviewer, reason string }

func (p *person) flags(fs *flag.FlagSet) {
	fs.StringVar(&p.credential, "credential-file", "", "")
	fs.StringVar(&p.reviewer, "reviewer", "", "")
	fs.StringVar(&p.reviewer, "as", "", "")
	fs.StringVar(&p.reason, "reason", "", "")
}

const personFlags = `    --as NAME                whose key says so, where there are several; a key
                             without a name takes any (--reviewer), or $USER
    --credential-file FILE   a file of yours (0600) whose first line is the
                             passphrase; asked for on the terminal if absent
`

// signing makes a signed statement of an act.
type signing func(operator.Statement) (operator.Signed, error)

// signer opens the operator key of the state with the person's passphrase,
// once, for the statements of one command.
func (a *app) signer(p person, st *api.Status) (signing, error) {
	paths, err := a.paths()
	if err != nil {
		return nil, err
	}
	k, err := a.openKey(paths, p)
	if err != nil {
		return nil, err
	}
	name, err := a.nameOf(paths, k, p.reviewer)
	if err != nil {
		return nil, err
	}
	return func(s operator.Statement) (operator.Signed, error) {
		id, err := uuid.NewRandom()
		if err != nil {
			return operator.Signed{}, err
		}
		s.Reviewer, s.Reason, s.Runtime, s.ID, s.At = name, p.reason, st.Runtime, id.String(), time.Now().UTC()
		return operator.Sign(k, s)
	}, nil
}

// who is the name a person gave, or the user's.
func (a *app) who(name string) string {
	user, _ := a.lookup("USER")
	return or(or(name, user), "uid "+strconv.Itoa(os.Getuid()))
}

// nameOf is the name under which a key speaks: its own, or, where it has none,
// the one that was given.
func (a *app) nameOf(p daemon.Paths, k operator.Key, given string) (string, error) {
	keys, err := operatorKeys(p)
	if err != nil {
		return "", err
	}
	for _, pub := range keys {
		if pub.Equal(k.Public()) && pub.Name() != "" {
			if given != "" && given != pub.Name() {
				return "", usage("leave --as and --reviewer out", "the key is %s's, and cannot speak for %s", pub.Name(), given)
			}
			return pub.Name(), nil
		}
	}
	return a.who(given), nil
}

// operatorKeys reads the list of operators' keys.
func operatorKeys(p daemon.Paths) ([]operator.Public, error) {
	b, err := readPrivate(p.OperatorPub, operator.MaxKeyList)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return operator.ParseKeys(string(b))
}

// keyFile is where the person's sealed key is: the first operator's where there
// is none of that name.
func (who person) keyFile(p daemon.Paths) string {
	if own := p.OperatorKeyOf(who.reviewer); operator.CheckName(who.reviewer) == nil && there(own) {
		return own
	}
	return p.OperatorKey
}

func (a *app) openKey(p daemon.Paths, who person) (operator.Key, error) {
	sealed, err := readPrivate(who.keyFile(p), operator.MaxSealed)
	if errors.Is(err, os.ErrNotExist) {
		return operator.Key{}, &holdfast.Error{Kind: holdfast.KindPermission, Why: "there is no operator key in " + p.Dir, Hint: "make one with `" + a.forState("holdfast init") + "`"}
	}
	if err != nil {
		return operator.Key{}, err
	}
	pass, err := a.passphrase(who.credential, "passphrase of the operator key: ")
	if err != nil {
		return operator.Key{}, err
	}
	return operator.Open(sealed, pass)
}

// passphrase reads the first line of the credential file, or asks on the
// terminal without showing what is typed.
func (a *app) passphrase(file, prompt string) (holdfast.Secret, error) {
	if file != "" {
		b, err := readPrivate(file, operator.MaxPassphrase+4)
		if err != nil {
			return holdfast.Secret{}, err
		}
		line, _, _ := bytes.Cut(b, []byte("\n"))
		return holdfast.NewSecret(strings.TrimSuffix(string(line), "\r")), nil
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return holdfast.Secret{}, &holdfast.Error{Kind: holdfast.KindPermission, Why: "this needs the operator's passphrase, and there is no terminal to ask on",
			Hint: "run it on a terminal, or name a file of mode 0600 with --credential-file"}
	}
	defer tty.Close()
	fmt.Fprint(tty, "holdfast: "+prompt)
	b, err := a.readPassword(int(tty.Fd()))
	fmt.Fprintln(tty)
	return holdfast.NewSecret(string(b)), err
}

// readPassword reads a line without showing it. Interrupted, it leaves the
// terminal as it was.
func (a *app) readPassword(fd int) ([]byte, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	b, err := a.await(func() ([]byte, error) { return term.ReadPassword(fd) })
	if a.ctx.Err() != nil {
		err = errors.Join(err, term.Restore(fd, before))
	}
	return b, err
}

// readPrivate reads a file that must be this user's alone: regular, mode 0600
// or less, at most limit bytes.
func readPrivate(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return nil, fail("", "%s is not a regular file", path)
	case !ok || int(st.Uid) != os.Geteuid():
		return nil, fail("chown it to yourself", "%s belongs to another user", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fail("chmod 600 "+quoted(path), "others can read %s (mode %04o)", path, info.Mode().Perm())
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, fail("", "%s has more than %d bytes", path, limit)
	}
	return b, err
}

// personal carries out one act that needs a person.
func (a *app) personal(p person, s operator.Statement, do func(c *api.Client, w api.PersonsWord) error) error {
	return a.reach(func(c *api.Client, st *api.Status) error {
		sign, err := a.signer(p, st)
		if err != nil {
			return err
		}
		signed, err := sign(s)
		if err != nil {
			return err
		}
		return do(c, api.PersonsWord{Tenant: a.tenant, Signed: signed})
	})
}

// personalOn carries out a command that is one such act on one thing of the
// tenant's, whose name is its only argument.
func (a *app) personalOn(name string, args []string, act string, do func(c *api.Client, subject string, w api.PersonsWord) error) error {
	fs, p := a.flags(name), person{}
	p.flags(fs)
	rest, err := a.parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	return a.personal(p, operator.Statement{Act: act, Subject: rest[0], Tenant: a.tenant}, func(c *api.Client, w api.PersonsWord) error {
		return do(c, rest[0], w)
	})
}
