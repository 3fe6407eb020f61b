package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// forger writes exports of its own making, signed with a key of its own.
type forger struct {
	k    *key
	priv ed25519.PrivateKey
	out  bytes.Buffer
	n    [4]int // tenants, leaves, parts, checkpoints
}

func newForger() *forger {
	pub, priv, _ := ed25519.GenerateKey(rand.Reader)
	f := &forger{k: &key{"holdfast/forged", append([]byte{1}, pub...)}, priv: priv}
	fmt.Fprintf(&f.out, "{\"holdfast_export\":1,\"key\":%s}\n", quote(f.k.String()))
	return f
}

func (f *forger) note(tenant string, size int64, root tlog.Hash, at string) string {
	name := f.k.name + "/tenant/" + tenant
	text := fmt.Sprintf("%s\n%d\n%s\nat %s\n", name, size, root, at)
	sum := sha256.Sum256(append([]byte(name+"\n"), f.k.raw...))
	sig := append(binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(sum[:4])), ed25519.Sign(f.priv, []byte(text))...)
	return text + "\n— " + name + " " + base64.StdEncoding.EncodeToString(sig) + "\n"
}

type leafOf struct {
	record string
	part   []byte
}

func rootOf(ls []leafOf) tlog.Hash {
	t := &tree{}
	for i, l := range ls {
		h, _ := tlog.StoredHashes(int64(i), []byte(l.record), t)
		t.stored, t.n = append(t.stored, h...), t.n+1
	}
	r, _ := t.rootNow()
	return r
}

// tenant writes a tree with a checkpoint over all of it.
func (f *forger) tenant(name string, ls []leafOf, at string) {
	root := rootOf(ls)
	fmt.Fprintf(&f.out, "{\"tenant\":%s,\"size\":%d,\"root\":%s}\n", quote(name), len(ls), quote(root.String()))
	for i, l := range ls {
		p := ""
		if l.part != nil {
			p = `"part":"` + base64.StdEncoding.EncodeToString(l.part) + `",`
			f.n[2]++
		}
		fmt.Fprintf(&f.out, "{\"seq\":%d,%s\"leaf\":%s}\n", i, p, l.record)
	}
	fmt.Fprintf(&f.out, "{\"checkpoint\":%s}\n", quote(f.note(name, int64(len(ls)), root, at)))
	f.n[0], f.n[1], f.n[3] = f.n[0]+1, f.n[1]+len(ls), f.n[3]+1
}

func (f *forger) done() []byte {
	fmt.Fprintf(&f.out, "{\"end\":true,\"tenants\":%d,\"leaves\":%d,\"parts\":%d,\"checkpoints\":%d}\n", f.n[0], f.n[1], f.n[2], f.n[3])
	return f.out.Bytes()
}

const forgedTime = "2026-11-21T08:00:00.000000Z"

func logged(i int, tenant string, size int, root tlog.Hash) leafOf {
	return leafOf{record: fmt.Sprintf(`{"v":1,"kind":"event","id":"c%d","tenant_id":"_checkpoints","timestamp":"%s","event":"checkpoint","who":"holdfast","subject":"%s %d %x"}`, i, forgedTime, tenant, size, root[:])}
}

// ledger is an export of one tenant, with the log that belongs to it.
func forgedLedger(ls []leafOf, at string, more ...leafOf) []byte {
	f := newForger()
	f.tenant(logTenant, append(more, logged(99, "acme", len(ls), rootOf(ls))), at)
	f.tenant("acme", ls, at)
	return f.done()
}

func beginOf(id string, more string) leafOf {
	return leafOf{record: `{"v":1,"kind":"begin","id":"` + id + `","tenant_id":"acme"` + more + `}`}
}

func entryOf(id, begin string, more string) leafOf {
	return leafOf{record: `{"v":1,"kind":"entry","id":"` + id + `","tenant_id":"acme","begin_seq":` + begin + `,"operation_result_hash":null` + more + `}`}
}

