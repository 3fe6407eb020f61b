package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/operator"
)

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// makeOperator makes the operator's key pair in the state directory, sealed by
// the first line of the credential file or by a passphrase that is asked for
// twice. It never replaces one.
func (a *app) makeOperator(p daemon.Paths, credential string) (id string, err error) {
	if there(p.OperatorKey) || there(p.OperatorPub) {
		return "", fail("look at "+p.OperatorKey+" and "+p.OperatorPub, "half of an operator key is there already")
	}
	pass, err := a.newPassphrase(credential)
	if err != nil {
		return "", err
	}
	sealed, public, err := operator.New(pass, operator.Options{})
	if err != nil {
		return "", err
	}
	if err := writeNew(p.OperatorKey, sealed); err != nil {
		return "", err
	}
	return public.ID(), writeNew(p.OperatorPub, []byte(public.String()+"\n"))
}

func (a *app) newPassphrase(credential string) (holdfast.Secret, error) {
	pass, err := a.passphrase(credential, "new passphrase for the operator key: ")
	if err != nil {
		return pass, err
	}
	if err := operator.CheckPassphrase(pass); err != nil || credential != "" {
		return pass, err
	}
	again, err := a.passphrase("", "the same again: ")
	if err == nil && again.Reveal() != pass.Reveal() {
		err = fail("start again", "the two passphrases differ")
	}
	return pass, err
}

// writeNew makes a file of mode 0600 that did not exist, durably.
func writeNew(path string, b []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
