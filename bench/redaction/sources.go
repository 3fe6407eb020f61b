package redaction

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// languages are how files of source code write strings and comments, by their extension.
var languages = map[string]language{
	".go": likeC, ".java": likeC, ".kt": likeC, ".rs": likeC, ".cs": likeC, ".swift": likeC, ".c": likeC, ".h": likeC,
	".cpp": likeC, ".scala": likeC, ".js": likeScript, ".jsx": likeScript, ".ts": likeScript, ".tsx": likeScript,
	".py": likePython, ".rb": likePython, ".php": likePHP,
}

// language is a way to write strings and comments.
type language struct {
	slashes, hash bool // comments begin with // and /*, with #
	chars         bool // a single quote begins one character
}

var (
	likeC      = language{slashes: true, chars: true}
	likeScript = language{slashes: true}
	likePython = language{hash: true}
	likePHP    = language{slashes: true, hash: true}
)

// measureSources counts findings outside of strings and comments in the source code of
// repositories, each in a directory.
func measureSources(c *command, b *measure.Run, dir string) ([]measure.Figure, error) {
	s, err := newScanner()
	if err != nil {
		return nil, err
	}
	var n measure.Halves
	size := 0
	wanted := func(path string) bool {
		_, ok := languages[filepath.Ext(path)]
		return ok && !strings.HasSuffix(path, ".min.js") && !strings.Contains(path, "/vendor/") &&
			!strings.Contains(path, "/node_modules/")
	}
	err = walkFiles(dir, wanted, func(path string, content []byte) error {
		if err := b.Ctx.Err(); err != nil || len(content) > 2<<20 || bytes.IndexByte(content, 0) >= 0 {
			return err
		}
		h := &n.Used
		if halfOf(path) == unused {
			h = &n.Unused
		}
		inside := markInside(content, languages[filepath.Ext(path)])
		list, err := s.findOurs(content)
		if err != nil {
			return err
		}
		for _, f := range list {
			if !inside[f.start] {
				h.Holdfast++
				c.noteMiss("sources", "outside "+f.rule, path, excerptAround(content, f.start, f.end, 160))
			}
		}
		for _, f := range s.findTheirs(content) {
			if !inside[f.start] {
				h.Gitleaks++
			}
		}
		h.Of += len(content)
		if before := size / 10e6; (size+len(content))/10e6 > before {
			b.Say("sources: %d MB", (size+len(content))/1e6)
		}
		size += len(content)
		return nil
	})
	if size == 0 {
		return nil, err
	}
	f := measure.Figure{Name: "sources: findings outside of strings and comments", Unit: perMB, BesideIs: "gitleaks",
		Measured: float64(n.Unused.Holdfast) / (float64(max(1, n.Unused.Of)) / 1e6),
		Beside:   float64(n.Unused.Gitleaks) / (float64(max(1, n.Unused.Of)) / 1e6), Halves: &n,
		Target: "at most 1 per MB"}
	f.Met = f.Measured <= 1
	return []measure.Figure{f}, err
}

// markInside returns for each byte of a file whether it is in a string or a comment. It
// knows quotes, escapes and the beginnings of comments; in doubt a byte is outside.
func markInside(s []byte, l language) []bool {
	inside := make([]bool, len(s)+1)
	for i := 0; i < len(s); {
		end := max(i+1, endOfLiteral(s, i, l))
		isLiteral := end > i+1
		for ; i < end; i++ {
			inside[i] = isLiteral
		}
	}
	return inside
}

// endOfLiteral returns where the string or the comment ends that begins at i, or 0.
func endOfLiteral(s []byte, i int, l language) int {
	rest := s[i:]
	until := func(skip int, sign string) int {
		if at := bytes.Index(rest[min(skip, len(rest)):], []byte(sign)); at >= 0 {
			return i + skip + at + len(sign)
		}
		return len(s)
	}
	quote := rest[0]
	switch {
	case l.slashes && bytes.HasPrefix(rest, []byte("//")), l.hash && quote == '#':
		return until(1, "\n")
	case l.slashes && bytes.HasPrefix(rest, []byte("/*")):
		return until(2, "*/")
	case quote != '"' && quote != '\'' && quote != '`':
		return 0
	case quote != '`' && bytes.HasPrefix(rest, bytes.Repeat([]byte{quote}, 3)):
		return until(3, strings.Repeat(string(quote), 3))
	case quote == '\'' && l.chars: // a character, or the lifetime of Rust
		for j := i + 1; j < min(len(s), i+12) && s[j] != '\n'; j++ {
			if s[j] == '\\' {
				j++
			} else if s[j] == '\'' {
				return j + 1
			}
		}
		return 0
	}
	j := i + 1
	for j < len(s) && s[j] != quote && (quote == '`' || s[j] != '\n') {
		if s[j] == '\\' {
			j++
		}
		j++
	}
	return min(j+1, len(s))
}
