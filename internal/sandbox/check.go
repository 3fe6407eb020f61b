package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// Check returns spec with every default in its place, or the document's error:
// ProtocolError, CodeSizeError or InvalidLimitError. The limits are those of
// spec's tier, which is chosen before. Whether the language is there the tier knows. secret says whether a text holds a secret; it decides
// about the environment, which is searched once: a spec that Check returned and
// whose environment is still the same is not searched again. Whoever runs code
// checks, so that no path gets around the search.
func Check(spec Spec, secret func(string) bool) (Spec, error) {
	for _, check := range []func(*Spec) error{checkID, checkCode, checkLimits, checkCores, checkFiles, checkNeed} {
		if err := check(&spec); err != nil {
			return Spec{}, err
		}
	}
	digest := environmentDigest(spec.Environment)
	if spec.searched == digest {
		secret = func(string) bool { return false }
	}
	if err := checkEnvironment(spec.Environment, secret); err != nil {
		return Spec{}, err
	}
	spec.searched = digest
	return spec, nil
}

// environmentDigest is another one for every other environment.
func environmentDigest(env map[string]string) (sum [sha256.Size]byte) {
	h := sha256.New()
	var size [8]byte
	for _, name := range slices.Sorted(maps.Keys(env)) {
		for _, text := range []string{name, env[name]} {
			binary.LittleEndian.PutUint64(size[:], uint64(len(text)))
			h.Write(size[:])
			io.WriteString(h, text)
		}
	}
	h.Sum(sum[:0])
	return sum
}

// CheckNames is what of Check can be known before a tier is chosen, which hangs on
// the exact language: whether the run's id and its language are names at all.
func CheckNames(spec Spec) error { return checkID(&spec) }

func checkID(s *Spec) error {
	if s.ID == "" || len(s.ID) > 64 || strings.Trim(s.ID, idRunes) != "" {
		return refuse(holdfast.KindProtocol, "give the run an id of 1 to 64 letters, digits, - and _", "the request_id %q is no id of a run", clip(s.ID))
	}
	if s.Language == "" {
		return refuse(holdfast.KindProtocol, "name a language such as python3, node or static", "there is no language")
	}
	if len(s.Language) > 64 || strings.Trim(s.Language, idRunes+".") != "" {
		return refuse(holdfast.KindLanguage, "name a language such as python3, node or static", "%q is no language", clip(s.Language))
	}
	return nil
}

const idRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

func checkCode(s *Spec) error {
	switch {
	case len(s.Code) == 0:
		return refuse(holdfast.KindProtocol, "send the program's text", "there is no code")
	case len(s.Code) > MaxCode:
		return refuse(holdfast.KindCodeSize, "send at most 10 MB", "the code has %d bytes", len(s.Code))
	case s.Language == Static:
		return nil
	case bytes.IndexByte(s.Code, 0) >= 0 || !utf8.Valid(s.Code):
		return refuse(holdfast.KindProtocol, "code is UTF-8 without NUL; a compiled program is run as language static", "the code is not text")
	}
	return nil
}

func checkLimits(s *Spec) error {
	l := LimitsOf(s.Tier)
	if s.Timeout == 0 {
		s.Timeout = l.Timeout
	}
	if s.Timeout < time.Millisecond || s.Timeout > l.MaxTimeout {
		return refuse(holdfast.KindLimit, fmt.Sprintf("ask for 1ms to %s, or nothing for %s%s", short(l.MaxTimeout), short(l.Timeout), elsewhere(s.Tier, short(LimitsOf(posture.TierContainer).MaxTimeout))), "a timeout of %v is not allowed", s.Timeout)
	}
	if s.MemoryMB == 0 {
		s.MemoryMB, s.AnyMemory = l.MemoryMB, true
	}
	if s.MemoryMB < minMemoryMB || s.MemoryMB > l.MaxMemoryMB {
		return refuse(holdfast.KindLimit, fmt.Sprintf("ask for %d to %d MB, or nothing for %d%s", minMemoryMB, l.MaxMemoryMB, l.MemoryMB, elsewhere(s.Tier, fmt.Sprint(LimitsOf(posture.TierContainer).MaxMemoryMB, " MB"))), "%d MB of memory are not allowed", s.MemoryMB)
	}
	return nil
}

