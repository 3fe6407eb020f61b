package redaction

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

const (
	digits  = "0123456789"
	capital = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	alnum   = digits + capital + "abcdefghijklmnopqrstuvwxyz"
)

// randomFrom returns n characters of an alphabet.
func randomFrom(r *rand.Rand, alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

// randomBytes returns n bytes.
func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// randomKinds returns what makes values of each kind: ids, integers and blobs.
func randomKinds() map[string]func(r *rand.Rand) string {
	blob := func(encode func([]byte) string, n int) func(*rand.Rand) string {
		return func(r *rand.Rand) string { return encode(randomBytes(r, n)) }
	}
	kinds := map[string]func(*rand.Rand) string{
		"UUID": func(r *rand.Rand) string {
			b := randomBytes(r, 16)
			b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
			return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
		},
		"int64":            func(r *rand.Rand) string { return strconv.FormatInt(int64(r.Uint64()), 10) },
		"uint64":           func(r *rand.Rand) string { return strconv.FormatUint(r.Uint64(), 10) },
		"time in ns":       func(r *rand.Rand) string { return strconv.FormatInt(1.7e18+r.Int64N(1e17), 10) },
		"float":            func(r *rand.Rand) string { return strconv.FormatFloat(-10*r.Float64(), 'g', -1, 64) },
		"prefixed id":      func(r *rand.Rand) string { return "msg_" + randomFrom(r, alnum, 24) },
		"base62 of 22":     func(r *rand.Rand) string { return randomFrom(r, alnum, 22) },
		"base32 of 32":     blob(base32.StdEncoding.EncodeToString, 32),
		"SHA-1 in hex":     blob(hex.EncodeToString, 20),
		"SHA-256 in hex":   blob(hex.EncodeToString, 32),
		"base64 of 48":     blob(base64.StdEncoding.EncodeToString, 48),
		"base64 of 1 KB":   blob(base64.StdEncoding.EncodeToString, 1000),
		"base64url of 48":  blob(base64.RawURLEncoding.EncodeToString, 48),
		"base64url of 1KB": blob(base64.RawURLEncoding.EncodeToString, 1000),
	}
	for n := 13; n <= 19; n++ {
		kinds[fmt.Sprintf("%d digits", n)] = func(r *rand.Rand) string {
			return randomFrom(r, digits[1:], 1) + randomFrom(r, digits, n-1)
		}
	}
	return kinds
}

// plantedSecrets returns what makes a sentence with a secret or personal data, and the part
// of it that is to be masked. Forms are composed, so that no scanner takes this file for a leak.
func plantedSecrets() map[string]func(r *rand.Rand) (sentence, value string) {
	within := func(sentence string, value func(*rand.Rand) string) func(*rand.Rand) (string, string) {
		return func(r *rand.Rand) (string, string) {
			v := value(r)
			return fmt.Sprintf(sentence, v), v
		}
	}
	form := func(prefix, alphabet string, n int) func(*rand.Rand) string {
		return func(r *rand.Rand) string { return prefix + randomFrom(r, alphabet, n) }
	}
	lower := strings.ToLower(capital)
	return map[string]func(*rand.Rand) (string, string){
		"GitHub token": within("clone with %s now", form("gh"+"p_", alnum, 36)),
		"AWS key ID":   within("the key %s was made today", form("AK"+"IA", capital+"234567", 16)),
		"Stripe key":   within("it answers to %s since May", form("sk"+"_live_", alnum, 24)),
		"password":     within("password=%s", form("", alnum, 14)),
		"bearer":       within("Authorization: Bearer %s", form("", alnum, 40)),
		"email": within("write to %s about it", func(r *rand.Rand) string {
			return randomFrom(r, lower, 6) + "." + randomFrom(r, lower, 7) + "@" + randomFrom(r, lower, 8) + ".com"
		}),
		"card": within("charge %s please", func(r *rand.Rand) string {
			number := "4" + randomFrom(r, digits, 14)
			for last := range digits {
				if hasLuhnDigit(number + digits[last:last+1]) {
					number += digits[last : last+1]
					break
				}
			}
			return number[:4] + " " + number[4:8] + " " + number[8:12] + " " + number[12:]
		}),
		"IBAN": within("pay to %s until Friday", func(r *rand.Rand) string {
			account := randomFrom(r, digits, 18)
			rest := 0
			for _, c := range account + "131400" { // DE00
				rest = (rest*10 + int(c-'0')) % 97
			}
			return fmt.Sprintf("DE%02d%s", 98-rest, account)
		}),
		"SSN": within("her SSN is %s", func(r *rand.Rand) string {
			return fmt.Sprintf("%03d-%02d-%04d", 101+r.IntN(500), 1+r.IntN(99), 1+r.IntN(9999))
		}),
		"phone": within("call %s at noon", func(r *rand.Rand) string {
			return fmt.Sprintf("+1 212-%d-%04d", 201+r.IntN(700), r.IntN(10000))
		}),
	}
}

// randomDraw has the counts of random values.
type randomDraw struct {
	values, secrets measure.Halves
	wrong           map[string]int // changed values by kind
	missed          map[string]int // planted values by sort
}

// measureRandom redacts documents around random values of each kind, 2,000 of each; in 500
// of them a secret is planted. There are no halves: no rule can be written from them.
func (c *command) measureRandom(b *measure.Run) ([]measure.Figure, error) {
	e, err := redact.New(redact.Options{})
	if err != nil {
		return nil, err
	}
	times := 2000
	if b.Short {
		times /= 20
	}
	kinds, sorts := randomKinds(), plantedSecrets()
	names := slices.Sorted(maps.Keys(sorts))
	d := randomDraw{wrong: map[string]int{}, missed: map[string]int{}}
	for i, kind := range slices.Sorted(maps.Keys(kinds)) {
		b.Say("random: %s", kind)
		r := rand.New(rand.NewPCG(20261128, uint64(i)))
		for n := range times {
			if err := b.Ctx.Err(); err != nil {
				return nil, err
			}
			value, sort, sentence, secret := kinds[kind](r), "", "all is well", ""
			if n%4 == 0 {
				sort = names[n/4%len(names)]
				sentence, secret = sorts[sort](r)
			}
			d.redactValue(e, kind, value, sort, sentence, secret)
		}
	}
	changed := countFigure(fmt.Sprintf("random: %d of each of %d kinds: wrongly changed", times, len(kinds)), d.values,
		listCounts(d.wrong))
	found := newFigure("random: secrets planted in a fourth of them: masked", d.secrets, 99, true)
	found.BesideIs, found.Note = "", "missed: "+listCounts(d.missed)
	return []measure.Figure{changed, found}, nil
}

// redactValue redacts three documents around a value: a text, a record and a body.
func (d *randomDraw) redactValue(e *redact.Engine, kind, value, sort, sentence, secret string) {
	text := []byte("got " + value + " of " + value + ".\n" + sentence + "\n")
	doc, _ := json.Marshal(map[string]any{"id": value, "more": []string{value}, "text": sentence})
	if strings.Trim(value, digits) == "" {
		doc = fmt.Appendf(nil, `{"id":%s,"more":[%s],"text":%q}`, value, value, sentence)
	}
	outs := [][]byte{e.Text(text).Out}
	whole := true
	if r, err := e.JSON(doc); err == nil {
		outs = append(outs, r.Out)
	}
	if r, err := e.Body("application/json", doc); err == nil {
		outs = append(outs, r.Out)
	}
	whole = len(outs) == 3
	masked := whole
	for i, out := range outs {
		whole = whole && bytes.Count(out, []byte(value)) == 2 && (i == 0 || keepsShape(doc, out))
		masked = masked && !bytes.Contains(out, []byte(secret))
	}
	d.values.Add(true, !whole, false)
	if !whole {
		d.wrong[kind]++
	}
	if sort != "" {
		d.secrets.Add(true, masked, false)
		if !masked {
			d.missed[sort]++
		}
	}
}

// listCounts returns counts by name.
func listCounts(counts map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s %d", name, counts[name]))
	}
	if list == nil {
		return "none"
	}
	return strings.Join(list, ", ")
}
