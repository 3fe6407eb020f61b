package upstream

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

const (
	// resolveLimit is how long a name's addresses may take to find.
	resolveLimit = 5 * time.Second
	// dialLimit is how long one address may take to answer.
	dialLimit = 5 * time.Second
	// maxAddresses is how many addresses of a name are tried.
	maxAddresses = 4
)

// Resolver finds a name's addresses. *net.Resolver is one, with PreferGo: the C library's
// own resolver accepts "127.1" and "0x7f.1" as addresses.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Dial connects to o, not inspected. Its error is send's.
func (p *Sender) Dial(ctx context.Context, d *domain.Domain, o domain.Origin) (net.Conn, error) {
	list, err := p.addresses(ctx, d, o)
	if err != nil {
		return nil, sendError(o, firstByte, nil, &notStarted{err})
	}
	c, err := dialer(list, o.Port, len(d.Addresses) > 0)(ctx, "tcp", "")
	if err != nil {
		return nil, sendError(o, firstByte, context.Cause(ctx), &notStarted{err})
	}
	return c, nil
}

// addresses returns where o may be dialled. The fixed addresses of d are the
// only way to a private one, and ask nobody; else every address of the name
// must be public, or none is used: one private answer among public ones is how
// a name is rebound (D22).
func (p *Sender) addresses(ctx context.Context, d *domain.Domain, o domain.Origin) ([]netip.Addr, error) {
	if len(d.Addresses) > 0 {
		return slices.Clone(d.Addresses), nil
	}
	var list []netip.Addr
	if o.Host.IsAddr() {
		list = []netip.Addr{o.Host.Addr()}
	} else {
		var err error
		if list, err = p.lookup(ctx, o.Host); err != nil {
			return nil, err
		}
	}
	for i, a := range list {
		list[i] = a.Unmap()
		if err := domain.Class(list[i]); err != nil {
			return nil, blockedAddress(o, err)
		}
	}
	slices.SortFunc(list, func(a, b netip.Addr) int {
		if a.Is4() != b.Is4() {
			if a.Is4() {
				return -1
			}
			return 1
		}
		return a.Compare(b)
	})
	return slices.Compact(list), nil
}

// lookup asks for a name's addresses: the name ends in a dot, so that no search
// list is tried, and only A and AAAA are asked for.
func (p *Sender) lookup(ctx context.Context, h domain.Host) ([]netip.Addr, error) {
	limited, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	list, err := p.resolver.LookupNetIP(limited, "ip", h.String()+".")
	if err != nil && ctx.Err() == nil {
		return nil, &holdfast.Error{
			Kind: holdfast.KindForward, Why: "the name " + h.String() + " was not resolved: " + dnsWhy(err),
			Hint: "see whether the name is right, and whether this machine's name servers answer", Err: err,
		}
	}
	if err == nil && len(list) == 0 {
		err = &holdfast.Error{Kind: holdfast.KindForward, Why: "the name " + h.String() + " has no address", Hint: "see whether the name is right"}
	}
	return list, err
}

func blockedAddress(o domain.Origin, err error) error {
	return &holdfast.Error{
		Kind: holdfast.KindDomainBlocked, Gate: holdfast.K2, Rule: "egress/address",
		Why:  fmt.Sprintf("%s leads to an address that may not be reached: %v", o.Host, err),
		Hint: "only public addresses are dialled; where this is meant, list the address in the domain's `addresses`",
	}
}

// dialer dials one of list, and nothing else, whatever address it is asked for.
func dialer(list []netip.Addr, port uint16, fixed bool) func(context.Context, string, string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialLimit, KeepAlive: 30 * time.Second, Control: checkDialled(list, port, fixed)}
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		var first error
		for _, a := range list[:min(len(list), maxAddresses)] {
			c, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(a, port).String())
			if err == nil {
				return c, nil
			}
			if first == nil {
				first = err
			}
			if ctx.Err() != nil {
				break
			}
		}
		return nil, first
	}
}

// checkDialled looks at the address once more where the socket is made.
func checkDialled(list []netip.Addr, port uint16, fixed bool) func(string, string, syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("dial %q: %w", address, err)
		}
		switch {
		case network != "tcp4" && network != "tcp6":
			return fmt.Errorf("dial by %q: only TCP is used", network)
		case at.Port() != port || !slices.Contains(list, at.Addr()):
			return fmt.Errorf("dial %s: it is not the address that was checked", at)
		case fixed:
			return nil
		}
		return domain.Class(at.Addr())
	}
}

// authority is o as it stands in a URL and a Host field: without the port that
// its scheme implies.
func authority(o domain.Origin) string {
	_, rest, _ := strings.Cut(o.String(), "://")
	return rest
}