// short is a limit as people write it: 30s, 300s, 1h.
// elsewhere ends a hint in the weakest tier, whose limits are the lowest: where
// more is to be had.
func elsewhere(t posture.Tier, most string) string {
	if t >= posture.TierContainer {
		return ""
	}
	return "; in a container at most " + most
}

func short(d time.Duration) string {
	if d%time.Hour == 0 {
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

func checkCores(s *Spec) error {
	l := LimitsOf(s.Tier)
	if s.CPUPeriod == 0 && s.CPUQuota == 0 {
		s.CPUPeriod, s.CPUQuota = DefaultPeriod, time.Duration(l.Cores)*DefaultPeriod
	}
	if s.CPUPeriod == 0 {
		s.CPUPeriod = DefaultPeriod
	}
	if s.CPUPeriod < time.Millisecond || s.CPUPeriod > time.Second {
		return refuse(holdfast.KindLimit, "a period is 1ms to 1s", "a CPU period of %v is not allowed", s.CPUPeriod)
	}
	if s.CPUQuota < time.Millisecond || s.CPUQuota > time.Duration(l.MaxCores)*s.CPUPeriod {
		return refuse(holdfast.KindLimit, "a quota is 1ms to two periods, which is two cores", "a CPU quota of %v in %v is not allowed", s.CPUQuota, s.CPUPeriod)
	}
	return nil
}

func checkFiles(s *Spec) error {
	if len(s.Files) > MaxFiles {
		return refuse(holdfast.KindProtocol, "send at most 10000", "there are %d files", len(s.Files))
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		if why := badName(name); why != "" {
			return refuse(holdfast.KindProtocol, "name files by relative paths inside the scratch, such as data/in.csv", "the file name %q %s", clip(name), why)
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, taken := s.Files[dir]; taken {
				return refuse(holdfast.KindProtocol, "give one of the two another name", "%q is a file and a folder at once", clip(dir))
			}
		}
		total += len(s.Files[name])
	}
	if total > MaxFileBytes {
		return refuse(holdfast.KindProtocol, "send at most 100 MB of files", "the files have %d bytes", total)
	}
	return nil
}

// badName says what is wrong with a file's name, or "".
func badName(name string) string {
	switch {
	case name == "" || len(name) > 1024:
		return "is empty or longer than 1024 bytes"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case strings.ContainsFunc(name, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\\' }):
		return "has a control character or a backslash"
	case path.IsAbs(name) || path.Clean(name) != name || name == "." || name == ".." || strings.HasPrefix(name, "../"):
		return "leaves the scratch, or is not in its shortest form"
	case strings.Count(name, "/") > 32:
		return "lies more than 32 folders deep"
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > 255 {
			return "has a part longer than 255 bytes"
		}
	}
	return ""
}

func checkNeed(s *Spec) error {
	for _, w := range s.Need {
		if w != posture.WallGVisor && !slices.Contains(posture.Walls(), w) {
			return refuse(holdfast.KindLimit, "the walls are: "+posture.WallNames(), "there is no wall %q", clip(string(w)))
		}
	}
	return nil
}

func checkEnvironment(env map[string]string, secret func(string) bool) error {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		size += len(name) + len(value)
		switch {
		case !isEnvName(name):
			return refuse(holdfast.KindProtocol, "a name is a letter or _, then letters, digits and _", "%q is no name for the environment", clip(name))
		case strings.HasPrefix(name, "LD_"):
			return refuse(holdfast.KindProtocol, "leave it out: what the loader does is the sandbox's", "%s may not be set", name)
		case strings.IndexByte(value, 0) >= 0:
			return refuse(holdfast.KindProtocol, "leave the NUL out", "the value of %s has a NUL", name)
		case secret(name + "=" + value):
			return refuse(holdfast.KindProtocol, "code in the sandbox gets no secrets; let a tool behind the gates use it", "the value of %s looks like a secret", name)
		}
	}
	if len(env) > maxEnvironment || size > maxEnvBytes {
		return refuse(holdfast.KindProtocol, "set at most 256 names of together 128 KB", "the environment has %d names and %d bytes", len(env), size)
	}
	return nil
}

func isEnvName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

func refuse(kind holdfast.Kind, hint, why string, args ...any) error {
	return &holdfast.Error{Kind: kind, Why: fmt.Sprintf(why, args...), Hint: hint}
}

// GoodName says whether name may be a file's in a request or a result.
func GoodName(name string) bool { return badName(name) == "" }
