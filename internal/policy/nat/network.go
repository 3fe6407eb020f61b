package nat

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// network is one network of an export, and what follows from it.
type network struct {
	*Export
	Options
	id     string
	inside []netip.Prefix // what its local routes cover
	tables []*table       // those that a subnet uses, in the order of the export
	lists  map[string]*NetworkAcl
	// subnets are all that a table or a list names, sorted.
	subnets  []string
	tableOf  map[string]*table
	used     map[string]bool // NAT gateways that a route names
	gateways map[string]*NatGateway
	groups   map[string]bool
	proxies  map[string]bool

	prefixLists map[string]*PrefixList
}

// maxInside is how many ranges a network may have; AWS has at most 50 of IPv4.
const maxInside = 64

// table is a route table and who uses it.
type table struct {
	*RouteTable
	subnets []string
	// home is set where every subnet is a NAT gateway's, workload where the table
	// is tagged as one that leads nowhere, and out where it leads to a gateway.
	home, workload, out bool
}

// network picks one network out of an export, and draws from it what several
// checks need.
func (x *Export) network(o Options) (*network, error) {
	n := &network{Export: &Export{Addresses: x.Addresses, PrefixLists: x.PrefixLists, lines: x.lines}, Options: o,
		lists: map[string]*NetworkAcl{}, tableOf: map[string]*table{}, used: map[string]bool{}, gateways: map[string]*NatGateway{},
		groups: map[string]bool{}, proxies: map[string]bool{}, prefixLists: map[string]*PrefixList{}}
	ids := map[string]bool{}
	for _, t := range x.RouteTables {
		ids[t.VpcID] = true
	}
	for _, g := range x.NatGateways {
		ids[g.VpcID] = true
	}
	for _, g := range x.SecurityGroups {
		ids[g.VpcID] = true
	}
	for _, l := range x.NetworkAcls {
		ids[l.VpcID] = true
	}
	delete(ids, "")
	switch {
	case o.Network != "" && !ids[o.Network]:
		return nil, refuse(holdfast.KindNotFound, "the export has "+named(ids), "the network %s is not in the export", clip(o.Network))
	case o.Network == "" && len(ids) > 1:
		return nil, refuse(holdfast.KindValue, "name one with --vpc: "+named(ids), "the export has %d networks", len(ids))
	case o.Network == "":
		for id := range ids {
			n.id = id
		}
	default:
		n.id = o.Network
	}
	n.RouteTables = own(x.RouteTables, func(t *RouteTable) bool { return t.VpcID == n.id })
	n.NatGateways = own(x.NatGateways, func(g *NatGateway) bool { return g.VpcID == n.id })
	n.SecurityGroups = own(x.SecurityGroups, func(g *SecurityGroup) bool { return g.VpcID == n.id })
	n.NetworkAcls = own(x.NetworkAcls, func(l *NetworkAcl) bool { return l.VpcID == n.id })
	n.FlowLogs = x.FlowLogs
	for i := range n.PrefixLists {
		n.prefixLists[n.PrefixLists[i].PrefixListID] = &n.PrefixLists[i]
	}
	n.draw()
	if len(n.inside) > maxInside {
		return nil, large("more than %d local ranges", maxInside)
	}
	return n, n.nameProxies()
}

