package nat

import (
	"maps"
	"slices"
)

// judgeGateways: a gateway that is not available drops what is routed to it.
func judgeGateways(n *network, s *sink) {
	if !n.know(s, "RouteTables", "NatGateways") {
		return
	}
	if len(n.used) == 0 {
		s.fail(n.id, "", "give the proxies' route table 0.0.0.0/0 to a NAT gateway", "no route names a NAT gateway")
	}
	for _, id := range slices.Sorted(maps.Keys(n.used)) {
		g := n.gateways[id]
		switch {
		case g == nil:
			s.fail(id, "", "replace the route, or export the gateways with the same filter as the tables", "a route names it, and it is not there")
		case g.State != "available":
			s.fail(id, "", "make another gateway with the same address, and route to it; nothing leaves until then", "it is %s%s, and a route names it", clip(g.State), because(g.FailureMessage))
		case g.ConnectivityType == "":
			s.doubt(id, "export the gateways as the command line prints them", "whether it is a public one is not said")
		case g.ConnectivityType != "public":
			s.fail(id, "", "make a public one", "it is a %s one, which leads to no internet", clip(g.ConnectivityType))
		}
	}
}

// judgeAddresses: a gateway without its address sends nothing, and another
// address is another sender.
func judgeAddresses(n *network, s *sink) {
	if !n.know(s, "RouteTables", "NatGateways", "Addresses") {
		return
	}
	for _, g := range n.inUse(s) {
		if len(g.NatGatewayAddresses) == 0 {
			s.fail(g.NatGatewayID, "", "make the gateway with an allocation of your own", "it has no address")
		}
		for _, a := range g.NatGatewayAddresses {
			n.judgeAddress(s, g, a.AllocationID, a.NetworkInterfaceID, a.PublicIP, a.Status)
		}
	}
}

func (n *network) judgeAddress(s *sink, g *NatGateway, allocation, eni, ip, status string) {
	if allocation == "" || ip == "" {
		s.fail(g.NatGatewayID, clip(or(ip, allocation)), "associate an elastic address with the gateway", "one of its addresses has no allocation or no public address")
		return
	}
	if status != "" && status != "succeeded" {
		s.fail(g.NatGatewayID, allocation, "associate it again", "the association of %s is %s", clip(ip), clip(status))
	}
	for i := range n.Addresses {
		a := &n.Addresses[i]
		if a.AllocationID != allocation {
			continue
		}
		switch {
		case a.PublicIP != ip:
			s.fail(allocation, "", "export both at one time", "it is %s, and the gateway %s says %s", clip(a.PublicIP), clip(g.NatGatewayID), clip(ip))
		case a.AssociationID == "" || a.NetworkInterfaceID != eni:
			s.fail(allocation, "", "associate it with the gateway "+clip(g.NatGatewayID), "%s is not associated with the gateway that names it", clip(ip))
		}
		return
	}
	s.fail(allocation, "", "allocate an address in this account, and make the gateway with it", "the account has no such address, and %s names it", clip(g.NatGatewayID))
}

// judgeStatic: an address that the service chose goes when the gateway goes.
func judgeStatic(n *network, s *sink) {
	if !n.know(s, "RouteTables", "NatGateways", "Addresses") {
		return
	}
	managed := map[string]string{}
	for _, a := range n.Addresses {
		managed[a.AllocationID] = a.ServiceManaged
	}
	for _, g := range n.inUse(s) {
		if g.AvailabilityMode == "regional" {
			s.doubt(g.NatGatewayID, "make zonal gateways, each with an address of its own", "it is a regional one, which may take addresses by itself")
		}
		for _, a := range g.NatGatewayAddresses {
			if m := managed[a.AllocationID]; m != "" {
				s.fail(a.AllocationID, "", "allocate an address of your own, as deploy/aws-nat does", "%s is managed by a service (%s)", clip(a.PublicIP), clip(m))
			}
			if _, kept := managed[a.AllocationID]; !kept || a.AllocationID == "" {
				s.fail(g.NatGatewayID, a.AllocationID, "allocate an address of your own, as deploy/aws-nat does", "the account keeps no such address")
			}
		}
	}
}

// inUse are the gateways that routes name and the export has. Where there is
// none, nothing is known of their addresses.
func (n *network) inUse(s *sink) (out []*NatGateway) {
	for _, id := range slices.Sorted(maps.Keys(n.used)) {
		if g := n.gateways[id]; g != nil {
			out = append(out, g)
		}
	}
	if len(out) == 0 {
		s.doubt(n.id, "mend the routes first", "no gateway of the export is in use, so that nothing is known of its address")
	}
	return out
}

// know says whether the export has these members, and adds what it lacks.
func (n *network) know(s *sink, members ...string) bool {
	all := true
	for _, m := range members {
		has := map[string]bool{
			"RouteTables": n.RouteTables != nil, "NatGateways": n.NatGateways != nil, "Addresses": n.Addresses != nil, "SecurityGroups": n.SecurityGroups != nil,
			"NetworkAcls": n.NetworkAcls != nil, "FlowLogs": n.FlowLogs != nil, "events": n.lines != nil,
		}[m]
		if !has {
			s.missing(m)
			all = false
		}
	}
	if all && slices.Contains(members, "RouteTables") && len(n.inside) == 0 {
		s.doubt(n.id, "export all route tables of the network", "no route table has a local route, so that nothing says what is inside")
		return false
	}
	return all
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return " (" + clip(why) + ")"
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
