package container

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/copies/image"
)

// house is where programs of a tier live whose operator named an image: as
// Programs it has the same languages, flags and filters, and the image's
// interpreters in place of this machine's.
type house struct {
	Programs
	tier  *Tier
	image *image.Image

	mu    sync.Mutex
	known map[string]found // by exact language
}

// found is what came of looking for a language in an image.
type found struct {
	program string
	err     error
}

// settle makes the image ready, where there is one, and has programs live there.
func (t *Tier) settle(ctx context.Context) error {
	if t.cfg.Image == (image.Source{}) {
		return nil
	}
	dir := t.cfg.Images
	if dir == "" {
		dir = filepath.Join(t.cfg.Dir, "images")
	}
	i, err := image.Open(ctx, dir, t.cfg.Image, image.Usual())
	if err != nil {
		return err
	}
	t.house = &house{Programs: t.cfg.Programs, tier: t, image: i, known: map[string]found{}}
	t.cfg.Programs = t.house
	return nil
}

// leave gives the image back.
func (t *Tier) leave() error {
	if t.house == nil {
		return nil
	}
	return t.house.image.Close()
}

// tell adds to a posture what is to be known of the image; nil has nothing to say.
func (h *house) tell(p posture.Posture) posture.Posture {
	p.Notes = slices.Clone(p.Notes)
	if h != nil {
		p.Image = h.image.Source.Name + " " + h.image.Digest
		p.Notes = append(append(p.Notes, "its root is the image, all of which a program may read"), h.image.Notes...)
	}
	return p
}

// Program implements Programs: the language's own interpreter must be in the
// image, by its exact name, and say there that it is that language.
func (h *house) Program(ctx context.Context, language string, narrow []string) (sandbox.Program, error) {
	p, err := h.Programs.Program(ctx, language, narrow)
	if err != nil {
		return p, err
	}
	p.Root = h.image.Root
	if p.Asks == "" {
		return p, nil
	}
	at, err := h.find(ctx, p)
	if err != nil {
		return sandbox.Program{}, &holdfast.Error{Kind: holdfast.KindLanguage, Why: fmt.Sprintf("the image %s cannot run %s: %v", h.image.Source.Name, p.Exact, err),
			Hint: "put " + p.Exact + " into the image, ask for a language that it has, or leave `sandbox: container: image` out", Err: err}
	}
	p.Argv = append([]string{at}, p.Argv[1:]...)
	return p, nil
}

// Languages implements Programs: those whose interpreters stand in the image by
// name; each is asked when it is first needed.
func (h *house) Languages() ([]string, map[string]string) {
	list, absent := h.Programs.Languages()
	absent = maps.Clone(absent)
	list = slices.DeleteFunc(slices.Clone(list), func(exact string) bool {
		if exact == sandbox.Static {
			return false
		}
		_, err := h.image.Find(places(program(exact))...)
		if err != nil {
			absent[exact] = "the image has none: " + err.Error()
		}
		return err != nil
	})
	return list, absent
}

// program is the name of an exact language's interpreter.
func program(exact string) string {
	if strings.HasPrefix(exact, "node") {
		return "node"
	}
	return exact
}

// places are where an interpreter may stand.
func places(name string) []string {
	return []string{"/usr/local/bin/" + name, "/usr/bin/" + name, "/bin/" + name}
}

// find returns where the program's interpreter stands in the image, having asked
// it, once.
func (h *house) find(ctx context.Context, p sandbox.Program) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f, ok := h.known[p.Exact]; ok {
		return f.program, f.err
	}
	at, err := h.image.Find(places(filepath.Base(p.Argv[0]))...)
	if err == nil {
		err = h.ask(ctx, p.Exact, at)
	}
	if later := (*holdfast.Error)(nil); !errors.As(err, &later) { // else it could not be asked
		h.known[p.Exact] = found{at, err}
	}
	return at, err
}

// ask runs an interpreter of the image behind every wall, to hear what it is.
func (h *house) ask(ctx context.Context, exact, at string) error {
	p, err := h.Programs.Program(ctx, exact, nil)
	if err != nil {
		return err
	}
	t := h.tier
	if err := t.enter(); err != nil {
		return err
	}
	defer t.running.Done()
	p.Root, p.Argv = h.image.Root, append([]string{at}, p.Argv[1:]...)
	now := time.Now()
	limits := sandbox.LimitsOf(posture.TierProcess)
	spec := sandbox.Spec{ID: "ask", Tier: posture.TierContainer, Language: exact, Code: []byte(p.Asks), Timeout: t.cfg.Within, MemoryMB: limits.MemoryMB, CPUPeriod: sandbox.DefaultPeriod, CPUQuota: sandbox.DefaultPeriod}
	res, err := t.execute(ctx, spec, p, posture.Instants{Received: now, Parsed: now}, manner{})
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return failed(holdfast.KindSpawn, "ask "+at, ctx.Err())
	}
	switch said, complained := strings.TrimSpace(string(res.Stdout)), strings.TrimSpace(string(res.Stderr)); {
	case said == exact && res.ExitCode == 0:
		return nil
	case said == "":
		return fmt.Errorf("its %s does not run: it ended with %d, %.300q", at, res.ExitCode, complained)
	default:
		return fmt.Errorf("its %s says that it is %.80q and not %q", at, said, exact)
	}
}
