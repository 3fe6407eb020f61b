package ledger

import (
	"golang.org/x/mod/sumdb/tlog"
)

// Inclusion proves that a record stands at Seq in the tenant's tree that a
// checkpoint signs.
type Inclusion struct {
	Tenant   string
	Seq      int64
	LeafHash tlog.Hash
	Path     []tlog.Hash
	// Note is the signed checkpoint.
	Note string
}

// Consistency proves that the tree of one checkpoint is the beginning of
// another's: nothing was changed or taken away in between.
type Consistency struct {
	Tenant   string
	Path     []tlog.Hash
	Old, New string // the signed checkpoints
}

// ProveInclusion makes the proof for the leaf at seq under c, whose size must
// be above seq.
func ProveInclusion(nodes Nodes, c SignedCheckpoint, seq int64) (*Inclusion, error) {
	if seq < 0 || seq >= c.Size {
		return nil, refuse("tenant %q, leaf %d is not under the checkpoint of %d leaves", c.Tenant, seq, c.Size)
	}
	path, err := tlog.ProveRecord(c.Size, seq, HashReader(nodes, c.Size))
	if err != nil {
		return nil, err
	}
	at := rowAt{0, seq / TileWidth}
	hs, err := row(nodes, c.Size, at)
	if err != nil {
		return nil, err
	}
	p := &Inclusion{c.Tenant, seq, hs[seq%TileWidth], path, string(c.Note)}
	// A proof that does not hold is found here and not by who receives it.
	if err := tlog.CheckRecord(path, c.Size, c.Root, seq, p.LeafHash); err != nil {
		return nil, refuse("tenant %q, leaf %d: the tree does not match its checkpoint", c.Tenant, seq)
	}
	return p, nil
}

// Verify checks the proof for a record, with nothing but the public key.
func (p *Inclusion) Verify(v *Verifier, record []byte) error {
	c, err := v.Open([]byte(p.Note))
	switch {
	case err != nil:
		return err
	case c.Tenant != p.Tenant:
		return refuse("proof is of tenant %q, its checkpoint of %q", p.Tenant, c.Tenant)
	case LeafHash(record) != p.LeafHash:
		return refuse("tenant %q, leaf %d: the proof is of another record", p.Tenant, p.Seq)
	}
	if err := tlog.CheckRecord(p.Path, c.Size, c.Root, p.Seq, p.LeafHash); err != nil {
		return refuse("tenant %q, leaf %d: the proof does not lead to the checkpoint's root", p.Tenant, p.Seq)
	}
	return nil
}

// ProveConsistency makes the proof from old to new, of the same tenant.
func ProveConsistency(nodes Nodes, from, to SignedCheckpoint) (*Consistency, error) {
	if from.Tenant != to.Tenant || from.Size > to.Size {
		return nil, refuse("checkpoint of %q at %d does not come before that of %q at %d", from.Tenant, from.Size, to.Tenant, to.Size)
	}
	p := &Consistency{Tenant: from.Tenant, Old: string(from.Note), New: string(to.Note)}
	if from.Size > 0 {
		path, err := tlog.ProveTree(to.Size, from.Size, HashReader(nodes, to.Size))
		if err != nil {
			return nil, err
		}
		p.Path = path
	}
	if err := checkTrees(p.Path, from.Head, to.Head); err != nil {
		return nil, err
	}
	return p, nil
}

func checkTrees(path tlog.TreeProof, from, to Head) error {
	if from.Size == 0 {
		// The empty tree begins every tree.
		if len(path) != 0 || from.Root != new(Tree).Root() {
			return refuse("tenant %q: a proof from the empty tree has nothing to say", from.Tenant)
		}
		return nil
	}
	if err := tlog.CheckTree(path, to.Size, to.Root, from.Size, from.Root); err != nil {
		return refuse("tenant %q: the tree of %d leaves is not the beginning of the tree of %d", from.Tenant, from.Size, to.Size)
	}
	return nil
}

// Verify checks the proof with nothing but the public key.
func (p *Consistency) Verify(v *Verifier) error {
	from, err := v.Open([]byte(p.Old))
	if err != nil {
		return err
	}
	to, err := v.Open([]byte(p.New))
	if err != nil {
		return err
	}
	if from.Tenant != p.Tenant || to.Tenant != p.Tenant || from.Size > to.Size {
		return refuse("proof of tenant %q goes from %q at %d to %q at %d", p.Tenant, from.Tenant, from.Size, to.Tenant, to.Size)
	}
	return checkTrees(p.Path, from.Head, to.Head)
}

func (p *Inclusion) fields(c *codec) {
	c.lit(`{"v":1,"kind":"inclusion"`)
	c.sep = ','
	c.text("tenant_id", &p.Tenant)
	c.integer("seq", &p.Seq)
	c.treeHash("leaf_hash", &p.LeafHash)
	c.path("path", &p.Path)
	c.text("checkpoint", &p.Note)
	c.lit("}")
}

func (p *Inclusion) check(c *codec) { c.id("tenant_id", p.Tenant) }

func (p *Consistency) fields(c *codec) {
	c.lit(`{"v":1,"kind":"consistency"`)
	c.sep = ','
	c.text("tenant_id", &p.Tenant)
	c.path("path", &p.Path)
	c.text("old_checkpoint", &p.Old)
	c.text("new_checkpoint", &p.New)
	c.lit("}")
}

func (p *Consistency) check(c *codec) { c.id("tenant_id", p.Tenant) }

// AppendJSON appends the proof as one line of JSON without the newline.
func (p *Inclusion) AppendJSON(b []byte) ([]byte, error) {
	return write(b, "inclusion", p.fields, p.check)
}

// AppendJSON appends the proof as one line of JSON without the newline.
func (p *Consistency) AppendJSON(b []byte) ([]byte, error) {
	return write(b, "consistency", p.fields, p.check)
}

// ParseInclusion reads what AppendJSON wrote, and nothing else. It checks no
// proof: that is Verify.
func ParseInclusion(b []byte) (*Inclusion, error) {
	p := new(Inclusion)
	if err := read(b, "inclusion", p.fields, p.check); err != nil {
		return nil, err
	}
	return p, nil
}

// ParseConsistency is ParseInclusion for a consistency proof.
func ParseConsistency(b []byte) (*Consistency, error) {
	p := new(Consistency)
	if err := read(b, "consistency", p.fields, p.check); err != nil {
		return nil, err
	}
	return p, nil
}

func (c *codec) treeHash(key string, h *tlog.Hash) {
	s := h.String()
	c.text(key, &s)
	if !c.reading || c.err != nil {
		return
	}
	v, err := tlog.ParseHash(s)
	if err != nil || v.String() != s {
		c.failf(key, "not a hash in base64")
		return
	}
	*h = v
}

// path is a list of hashes that is always there.
func (c *codec) path(key string, p *[]tlog.Hash) {
	var texts []string
	for _, h := range *p {
		texts = append(texts, h.String())
	}
	c.texts(key, &texts)
	if !c.reading || c.err != nil {
		return
	}
	*p = nil
	for _, s := range texts {
		h, err := tlog.ParseHash(s)
		if err != nil || h.String() != s {
			c.failf(key, "not a hash in base64")
			return
		}
		*p = append(*p, h)
	}
}
