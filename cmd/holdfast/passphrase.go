package main

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

func passphraseCommand() command {
	return command{name: "passphrase", about: "change the passphrase of an operator key", run: changePassphrase, help: `
Seal an operator key with another passphrase. The old one is needed. The key
stays the same, and so does what it signed; nothing else has to be told.

    holdfast passphrase [flags]

    --as NAME                whose key, where there are several
    --credential-file FILE   a file of yours (0600) whose first line is the old
                             passphrase; asked for on the terminal if absent
    --new-credential-file FILE   the same, for the new one

Copies of the key's file, such as in a backup, still open with the old one: if
somebody else may have both, remove the file and make a new key with "holdfast
init" instead.

    $ holdfast passphrase
    operator:5ad0f2a7c1b93e44  sealed anew
`}
}

func changePassphrase(a *app, args []string) error {
	fs, who := a.flags("passphrase"), person{}
	fs.StringVar(&who.credential, "credential-file", "", "")
	fs.StringVar(&who.reviewer, "as", "", "")
	credential := fs.String("new-credential-file", "", "")
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	p, err := a.paths()
	if err != nil {
		return err
	}
	k, err := a.openKey(p, who)
	if err != nil {
		return err
	}
	defer k.Wipe()
	if _, err := a.nameOf(p, k, who.reviewer); err != nil {
		return err
	}
	sealed, err := a.sealAnew(k, *credential)
	if err != nil {
		return err
	}
	if err := durable.ReplaceFile(who.keyFile(p), sealed, 0o600); err != nil {
		return err
	}
	id := k.Public().ID()
	if a.json {
		return a.printJSON(map[string]string{"key": id, "state": "sealed anew"})
	}
	_, err = fmt.Fprintf(a.out, "%s  sealed anew\n", id)
	return err
}

// sealAnew seals the key with a new passphrase, and opens what that made before
// it may take the place of what is known to open.
func (a *app) sealAnew(k operator.Key, credential string) ([]byte, error) {
	pass, err := a.newPassphrase(credential)
	if err != nil {
		return nil, err
	}
	sealed, err := operator.Reseal(k, pass, a.sealing)
	if err != nil {
		return nil, err
	}
	again, err := operator.Open(sealed, pass)
	if err == nil && !again.Public().Equal(k.Public()) {
		err = &holdfast.Error{Kind: holdfast.KindInternal, Why: "the key that was sealed is another", Hint: "nothing was changed"}
	}
	again.Wipe()
	return sealed, err
}
