package domain

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/holdfast-dev/holdfast"
)

// Table is the allowlist. A nil Table, and one without rows, denies everything.
// It does not change after NewTable, so that any number may ask it at once.
type Table struct {
	rows  []*Domain
	exact map[Host]*entry
	// wild is by what stands behind "*."; longest is the length of its longest
	// key, so that a name of many labels costs few lookups.
	wild    map[string]*entry
	longest int
	near    nearby
}

// entry is all that is listed of one name.
type entry struct {
	any    *Domain            // the row without a port
	byPort map[uint16]*Domain // the rows with one
}

// NewTable checks the rows, fills in what they leave out and indexes them. The
// error is the first mistake, after its row's Source: a UsageError. The rows
// are copied, and nothing of theirs is kept.
func NewTable(ds []Domain) (*Table, error) {
	if len(ds) > MostRows {
		return nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: "the allowlist has " + strconv.Itoa(len(ds)) + " rows, and at most " + strconv.Itoa(MostRows) + " are read",
			Hint: "use wildcards such as *.example.com"}
	}
	t := &Table{exact: make(map[Host]*entry, len(ds)), wild: map[string]*entry{}}
	for i := range ds {
		row, n, err := checked(&ds[i])
		if err == nil {
			err = t.add(row, n)
		}
		if err != nil {
			return nil, mistake(&ds[i], err)
		}
	}
	t.cover()
	t.near = nearest(t)
	return t, nil
}

// add indexes a checked row.
func (t *Table) add(row *Domain, n rowName) *holdfast.Error {
	e := t.exact[n.host]
	if n.wild {
		e = t.wild[n.host.name]
	}
	if e == nil {
		e = &entry{}
	}
	if twin := e.at(n.port); twin != nil {
		return &holdfast.Error{Why: "is listed twice, here and at " + twin.Source, Hint: "keep one of the two rows; a row may have several ports and paths"}
	}
	if n.port == 0 {
		e.any = row
	} else {
		if e.byPort == nil {
			e.byPort = map[uint16]*Domain{}
		}
		e.byPort[n.port] = row
	}
	if n.wild {
		t.wild[n.host.name] = e
		t.longest = max(t.longest, len(n.host.name))
	} else {
		t.exact[n.host] = e
	}
	t.rows = append(t.rows, row)
	return nil
}

// at is the row written with this port, or with none for 0.
func (e *entry) at(port uint16) *Domain {
	if port == 0 {
		return e.any
	}
	return e.byPort[port]
}

// Domains are the rows, defaults filled in, in the order they were given. They
// must not be changed.
func (t *Table) Domains() []*Domain {
	if t == nil {
		return nil
	}
	return slices.Clone(t.rows)
}

// Find is the row for an origin, by name, port and TLS alone: what is known at
// CONNECT, before there is a request. The most specific name decides, and
// within it a row with ":port" before one without; a less specific name opens
// nothing that it closes. A wildcard never covers its own name, and never a
// name that somebody else may register below it. The error is a
// DomainBlockedError of K2 with a hint.
func (t *Table) Find(o Origin) (*Domain, *holdfast.Error) {
	switch {
	case o.Host == Host{}:
		return nil, blocked("no host is named", "send the host in the URL, the CONNECT and the Host header")
	case t == nil || len(t.rows) == 0:
		return nil, blocked(o.Host.String()+" is not in the allowlist: no domain is", "list "+o.Host.String()+" among the egress domains of the configuration")
	}
	e, err := t.entry(o.Host)
	if err != nil {
		return nil, err
	}
	d := e.byPort[o.Port]
	if d == nil && e.any != nil && slices.Contains(e.any.Ports, o.Port) {
		d = e.any
	}
	switch {
	case d == nil && !o.TLS && !e.plain():
		return nil, blocked(o.Host.String()+" may not be reached without TLS", "use https://"+bracket(o.Host))
	case d == nil:
		return nil, blocked("port "+strconv.Itoa(int(o.Port))+" of "+o.Host.String()+" is not in the allowlist", "its ports are "+e.ports())
	case !o.TLS && !d.Plain:
		hint := "use https://" + bracket(o.Host)
		if o.Port != 80 && o.Port != 443 {
			hint += ":" + strconv.Itoa(int(o.Port))
		}
		return nil, blocked(o.Host.String()+" may not be reached without TLS", hint)
	}
	return d, nil
}

// entry is what is listed of the most specific name that covers h.
func (t *Table) entry(h Host) (*entry, *holdfast.Error) {
	if e := t.exact[h]; e != nil {
		return e, nil
	}
	base := h.name
	for more := len(t.wild) > 0; more; {
		if _, base, more = strings.Cut(base, "."); !more || len(base) > t.longest {
			continue
		}
		e := t.wild[base]
		if e == nil {
			continue
		}
		if suffix, _ := publicsuffix.PublicSuffix(h.name); len(suffix) >= len(base) {
			return nil, blocked("*."+base+" does not cover "+h.name+": anybody may register a name under "+suffix, "list "+h.name+" by its name")
		}
		return e, nil
	}
	return nil, blocked(h.String()+" is not in the allowlist", t.near.hint(t, h))
}

// plain says whether some port of the name may be reached without TLS.
func (e *entry) plain() bool {
	if e.any != nil && e.any.Plain {
		return true
	}
	for _, d := range e.byPort {
		if d.Plain {
			return true
		}
	}
	return false
}

// ports are the ports of a name, for people.
func (e *entry) ports() string {
	var all []int
	if e.any != nil {
		for _, p := range e.any.Ports {
			all = append(all, int(p))
		}
	}
	for p := range e.byPort {
		all = append(all, int(p))
	}
	slices.Sort(all)
	var words []string
	for _, p := range slices.Compact(all) {
		words = append(words, strconv.Itoa(p))
	}
	return strings.Join(words, ", ")
}

func bracket(h Host) string {
	if h.addr.Is6() {
		return "[" + h.String() + "]"
	}
	return h.String()
}

func blocked(why, hint string) *holdfast.Error {
	return &holdfast.Error{Kind: holdfast.KindDomainBlocked, Gate: holdfast.K2, Why: why, Hint: hint}
}
