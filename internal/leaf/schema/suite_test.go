package schema

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testdata/suite holds the required tests of the official suite
// (github.com/json-schema-org/JSON-Schema-Test-Suite at 44401e0c) for the
// dialects of D7, one file of it a line.

// suiteFile is one file of the suite.
type suiteFile struct {
	File   string `json:"file"`
	Groups []struct {
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"schema"`
		Tests       []struct {
			Description string          `json:"description"`
			Data        json.RawMessage `json:"data"`
			Valid       bool            `json:"valid"`
		} `json:"tests"`
	} `json:"groups"`
}

// TestOfficialSuite: every test is answered right, except in groups whose
// schema needs a document from elsewhere or a dialect of its own (D7).
func TestOfficialSuite(t *testing.T) {
	const wantRight, wantRejected = 3369, 116
	right, rejected := 0, 0
	for name, dialect := range map[string]string{"draft7": d7, "draft2019-09": d2019, "draft2020-12": d2020} {
		b, err := os.ReadFile(filepath.Join("testdata", "suite", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var files []suiteFile
		if err := json.Unmarshal(b, &files); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for _, g := range file.Groups {
				s, err := Compile(name, withDialect(g.Schema, dialect))
				if err != nil {
					if !needsOutside(err) {
						t.Errorf("%s/%s: %s: %v", name, file.File, g.Description, err)
					}
					rejected += len(g.Tests)
					continue
				}
				for _, c := range g.Tests {
					found, err := s.Validate(context.Background(), tree(t, string(c.Data)))
					if err != nil || (len(found) == 0) != c.Valid {
						t.Errorf("%s/%s: %s: %s: %v %v", name, file.File, g.Description, c.Description, found, err)
						continue
					}
					right++
				}
			}
		}
	}
	if right != wantRight || rejected != wantRejected {
		t.Errorf("%d right and %d rejected, want %d and %d", right, rejected, wantRight, wantRejected)
	}
}

// withDialect adds a `$schema` to a schema of draft-07, whose tests leave it
// out.
func withDialect(schema json.RawMessage, dialect string) []byte {
	text := strings.TrimSpace(string(schema))
	if text[0] != '{' || strings.Contains(text, `"$schema"`) {
		return []byte(text)
	}
	if text == "{}" {
		return []byte("{" + dialect + "}")
	}
	return []byte("{" + dialect + "," + text[1:])
}

// needsOutside reports whether a schema was rejected for what D7 rules out.
func needsOutside(err error) bool {
	for _, why := range []string{"which is outside", "depend on the referrer", "this dialect is not supported"} {
		if strings.Contains(err.Error(), why) {
			return true
		}
	}
	return false
}
