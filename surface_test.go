package holdfast_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// public are the packages that other modules may import.
var public = []string{"", "daemon", "executorpb", "ledger"}

// TestEmbedExample builds and runs examples/embed, a separate module that uses Holdfast
// as other modules do: it opens a runtime, crosses, is held, approves and verifies.
func TestEmbedExample(t *testing.T) {
	source, err := os.ReadFile("examples/embed/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(source, []byte("\n")); n >= 60 {
		t.Errorf("examples/embed has %d lines: it must have fewer than 60", n)
	}
	program := filepath.Join(t.TempDir(), "embed")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = "examples/embed"
	build.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build examples/embed: %v\n%s\nafter a change of go.mod: cd examples/embed && go mod tidy", err, out)
	}
	out, err := exec.Command(program).CombinedOutput()
	if err != nil {
		t.Fatalf("examples/embed: %v\n%s", err, out)
	}
	const want = `hold HeldForReview
{"path":"old.log"} is approved by ada
allow "removed"
verified _checkpoints 0 entries
verified local 1 entries
`
	if string(out) != want {
		t.Errorf("examples/embed printed\n%s\nwant\n%s", out, want)
	}
}

// TestPublicParametersCanBeMade: another module can make, or get, each parameter of an
// exported function of the public packages. A type of an internal package has no name
// there, unless a public package has an alias of it.
func TestPublicParametersCanBeMade(t *testing.T) {
	s := newSurface(t)
	for _, f := range s.functions() {
		for v := range f.signature.Params().Variables() {
			if why := s.canMake(v.Type()); why != "" {
				t.Errorf("%s: no other module can make the parameter %s: %s", f.name, v.Name(), why)
			}
		}
	}
}

// surface is what other modules can name and get of the public packages.
type surface struct {
	packages []*types.Package
	named    map[*types.TypeName]bool // types that a public package names
	got      map[*types.TypeName]bool // types of which public functions and fields give values
}

// function is an exported function or method.
type function struct {
	name      string
	signature *types.Signature
}

func newSurface(t *testing.T) *surface {
	t.Helper()
	s := &surface{packages: loadPublic(t), named: map[*types.TypeName]bool{}, got: map[*types.TypeName]bool{}}
	for _, p := range s.packages {
		for _, name := range p.Scope().Names() {
			obj, ok := p.Scope().Lookup(name).(*types.TypeName)
			if !ok || !obj.Exported() {
				continue
			}
			if n, ok := types.Unalias(obj.Type()).(*types.Named); ok {
				s.named[n.Obj()] = true
			}
		}
	}
	for n := -1; n != len(s.got); {
		n = len(s.got)
		for _, f := range s.functions() {
			s.get(f.signature.Results())
		}
		for obj := range s.got {
			s.getFrom(obj)
		}
		for obj := range s.named {
			s.getFrom(obj)
		}
	}
	return s
}

