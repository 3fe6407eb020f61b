package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"github.com/holdfast-dev/holdfast/internal/store/statedir"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

// trialsWanted is the variable with which `holdfast doctor` tries the sandbox in a test.
// Otherwise it leaves that out, which takes a second and a half of processor time:
// TestDoctorTriesARun and its like, and the script init, have it.
const trialsWanted = "HOLDFAST_TEST_TRIALS"

// runHoldfast is the command holdfast in tests. A passphrase takes a second and 256 MB to
// try, and the scripts give hundreds: a key that the command makes is sealed weakly.
func runHoldfast() {
	if os.Getenv(trialsWanted) == "" {
		trySandbox = func(*app, daemon.Paths) []finding { return nil }
	}
	os.Exit(program(operator.Options{WorkFactor: 15}))
}

// passphrase is the one of the keys that sealKey makes.
const passphrase = "correct horse battery"

// sealKey returns an operator key that opens within milliseconds, which no option of
// the product does, and its public line.
func sealKey() (sealed []byte, public string, err error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, "", err
	}
	r, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, "", err
	}
	r.SetWorkFactor(1)
	var out bytes.Buffer
	a := armor.NewWriter(&out)
	w, err := age.Encrypt(a, r)
	if err == nil {
		_, err = io.WriteString(w, "HOLDFAST-OPERATOR-SECRET-V1 "+base64.StdEncoding.EncodeToString(private.Seed()))
		err = errors.Join(err, w.Close(), a.Close())
	}
	if err != nil {
		return nil, "", err
	}
	key, err := operator.Open(out.Bytes(), holdfast.NewSecret(passphrase))
	return out.Bytes(), key.Public().String() + "\n", err
}

// writeKey writes such a key into a state directory, which it makes.
func writeKey(state string) error {
	p, err := statedir.OpenState(state)
	if err != nil {
		return err
	}
	sealed, public, err := sealKey()
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(p.OperatorKey, sealed, 0o600), os.WriteFile(p.OperatorPub, []byte(public), 0o600))
}

// sharedRoots returns a directory with Python's root as a daemon built it. To build one
// takes two seconds of processor time, and several daemons may use one.
var sharedRoots = sync.OnceValues(func() (string, error) {
	dir, err := shared()
	if err != nil {
		return "", err
	}
	state, program := filepath.Join(dir, "rooted"), filepath.Join(dir, "ok.py")
	config := filepath.Join(dir, "rooted.yaml")
	err = errors.Join(os.WriteFile(program, []byte("print(6 * 7)\n"), 0o600),
		os.WriteFile(config, []byte("version: 1\nlisten: {pages: none}\nboundaries:\n"+
			"  - {boundary: exec/*, risk: LOW, walls: [pid, net, mount, seccomp]}\n"), 0o600))
	if err != nil {
		return "", err
	}
	cmd := exec.Command("holdfast", "exec", "--lang", "python3", program)
	cmd.Env = append(os.Environ(), "HOLDFAST_STATE="+state, "HOLDFAST_CONFIG="+config)
	_, _ = cmd.CombinedOutput() // where no Python can be run there is nothing to share
	return filepath.Join(state, "sandbox"), os.MkdirAll(filepath.Join(state, "sandbox"), 0o700)
})

// shareRoots lets a state directory, which it makes, use the shared roots.
func shareRoots(state string) error {
	roots, err := sharedRoots()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return err
	}
	return os.Symlink(roots, filepath.Join(state, "sandbox"))
}
