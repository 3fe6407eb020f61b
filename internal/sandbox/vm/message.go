package vm

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// greeting is what a guest says of itself when it is ready: before its memory
// is kept, so before there is code of anybody in it.
type greeting struct {
	Languages []string          `json:"languages"`
	Absent    map[string]string `json:"absent,omitempty"`
	Posture   posture.Posture   `json:"posture"`
}

// order is what a restored guest is told: what makes it different from every
// other one, and how much of a request stands in the shared memory.
type order struct {
	Seed   []byte    `json:"seed"` // 64 random bytes
	Now    time.Time `json:"now"`
	Host   string    `json:"host"`
	Length int       `json:"length"`
}

// outcome says how much of an answer stands in the shared memory.
type outcome struct {
	Length int `json:"length"`
}

// message is what stands in the shared memory: 8 bytes of the head's length,
// the head as JSON, and the blobs that it gives the sizes of, one behind the
// other.
type message struct {
	Spec   *sandbox.Spec   `json:"spec,omitempty"`   // without Code and Files
	Result *posture.Result `json:"result,omitempty"` // without output and files
	Error  *refusal        `json:"error,omitempty"`
	Names  []string        `json:"names,omitempty"` // of the files
	Sizes  []int           `json:"sizes"`           // of all blobs: two first, then the files
}

// refusal is an error of the tier in the guest.
type refusal struct {
	Kind holdfast.Kind `json:"kind"`
	Why  string        `json:"why"`
	Hint string        `json:"hint"`
}

const (
	messageHead = 8
	maxHead     = 32 << 20 // names of 10,000 files at their longest, and more
	maxBlobs    = sandbox.MaxFiles + 2
)

func packSpec(spec sandbox.Spec, room []byte) (int, error) {
	blobs, names := withFiles([][]byte{spec.Code, nil}, spec.Files)
	spec.Code, spec.Files = nil, nil
	return pack(message{Spec: &spec, Names: names}, blobs, room)
}

func packResult(res *posture.Result, room []byte) (int, error) {
	blobs, names := withFiles([][]byte{res.Stdout, res.Stderr}, res.OutputFiles)
	bare := *res
	bare.Stdout, bare.Stderr, bare.OutputFiles = nil, nil, nil
	return pack(message{Result: &bare, Names: names}, blobs, room)
}

func packError(err error, room []byte) (int, error) {
	r := refusal{Kind: holdfast.KindSpawn, Why: err.Error()}
	if e := (*holdfast.Error)(nil); errors.As(err, &e) {
		r = refusal{e.Kind, e.Why, e.Hint}
	}
	return pack(message{Error: &r}, [][]byte{nil, nil}, room)
}

func withFiles(blobs [][]byte, files map[string][]byte) ([][]byte, []string) {
	names := slices.Sorted(maps.Keys(files))
	for _, n := range names {
		blobs = append(blobs, files[n])
	}
	return blobs, names
}

// pack writes the message into room and returns its length.
func pack(m message, blobs [][]byte, room []byte) (int, error) {
	for _, b := range blobs {
		m.Sizes = append(m.Sizes, len(b))
	}
	head, err := json.Marshal(m)
	if err != nil {
		return 0, err
	}
	total := messageHead + len(head)
	for _, b := range blobs {
		total += len(b)
	}
	if total > len(room) {
		return 0, fmt.Errorf("%d bytes do not fit into the %d that are shared with a guest", total, len(room))
	}
	binary.LittleEndian.PutUint64(room, uint64(len(head)))
	at := messageHead + copy(room[messageHead:], head)
	for _, b := range blobs {
		at += copy(room[at:], b)
	}
	return total, nil
}

// unpack reads a message and its blobs, which are parts of b. Nothing in it is
// believed but its form: names are good, sizes add up.
func unpack(b []byte) (message, [][]byte, error) {
	var m message
	if len(b) < messageHead {
		return m, nil, errors.New("it is shorter than its head")
	}
	n := binary.LittleEndian.Uint64(b)
	b = b[messageHead:]
	if n > uint64(len(b)) || n > maxHead {
		return m, nil, fmt.Errorf("its head of %d bytes is longer than it", n)
	}
	if err := json.Unmarshal(b[:n], &m); err != nil {
		return m, nil, errors.New("its head is no JSON of the form")
	}
	b = b[n:]
	if len(m.Sizes) < 2 || len(m.Sizes) > maxBlobs || len(m.Names) != len(m.Sizes)-2 {
		return m, nil, fmt.Errorf("it names %d files and has %d parts", len(m.Names), len(m.Sizes))
	}
	var blobs [][]byte
	for _, size := range m.Sizes {
		if size < 0 || size > len(b) {
			return m, nil, errors.New("its parts are longer than it")
		}
		blobs, b = append(blobs, b[:size:size]), b[size:]
	}
	if len(b) > 0 {
		return m, nil, errors.New("it is longer than its parts")
	}
	for _, name := range m.Names {
		if !sandbox.GoodName(name) {
			return m, nil, fmt.Errorf("it names a file %.80q", name)
		}
	}
	return m, blobs, nil
}

func (m message) files(blobs [][]byte) (map[string][]byte, error) {
	files := map[string][]byte{}
	for i, name := range m.Names {
		if _, twice := files[name]; twice {
			return nil, fmt.Errorf("it names %.80q twice", name)
		}
		files[name] = blobs[i+2]
	}
	return files, nil
}

