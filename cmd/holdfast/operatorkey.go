package main

import (
	"errors"
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// makeOperator makes the first operator's key pair in the state directory,
// sealed by the first line of the credential file or by a passphrase that is
// asked for twice. It never replaces one. The key bears the name, or the user's
// where none is given and that one can be borne.
func (a *app) makeOperator(p daemon.Paths, credential, name string) (id string, err error) {
	if there(p.OperatorKey) || there(p.OperatorPub) {
		return "", fail("look at "+p.OperatorKey+" and "+p.OperatorPub, "half of an operator key is there already")
	}
	if user, _ := a.lookup("USER"); name == "" && operator.CheckName(user) == nil {
		name = user
	}
	public, err := a.newKey(p.OperatorKey, credential, name)
	if err != nil {
		return "", err
	}
	return public.ID() + prefix(" ", public.Name()), durable.CreateFile(p.OperatorPub, []byte(public.String()+"\n"), 0o600)
}

// newKey makes a key, sealed by a new passphrase, in a file that is not there
// yet. It bears the name, where there is one.
func (a *app) newKey(file, credential, name string) (operator.Public, error) {
	pass, err := a.newPassphrase(credential)
	if err != nil {
		return operator.Public{}, err
	}
	sealed, public, err := operator.New(pass, a.sealing)
	if err != nil {
		return operator.Public{}, err
	}
	if name != "" {
		public = public.Named(name)
	}
	return public, durable.CreateFile(file, sealed, 0o600)
}

// admitOperator makes one more operator's key, signed for by one who is there
// already, and records it.
func (a *app) admitOperator(p daemon.Paths, who person, credential, name string) (id string, err error) {
	file := p.OperatorKeyOf(name)
	public, err := a.newKey(file, credential, name)
	if err != nil {
		return "", err
	}
	admit := operator.Statement{Act: operator.Admit, Subject: public.ID(), Value: public.String()}
	err = a.personal(who, admit, func(c *api.Client, w api.PersonsWord) error {
		if err := c.Admit(a.ctx, w); err != nil {
			return err
		}
		return appendKey(p, operator.Entry(public, w.Signed))
	})
	if err != nil {
		return "", errors.Join(err, os.Remove(file))
	}
	return public.ID() + " " + name, nil
}

// appendKey adds a line to the list of keys, whole or not at all.
func appendKey(p daemon.Paths, line string) error {
	list, err := readPrivate(p.OperatorPub, operator.MaxKeyList)
	if err != nil {
		return err
	}
	text := strings.TrimRight(string(list), "\n") + "\n" + line + "\n"
	if _, err := operator.ParseKeys(text); err != nil {
		return err
	}
	return durable.ReplaceFile(p.OperatorPub, []byte(text), 0o600)
}

// tries is how often a person may mistype a new passphrase.
const tries = 3

// newPassphrase takes a new passphrase from the credential file, or asks for it
// twice on the terminal.
func (a *app) newPassphrase(credential string) (holdfast.Secret, error) {
	for try := 1; ; try++ {
		pass, err := a.passphrase(credential, "new passphrase for the operator key: ")
		if err != nil {
			return pass, err
		}
		wrong := operator.CheckPassphrase(pass)
		if credential != "" {
			return pass, wrong
		}
		if wrong == nil {
			again, err := a.passphrase("", "the same again: ")
			if err != nil || again.Reveal() == pass.Reveal() {
				return pass, err
			}
			wrong = fail("", "the two passphrases differ")
		}
		if try == tries {
			return pass, wrong
		}
		a.complain(wrong)
	}
}