// loadPublic type-checks the public packages by what the compiler wrote of them.
func loadPublic(t *testing.T) (out []*types.Package) {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export"}
	for _, dir := range public {
		args = append(args, "./"+dir)
	}
	list, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(list)); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", open)
	for _, dir := range public {
		p, err := compiled.Import(strings.TrimSuffix(module+"/"+dir, "/"))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

// functions returns the exported functions of the public packages, and the exported
// methods of their exported types.
func (s *surface) functions() (out []function) {
	for _, p := range s.packages {
		for _, name := range p.Scope().Names() {
			switch obj := p.Scope().Lookup(name).(type) {
			case *types.Func:
				if obj.Exported() {
					out = append(out, function{p.Name() + "." + name, obj.Signature()})
				}
			case *types.TypeName:
				if obj.Exported() && !obj.IsAlias() {
					out = append(out, methodsOf(obj)...)
				}
			}
		}
	}
	return out
}

// methodsOf returns the exported methods of a type and of a pointer to it.
func methodsOf(obj *types.TypeName) (out []function) {
	add := func(f *types.Func) {
		if f.Exported() {
			out = append(out, function{obj.Pkg().Name() + "." + obj.Name() + "." + f.Name(), f.Signature()})
		}
	}
	for m := range types.NewMethodSet(types.NewPointer(obj.Type())).Methods() {
		add(m.Obj().(*types.Func))
	}
	if i, ok := obj.Type().Underlying().(*types.Interface); ok {
		for f := range i.Methods() {
			add(f)
		}
	}
	return out
}

// getFrom notes what the methods and fields of a type give.
func (s *surface) getFrom(obj *types.TypeName) {
	if !inModule(obj) {
		return
	}
	for _, f := range methodsOf(obj) {
		s.get(f.signature.Results())
	}
	if st, ok := obj.Type().Underlying().(*types.Struct); ok {
		for v := range st.Fields() {
			if v.Exported() {
				s.get(v.Type())
			}
		}
	}
}

// get notes the types of a value that another module has.
func (s *surface) get(t types.Type) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		s.got[t.Obj()] = true
	case *types.Pointer:
		s.get(t.Elem())
	case *types.Slice:
		s.get(t.Elem())
	case *types.Array:
		s.get(t.Elem())
	case *types.Chan:
		s.get(t.Elem())
	case *types.Map:
		s.get(t.Key())
		s.get(t.Elem())
	case *types.Tuple:
		for v := range t.Variables() {
			s.get(v.Type())
		}
	case *types.Signature:
		s.get(t.Results())
	}
}

// canMake returns "", or why no other module can make or get a value of a type.
func (s *surface) canMake(t types.Type) string {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		obj := t.Obj()
		_, basic := t.Underlying().(*types.Basic) // a constant has its type
		if s.isNamed(obj) || s.got[obj] || basic {
			return ""
		}
		if i, ok := t.Underlying().(*types.Interface); ok {
			return s.canName(i)
		}
		return obj.Pkg().Name() + "." + obj.Name() + " has no name there"
	case *types.Pointer:
		return s.canMake(t.Elem())
	case *types.Slice:
		return s.canMake(t.Elem())
	case *types.Array:
		return s.canMake(t.Elem())
	case *types.Signature:
		return s.canName(t)
	}
	return s.canName(t)
}

// canName returns "", or why no other module can write down a type.
func (s *surface) canName(t types.Type) string {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		if !s.isNamed(t.Obj()) {
			return t.Obj().Pkg().Name() + "." + t.Obj().Name() + " has no name there"
		}
	case *types.Pointer:
		return s.canName(t.Elem())
	case *types.Slice:
		return s.canName(t.Elem())
	case *types.Array:
		return s.canName(t.Elem())
	case *types.Chan:
		return s.canName(t.Elem())
	case *types.Map:
		return s.canName(t.Key()) + s.canName(t.Elem())
	case *types.Tuple:
		for v := range t.Variables() {
			if why := s.canName(v.Type()); why != "" {
				return why
			}
		}
	case *types.Signature:
		return s.canName(t.Params()) + s.canName(t.Results())
	case *types.Interface:
		for m := range t.Methods() {
			if why := s.canName(m.Type()); why != "" {
				return why
			}
			if !m.Exported() {
				return "it has the method " + m.Name()
			}
		}
	}
	return ""
}

// isNamed reports whether another module has a name for a type.
func (s *surface) isNamed(obj *types.TypeName) bool {
	if obj.Pkg() == nil || s.named[obj] {
		return true
	}
	return !inModule(obj) && obj.Exported() && !slices.Contains(strings.Split(obj.Pkg().Path(), "/"), "internal")
}

func inModule(obj *types.TypeName) bool {
	return obj.Pkg() != nil && (obj.Pkg().Path() == module || strings.HasPrefix(obj.Pkg().Path(), module+"/"))
}
