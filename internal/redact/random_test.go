package redact

import (
	"bytes"
	base32std "encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// randomBytes returns n bytes of r.
func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// randomKinds make values that no one chose: what a program counts, hashes or encodes.
func randomKinds() map[string]func(r *rand.Rand) string {
	blob := func(encode func([]byte) string, n int) func(r *rand.Rand) string {
		return func(r *rand.Rand) string { return encode(randomBytes(r, n)) }
	}
	uuid := func(r *rand.Rand) string {
		b := randomBytes(r, 16)
		b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	}
	letters := func(alphabet string, n int) func(r *rand.Rand) string {
		return func(r *rand.Rand) string {
			b := make([]byte, n)
			for i := range b {
				b[i] = alphabet[r.IntN(len(alphabet))]
			}
			return string(b)
		}
	}
	alnum := digits10 + "abcdefghijklmnopqrstuvwxyz" + upper26
	kinds := map[string]func(r *rand.Rand) string{
		"int64":           func(r *rand.Rand) string { return strconv.FormatInt(int64(r.Uint64()), 10) },
		"uint64":          func(r *rand.Rand) string { return strconv.FormatUint(r.Uint64(), 10) },
		"uuid":            uuid,
		"block id":        func(r *rand.Rand) string { return "blk_" + strconv.FormatInt(r.Int64(), 10) },
		"prefixed id":     func(r *rand.Rand) string { return "msg_" + letters(alnum, 24)(r) },
		"trace id":        func(r *rand.Rand) string { return uuid(r) + "-" + strconv.FormatUint(r.Uint64(), 10) },
		"base32 of 32":    blob(base32std.StdEncoding.EncodeToString, 32),
		"base62 of 22":    letters(alnum, 22),
		"hex of 16":       blob(hex.EncodeToString, 16),
		"hex of 20":       blob(hex.EncodeToString, 20),
		"hex of 32":       blob(hex.EncodeToString, 32),
		"hex of 64":       blob(hex.EncodeToString, 64),
		"time in ns":      func(r *rand.Rand) string { return strconv.FormatInt(1.7e18+r.Int64N(1e17), 10) },
		"float":           func(r *rand.Rand) string { return strconv.FormatFloat(r.Float64(), 'g', -1, 64) },
		"base64 of 100KB": blob(base64.StdEncoding.EncodeToString, 100_000),
		"url64 of 100KB":  blob(base64.RawURLEncoding.EncodeToString, 100_000),
	}
	for n := 13; n <= 19; n++ {
		kinds[fmt.Sprintf("%d digits", n)] = func(r *rand.Rand) string {
			return digitOf(r, "123456789") +
				letters(digits10, n-1)(r)
		}
	}
	for _, n := range []int{16, 24, 33, 48, 64, 100, 256, 1000, 4096} {
		kinds[fmt.Sprintf("base64 of %d", n)] = blob(base64.StdEncoding.EncodeToString, n)
		kinds[fmt.Sprintf("url64 of %d", n)] = blob(base64.RawURLEncoding.EncodeToString, n)
	}
	return kinds
}

func digitOf(r *rand.Rand, of string) string { k := r.IntN(len(of)); return of[k : k+1] }

// randomTimes is the number of values of each kind: of the large ones fewer, but in
// a run that may take long.
func randomTimes(kind string) int {
	switch {
	case strings.HasSuffix(kind, "KB"):
		return testrepeat.Times(300, 12)
	case strings.HasSuffix(kind, "4096"), strings.HasSuffix(kind, "1000"), strings.HasSuffix(kind, "256"):
		return testrepeat.Times(2000, 100)
	}
	return 2000
}

// Values that no one chose are left as they are, in text, in bodies and in records.
func TestRandomValuesStay(t *testing.T) {
	e := newEngine(t)
	for kind, value := range randomKinds() {
		t.Run(kind, func(t *testing.T) {
			r := rand.New(rand.NewPCG(2026, uint64(len(kind))))
			wrong := 0
			for range randomTimes(kind) {
				v := value(r)
				texts := []string{v, "got " + v + " of " + v + ", then.\n", "id=" + v + "&x=1", `{"id":"` + v +
					`","more":["` + v + `"]}`}
				if strings.Trim(v, digits10) == "" {
					texts = append(texts, `{"id":`+v+`,"more":[`+v+`]}`)
				}
				if len(v) > 10_000 {
					texts = texts[2:4]
				}
				for _, text := range texts {
					out, where := e.Text([]byte(text)).Out, "text"
					if bytes.Equal(out, []byte(text)) && text[0] == '{' {
						j, err := e.JSON([]byte(text))
						if out, where = j.Out, "record"; err == nil && bytes.Equal(out, []byte(text)) {
							b, err2 := e.Body("application/json", []byte(text))
							out, where, err = b.Out, "body", err2
						}
						if err != nil {
							out = []byte(err.Error())
						}
					}
					if !bytes.Equal(out, []byte(text)) {
						if wrong++; wrong < 4 {
							t.Errorf("%s: %.120q became %.300q", where, text, out)
						}
						break
					}
				}
			}
			if wrong > 0 {
				t.Errorf("%d of %d values changed", wrong, randomTimes(kind))
			}
		})
	}
}