func TestAttackForgedExports(t *testing.T) {
	good := []leafOf{beginOf("a", ""), entryOf("a", "0", "")}
	if code, _, errs := verify(t, forgedLedger(good, forgedTime)); code != 0 {
		t.Fatalf("the forger does not even make a good one: %s", errs)
	}
	fork := rootOf([]leafOf{beginOf("another", "")})
	for name, export := range map[string][]byte{
		"second_entry_by_a_doubled_id":     forgedLedger(append(good[:2:2], entryOf("a", "null", `,"id":"b"`)), forgedTime),
		"second_entry_by_ID_in_capitals":   forgedLedger(append(good[:2:2], entryOf("a", "null", `,"ID":"b"`)), forgedTime),
		"entry_as_event_by_a_doubled_kind": forgedLedger(append(good[:2:2], entryOf("a", "0", `,"kind":"event"`)), forgedTime),
		"another_tenants_record_doubled":   forgedLedger(append(good[:2:2], leafOf{record: `{"v":1,"kind":"event","id":"x","tenant_id":"other","tenant_id":"acme"}`}), forgedTime),
		"part_hash_taken_away_by_doubling": forgedLedger(append(good[:2:2], leafOf{record: `{"v":1,"kind":"event","id":"x","tenant_id":"acme","part_hash":"` + strings.Repeat("0", 64) + `","part_hash":""}`}), forgedTime),
		"record_with_white_space":          forgedLedger(append(good[:2:2], leafOf{record: `{ "v" : 1, "kind":"event","id":"x","tenant_id":"acme"}`}), forgedTime),
		"checkpoint_at_no_time":            forgedLedger(good, "banana"),
		"fork_that_the_log_records":        forgedLedger(good, forgedTime, logged(1, "acme", 1, fork)),
		"log_of_a_head_larger_than_2_63":   forgedLedger(good, forgedTime, leafOf{record: `{"v":1,"kind":"event","id":"c","tenant_id":"_checkpoints","event":"checkpoint","subject":"acme -5 ` + strings.Repeat("0", 64) + `"}`}),
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := verify(t, export)
			if code == 0 {
				t.Errorf("it verifies: %s", out)
			}
			t.Log(errs)
		})
	}
}

// Many erasures, each of one part: the work must not grow with their product.
func TestAttackManyErasures(t *testing.T) {
	took := func(n int) time.Duration {
		tr := &tree{name: "acme", n: 2 * int64(n), said: int64(n)}
		for i := range int64(n) {
			tr.missing = append(tr.missing, i)
			tr.erasures = append(tr.erasures, [2]int64{int64(n) - i - 1, int64(n) - i})
		}
		begun := time.Now()
		if err := tr.unrecorded(); err != nil {
			t.Fatal(err)
		}
		return time.Since(begun)
	}
	if d := took(1_000_000); d > 10*time.Second {
		t.Errorf("a million erasures take %v", d)
	}
	tr := &tree{name: "acme", n: 9, said: 9, missing: []int64{1, 3, 6}, erasures: [][2]int64{{3, 4}, {0, 2}, {5, 6}}}
	if err := tr.unrecorded(); err == nil || !strings.Contains(err.Error(), "leaf 6") {
		t.Errorf("a part that no erasure covers: %v", err)
	}
}