// own are those of a list that belong; nil stays nil, which is unknown.
func own[T any](list []T, is func(*T) bool) []T {
	if list == nil {
		return nil
	}
	out := []T{}
	for i := range list {
		if is(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

// named are some ids in words.
func named(ids map[string]bool) string {
	if len(ids) == 0 {
		return "none"
	}
	out := ""
	for i, id := range slices.Sorted(maps.Keys(ids)) {
		switch {
		case i == 5:
			return out + " and others"
		case i > 0:
			out += ", "
		}
		out += clip(id)
	}
	return out
}

func (n *network) nameProxies() error {
	for _, g := range n.SecurityGroups {
		n.groups[g.GroupID] = true
		if role(g.Tags) == roleProxy {
			n.proxies[g.GroupID] = true
		}
	}
	for _, p := range n.Proxies {
		if !n.groups[p] {
			return refuse(holdfast.KindNotFound, "name a group of this network by its id, such as sg-0123456789abcdef0", "the group %s is not in the export", clip(p))
		}
		n.proxies[p] = true
	}
	return nil
}

func role(tags []Tag) string {
	for _, t := range tags {
		if t.Key == roleTag {
			return t.Value
		}
	}
	return ""
}

func (n *network) draw() {
	homes := map[string]bool{}
	for i := range n.NatGateways {
		g := &n.NatGateways[i]
		n.gateways[g.NatGatewayID] = g
		if g.State != "deleted" && g.SubnetID != "" {
			homes[g.SubnetID] = true
		}
	}
	names := map[string]bool{}
	for i := range n.NetworkAcls {
		for _, a := range n.NetworkAcls[i].Associations {
			n.lists[a.SubnetID], names[a.SubnetID] = &n.NetworkAcls[i], true
		}
	}
	var main *table
	made := make([]*table, len(n.RouteTables))
	for i := range n.RouteTables {
		t := &table{RouteTable: &n.RouteTables[i]}
		made[i] = t
		for _, a := range t.Associations {
			if s := a.AssociationState.State; s != "" && s != "associated" {
				continue
			}
			if a.Main {
				main = t
			}
			if a.SubnetID != "" {
				n.tableOf[a.SubnetID], names[a.SubnetID] = t, true
			}
		}
		n.read(t)
	}
	for g := range homes {
		names[g] = true
	}
	n.subnets = slices.Sorted(maps.Keys(names))
	for _, s := range n.subnets {
		if n.tableOf[s] == nil && main != nil {
			n.tableOf[s] = main
		}
		if t := n.tableOf[s]; t != nil {
			t.subnets = append(t.subnets, s)
		}
	}
	for _, t := range made {
		if len(t.subnets) == 0 {
			continue
		}
		t.home = !slices.ContainsFunc(t.subnets, func(s string) bool { return !homes[s] })
		t.workload = role(t.Tags) == roleWorkload
		n.tables = append(n.tables, t)
	}
}

// read takes from a table what is inside, and which gateways it names.
func (n *network) read(t *table) {
	for i := range t.Routes {
		r := &t.Routes[i]
		if r.GatewayID == "local" && r.to.IsValid() && !slices.Contains(n.inside, r.to) && len(n.inside) <= maxInside {
			n.inside = append(n.inside, r.to)
		}
		if r.NatGatewayID != "" {
			n.used[r.NatGatewayID] = true
			t.out = true
		}
	}
}

// isInside says whether all of a range is the network's own, or goes no further
// than the machine's own link, as the cloud's clock and resolver there.
func (n *network) isInside(p netip.Prefix) bool {
	for _, in := range n.inside {
		if in.Bits() <= p.Bits() && in.Contains(p.Addr()) {
			return true
		}
	}
	return p.Bits() >= 16 && p.Addr().Is4() && p.Addr().IsLinkLocalUnicast() || p.Bits() >= 10 && p.Addr().Is6() && p.Addr().IsLinkLocalUnicast()
}

func (n *network) isInsideAddr(a netip.Addr) bool { return n.isInside(netip.PrefixFrom(a, a.BitLen())) }

// destinations and targets are what stands in a route's fields.
func (r *Route) destinations() []string {
	return given(r.DestinationCidrBlock, r.DestinationIpv6CidrBlock, r.DestinationPrefixListID)
}

// targets leaves out an interface beside the instance that it is of, which the
// command line prints both.
func (r *Route) targets() []string {
	eni := r.NetworkInterfaceID
	if r.InstanceID != "" {
		eni = ""
	}
	return given(r.EgressOnlyInternetGatewayID, r.GatewayID, r.InstanceID, r.NatGatewayID, r.TransitGatewayID, r.LocalGatewayID,
		r.CarrierGatewayID, eni, r.VpcPeeringConnectionID, r.CoreNetworkArn, r.OdbNetworkArn)
}

func given(words ...string) (out []string) {
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}