// unpackSpec is the guest's: what Holdfast wrote.
func unpackSpec(b []byte) (sandbox.Spec, error) {
	m, blobs, err := unpack(b)
	if err != nil {
		return sandbox.Spec{}, err
	}
	if m.Spec == nil {
		return sandbox.Spec{}, errors.New("it is no request")
	}
	spec := *m.Spec
	spec.Code = blobs[0]
	spec.Files, err = m.files(blobs)
	return spec, err
}

// unpackAnswer is Holdfast's: a result, or the refusal of the tier in the
// guest, or, as the last error, that what the guest left is neither. A guest
// that was taken over can say what it likes of the code that it ran; it cannot
// say more, longer or of another run than a result may.
func unpackAnswer(b []byte, id string) (*posture.Result, *holdfast.Error, error) {
	m, blobs, err := unpack(b)
	switch {
	case err != nil:
		return nil, nil, err
	case m.Error != nil:
		e := &holdfast.Error{Kind: m.Error.Kind, Why: words(m.Error.Why), Hint: words(m.Error.Hint)}
		if posture.StateOf(e) == "" {
			e.Kind = holdfast.KindSpawn
		}
		return nil, e, nil
	case m.Result == nil:
		return nil, nil, errors.New("it is no answer")
	}
	res := m.Result
	// What the host knows itself no guest says: the walls, why they were chosen,
	// by what states and when.
	res.Posture, res.Chosen, res.States, res.Around = posture.Posture{}, "", nil, nil
	res.Start, res.End, res.Gone = time.Time{}, time.Time{}, time.Time{}
	res.Stdout, res.Stderr = blobs[0], blobs[1]
	if res.OutputFiles, err = m.files(blobs); err != nil {
		return nil, nil, err
	}
	return res, nil, believable(res, id)
}

// The most of what a result lists.
const (
	maxListed = 1024
	maxWords  = 4096
	// maxCounted is of calls of one name: a run that makes a tenth is ended.
	maxCounted = 1_000_000
)

func believable(res *posture.Result, id string) error {
	total := 0
	for _, b := range res.OutputFiles {
		total += len(b)
	}
	states := []posture.State{posture.Completed, posture.Timeout, posture.OOM, posture.SyscallBlocked}
	reasons := []posture.Reason{"", posture.ReasonWall, posture.ReasonOOM, posture.ReasonOutput, posture.ReasonSyscall, posture.ReasonEscape, posture.ReasonSignal, posture.ReasonRefused, posture.ReasonHalt}
	paths := []posture.Path{posture.PathParked, posture.PathForked, posture.PathCold}
	blocked := res.State == posture.SyscallBlocked
	switch {
	case res.ID != id:
		return fmt.Errorf("it is of the run %.80q", res.ID)
	case !slices.Contains(states, res.State) || !slices.Contains(reasons, res.Reason) || !slices.Contains(paths, res.Path):
		return fmt.Errorf("no run ends as %.20q for %.20q by %.20q", res.State, res.Reason, res.Path)
	case blocked != (res.Reason == posture.ReasonSyscall || res.Reason == posture.ReasonEscape), blocked != (res.ExitCode == posture.ExitSyscall && res.Call != nil):
		return fmt.Errorf("a run does not end as %s for %q with %d", res.State, res.Reason, res.ExitCode)
	case res.ExitCode < 0 || res.ExitCode > 255 || res.Signal < 0 || res.Signal > 64:
		return fmt.Errorf("no run ends with %d and signal %d", res.ExitCode, res.Signal)
	case len(res.Stdout) > sandbox.MaxOutput+maxWords || len(res.Stderr) > sandbox.MaxOutput+maxWords || total > sandbox.MaxOutputBytes:
		return errors.New("it holds more than a run may leave")
	case len(res.Refused) > maxListed || len(res.Skipped) > maxListed || len(res.Stages) > maxListed || len(res.Cut) > 2:
		return errors.New("it lists more than a run can")
	case res.UserTime < 0 || res.SystemTime < 0 || res.MemoryPeak < 0 || res.PageFaults < 0 || res.WallTime < 0:
		return errors.New("it counts below nothing")
	}
	return tame(res)
}

// tame holds the words of a result to what a person and a log can read.
func tame(res *posture.Result) error {
	res.Err = words(res.Err)
	for i := range res.Refused {
		if res.Refused[i].Count < 1 || res.Refused[i].Count > maxCounted {
			return fmt.Errorf("it says that calls were refused %d times", res.Refused[i].Count)
		}
		res.Refused[i].Name, res.Refused[i].Errno = words(res.Refused[i].Name), words(res.Refused[i].Errno)
	}
	for i := range res.Stages {
		res.Stages[i].Name, res.Stages[i].Took = words(res.Stages[i].Name), max(0, res.Stages[i].Took)
	}
	if res.Call != nil {
		res.Call.Name, res.Call.Arch = words(res.Call.Name), words(res.Call.Arch)
	}
	for name, why := range res.Skipped {
		if name != words(name) || !utf8.ValidString(name) {
			return errors.New("it skips a file without a name")
		}
		res.Skipped[name] = words(why)
	}
	for _, c := range res.Cut {
		if c != "stdout" && c != "stderr" {
			return fmt.Errorf("it cut %.20q", c)
		}
	}
	return nil
}

// words is one line of at most 4 KB.
func words(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
	if len(s) > maxWords {
		s = strings.ToValidUTF8(s[:maxWords], "")
	}
	return s
}