// What is read must be spelled as it is written, in every place.
func TestRecordsInAnotherSpelling(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	for _, good := range []string{
		`{"v":1,"kind":"begin","id":"a","tenant_id":"acme","part_hash":"` + hash + `","timestamp":"` + forgedTime + `","caller_roles":["a","}"],"rates":[]}`,
		`{"v":1,"kind":"entry","id":"a","tenant_id":"acme","begin_seq":7,"operation_result_hash":"` + hash + `"}`,
		`{"v":1,"kind":"event","id":"a\"\\","tenant_id":"acme","event":"e","data":{"a":{"b":1},"b":[{"a":1},{"a":2}]}}`,
	} {
		if _, err := parse([]byte(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	front := `{"v":1,"kind":"event","id":"a","tenant_id":"acme"`
	entry := `{"v":1,"kind":"entry","id":"a","tenant_id":"acme"`
	for _, bad := range []string{
		``, `{}`, `null`, `{"v":1,"kind":"`, `{"v":1,"kind":"event"`, `{"v":1,"kind":"event"}`, front, front + `,}`, front + `}}`, front + `} `,
		`{"v":1,"kind":"event","id":"","tenant_id":"acme"}`, `{"v":1,"kind":"event","id":"\u0061","tenant_id":"acme"}`,
		`{"v":1,"kind":"event","tenant_id":"acme","id":"a"}`, `{"v":2,"kind":"event","id":"a","tenant_id":"acme"}`, `{"v":1,"kind":"Event","id":"a","tenant_id":"acme"}`,
		front + `,"Event":"e"}`, front + `,"event":"e","event":"e"}`, front + `,"who":"w","event":"e"}`, front + `,"\u0065vent":"e"}`, front + `,"event":1}`,
		front + `,"part_hash":null}`, front + `,"part_hash":""}`, front + `,"part_hash":"` + strings.ToUpper(hash) + `"}`, front + `,"timestamp":"banana"}`, front + `,"timestamp":7}`,
		front + `,"data":{"a":1,"a":2}}`, front + `,"data":{"a":1,"\u0061":2}}`, front + `,"data":[{"b":[{"a":1,"a":2}]}]}`, front + `,"data":{"b":[{"a":1,"a":2}]}}`,
		front + `,"data":{"a":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `}}`, front + `,"subject":"` + "\xff" + `"}`,
		entry + `}`, entry + `,"begin_seq":null}`, entry + `,"operation_result_hash":null}`, entry + `,"operation_result_hash":null,"begin_seq":null}`,
		entry + `,"begin_seq":-1,"operation_result_hash":null}`, entry + `,"begin_seq":1.0,"operation_result_hash":null}`, entry + `,"begin_seq":null,"operation_result_hash":""}`,
		entry + `,"begin_seq":null,"operation_result_hash":null,"begin_seq":1}`,
	} {
		if _, err := parse([]byte(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// Every head that the log records is compared, wherever the newest stands, and
// every checkpoint of a tenant must be there.
func TestHeadsBelowTheNewest(t *testing.T) {
	ls := []leafOf{beginOf("a", ""), beginOf("b", ""), beginOf("c", "")}
	good := []leafOf{logged(1, "acme", 1, rootOf(ls[:1])), logged(2, "acme", 2, rootOf(ls[:2])), logged(3, "acme", 2, rootOf(ls[:2]))}
	if code, _, errs := verify(t, forgedLedger(ls, forgedTime, good...)); code != 0 {
		t.Fatal(errs)
	}
	for i := range good {
		bad := append([]leafOf{}, good...)
		bad[i] = logged(9, "acme", 1+min(i, 1), rootOf(ls))
		if code, _, errs := verify(t, forgedLedger(ls, forgedTime, bad...)); code != 1 || !strings.Contains(errs, `"acme"`) && !strings.Contains(errs, logTenant) {
			t.Errorf("head %d: %d %s", i, code, errs)
		}
	}
	f := newForger()
	f.tenant(logTenant, []leafOf{logged(1, "acme", 3, rootOf(ls))}, forgedTime)
	f.tenant("acme", ls, forgedTime)
	early := fmt.Sprintf("{\"checkpoint\":%s}\n{\"seq\":1,\"leaf\":{\"v\":1,\"kind\":\"begin\",\"id\":\"b\"", quote(f.note("acme", 1, rootOf(ls[:1]), forgedTime)))
	f.n[3]++
	export := bytes.Replace(f.done(), []byte(`{"seq":1,"leaf":{"v":1,"kind":"begin","id":"b"`), []byte(early), 1)
	if code, _, errs := verify(t, export); code != 1 || !strings.Contains(errs, "does not record") {
		t.Errorf("a checkpoint that was never logged: %d %s", code, errs)
	}
}

// A file that never ends, or whose other end never comes, is no file.
func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	fifo, big := filepath.Join(dir, "fifo"), filepath.Join(dir, "big")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.WriteFile(big, make([]byte, maxSmall+1), 0o600)); err != nil {
		t.Fatal(err)
	}
	key := newForger().k.String()
	for _, args := range [][]string{{fifo}, {dir}, {"--key", fifo, "-"}, {"--key", big, "-"}, {"--key", key, "--checkpoint", fifo, "-"},
		{"--key", key, "--checkpoint", big, "-"}, {"--key", key, "--checkpoint", "/dev/zero", "-"}} {
		if code := run(args, strings.NewReader(""), io.Discard, io.Discard); code != 2 {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}
