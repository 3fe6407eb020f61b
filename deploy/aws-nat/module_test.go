package awsnat

import (
	"fmt"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	"github.com/zclconf/go-cty/cty/gocty"
)

// block is a block of the module, evaluated: dynamic blocks are those that they
// make, and references to resources are their addresses.
type block struct {
	kind   string
	labels []string
	attrs  map[string]cty.Value
	blocks []*block
}

// module is the whole of it, as Terraform would read it.
type module struct {
	blocks []*block
	raw    []*hclsyntax.Block
	ctx    *hcl.EvalContext
}

// sources are the module's files.
func sources(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("*.tf")
	if err != nil || len(names) < 5 {
		t.Fatal(names, err)
	}
	out := map[string]string{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(b)
	}
	return out
}

// load reads the module with these variables given, and the defaults of others.
func load(files map[string]string, given map[string]cty.Value) (*module, error) {
	m := &module{}
	for name, text := range files {
		f, diags := hclsyntax.ParseConfig([]byte(text), name, hcl.InitialPos)
		if diags.HasErrors() {
			return nil, diags
		}
		m.raw = append(m.raw, f.Body.(*hclsyntax.Body).Blocks...)
	}
	slices.SortFunc(m.raw, func(a, b *hclsyntax.Block) int {
		return strings.Compare(strings.Join(a.Labels, "."), strings.Join(b.Labels, "."))
	})
	m.ctx = &hcl.EvalContext{Variables: m.addresses(), Functions: functions()}
	vars := map[string]cty.Value{}
	for _, b := range m.raw {
		if b.Type != "variable" {
			continue
		}
		v, ok := given[b.Labels[0]]
		if d := b.Body.Attributes["default"]; !ok && d != nil {
			var diags hcl.Diagnostics
			if v, diags = d.Expr.Value(nil); diags.HasErrors() {
				return nil, diags
			}
			ok = true
		}
		if ok {
			vars[b.Labels[0]] = v
		}
	}
	m.ctx.Variables["var"] = cty.ObjectVal(vars)
	for _, b := range m.raw {
		if b.Type != "resource" && b.Type != "output" {
			continue
		}
		e, err := evaluate(b, m.ctx)
		if err != nil {
			return nil, err
		}
		if c, counted := e.attrs["count"]; counted && c.RawEquals(cty.Zero) {
			continue
		}
		m.blocks = append(m.blocks, e)
	}
	return m, nil
}

// addresses are what references to resources find: each attribute that is
// referred to is its own name.
func (m *module) addresses() map[string]cty.Value {
	kinds := map[string]map[string]cty.Value{}
	for _, b := range m.raw {
		if b.Type != "resource" {
			continue
		}
		attrs := map[string]cty.Value{}
		for _, a := range []string{"id", "arn", "name", "public_ip", "default_route_table_id", "default_network_acl_id"} {
			attrs[a] = cty.StringVal(strings.Join(b.Labels, ".") + "." + a)
		}
		v := cty.ObjectVal(attrs)
		if b.Body.Attributes["count"] != nil {
			v = cty.TupleVal([]cty.Value{v})
		}
		if kinds[b.Labels[0]] == nil {
			kinds[b.Labels[0]] = map[string]cty.Value{}
		}
		kinds[b.Labels[0]][b.Labels[1]] = v
	}
	out := map[string]cty.Value{}
	for kind, named := range kinds {
		out[kind] = cty.ObjectVal(named)
	}
	return out
}

func evaluate(b *hclsyntax.Block, ctx *hcl.EvalContext) (*block, error) {
	out := &block{kind: b.Type, labels: b.Labels, attrs: map[string]cty.Value{}}
	for name, a := range b.Body.Attributes {
		if name == "depends_on" {
			continue
		}
		v, diags := a.Expr.Value(ctx)
		if diags.HasErrors() {
			if b.Body.Attributes["count"] != nil {
				continue // of what may not be there
			}
			return nil, diags
		}
		out.attrs[name] = v
	}
	for _, inner := range b.Body.Blocks {
		if inner.Type != "dynamic" {
			e, err := evaluate(inner, ctx)
			if err != nil {
				return nil, err
			}
			out.blocks = append(out.blocks, e)
			continue
		}
		each, diags := inner.Body.Attributes["for_each"].Expr.Value(ctx)
		if diags.HasErrors() {
			return nil, diags
		}
		for it := each.ElementIterator(); it.Next(); {
			k, v := it.Element()
			child := ctx.NewChild()
			child.Variables = map[string]cty.Value{inner.Labels[0]: cty.ObjectVal(map[string]cty.Value{"key": k, "value": v})}
			e, err := evaluate(inner.Body.Blocks[0], child)
			if err != nil {
				return nil, err
			}
			e.kind = inner.Labels[0]
			out.blocks = append(out.blocks, e)
		}
	}
	return out, nil
}

// functions are those of Terraform that the module calls.
func functions() map[string]function.Function {
	return map[string]function.Function{
		"can": tryfunc.CanFunc, "regex": stdlib.RegexFunc, "length": stdlib.LengthFunc, "contains": stdlib.ContainsFunc,
		"floor": stdlib.FloorFunc, "jsonencode": stdlib.JSONEncodeFunc,
		"cidrnetmask": function.New(&function.Spec{
			Params: []function.Parameter{{Name: "prefix", Type: cty.String}}, Type: function.StaticReturnType(cty.String),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				p, err := netip.ParsePrefix(args[0].AsString())
				if err != nil || !p.Addr().Is4() {
					return cty.NilVal, fmt.Errorf("no IPv4 prefix")
				}
				return cty.StringVal("a mask"), nil
			},
		}),
		"alltrue": function.New(&function.Spec{
			Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}}, Type: function.StaticReturnType(cty.Bool),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				for it := args[0].ElementIterator(); it.Next(); {
					if _, v := it.Element(); v.False() {
						return cty.False, nil
					}
				}
				return cty.True, nil
			},
		}),
	}
}

// resource finds one by its address; a module that lacks it has an empty one.
func (m *module) resource(kind, name string) *block {
	for _, b := range m.blocks {
		if b.kind == "resource" && b.labels[0] == kind && b.labels[1] == name {
			return b
		}
	}
	return &block{}
}

// text is an attribute as a text; what is not there, or null, is empty.
func (b *block) text(name string) string {
	v, ok := b.attrs[name]
	if !ok || v.IsNull() {
		return ""
	}
	s, err := convert.Convert(v, cty.String)
	if err != nil || s.IsNull() {
		return fmt.Sprintf("%#v", v)
	}
	return s.AsString()
}

func (b *block) number(name string) int {
	v, ok := b.attrs[name]
	if !ok || v.IsNull() || v.Type() != cty.Number {
		return -1
	}
	n, acc := v.AsBigFloat().Int64()
	if acc != big.Exact {
		return -1
	}
	return int(n)
}

// list are the texts of a list; nil where there is none.
func (b *block) list(name string) []string {
	v, ok := b.attrs[name]
	if !ok || v.IsNull() || !v.CanIterateElements() {
		return nil
	}
	out := []string{}
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		var s string
		if err := gocty.FromCtyValue(e, &s); err != nil {
			s = fmt.Sprintf("%#v", e)
		}
		out = append(out, s)
	}
	return out
}

func (b *block) inner(kind string) (out []*block) {
	for _, i := range b.blocks {
		if i.kind == kind {
			out = append(out, i)
		}
	}
	return out
}
