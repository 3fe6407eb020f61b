// Command embed shows Holdfast inside another program: a crossing is held, a
// person approves it, it runs once, and the ledger is verified.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/ledger"
)

const config = "version: 1\nboundaries:\n  - {boundary: files/delete, risk: HIGH}\n"

func main() {
	ctx := context.Background()
	dir := must(os.MkdirTemp("", "embed"))
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "holdfast.yaml")
	must(0, os.WriteFile(file, []byte(config), 0o600))

	d := must(daemon.Open(ctx, daemon.Options{State: filepath.Join(dir, "state"), Config: file}))
	passphrase := holdfast.NewSecret("four unrelated words here") // ask a person for it
	must(d.CreateOperator("ada", passphrase))
	token := must(d.Mint(holdfast.Identity{Agent: "tidy"}))
	request := holdfast.Request{Boundary: "files/delete", Payload: []byte(`{"path":"old.log"}`), Token: token}
	remove := func(context.Context) (holdfast.Output, error) { return holdfast.Output{Body: []byte(`"removed"`)}, nil }

	out, err := d.Kernel.Cross(ctx, request, remove)
	fmt.Println(out.Verdict, holdfast.KindOf(err))

	ada := must(d.OpenOperator("ada", passphrase))
	r := must(d.Kernel.Review(ctx, out.Review))
	r = must(ada.Decide(r, daemon.Answer{Act: daemon.Approve}))
	fmt.Println(r.Preview, "is", r.State, "by", r.Reviewer)

	out = must(d.Kernel.Cross(ctx, request, remove))
	fmt.Println(out.Verdict, string(out.Output.Body))

	var export bytes.Buffer
	must(0, d.ExportLedger(ctx, &export))
	verifier := ledger.ExportVerifier{Key: must(daemon.LedgerKey(d.Paths)), Deep: true}
	for _, tree := range must(verifier.Verify(&export)) {
		fmt.Println("verified", tree.Tenant, tree.Entries, "entries")
	}
	must(0, d.Close())
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
