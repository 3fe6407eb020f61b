package nat

import (
	"strings"
)

// judgeRoutes: the tables of private subnets know the network and the NAT
// gateway, those of the gateways' own subnets the network and the internet
// gateway, and those of workloads the network alone.
func judgeRoutes(n *network, s *sink) {
	if !n.know(s, "RouteTables", "NatGateways", "NetworkAcls") {
		return
	}
	out := false
	for _, sub := range n.subnets {
		if n.tableOf[sub] == nil {
			s.doubt(sub, "export the main route table, too", "no table of the export is this subnet's")
		}
	}
	for _, t := range n.tables {
		n.judgeTable(s, t)
		out = out || !t.home && t.out
	}
	if !out {
		s.fail(n.id, "", "give the proxies' subnet a table with 0.0.0.0/0 to the NAT gateway", "no private subnet has a route to a NAT gateway")
	}
}

func (n *network) judgeTable(s *sink, t *table) {
	whole := false
	for i := range t.Routes {
		r := &t.Routes[i]
		if r.GatewayID == "local" || r.to.IsValid() && n.isInside(r.to) && (r.NetworkInterfaceID != "" || r.InstanceID != "") {
			// What leads from one machine of the network to another stays inside.
			continue
		}
		whole = n.judgeRoute(s, t, r) || whole
	}
	switch {
	case whole || t.workload:
	case t.home:
		s.fail(t.RouteTableID, "0.0.0.0/0", "route 0.0.0.0/0 to the internet gateway in the gateway's own subnet", "the subnet of the NAT gateway has no route to the internet")
	default:
		s.fail(t.RouteTableID, "0.0.0.0/0", "route it to the NAT gateway; tag a table that shall lead nowhere with "+roleTag+" = "+roleWorkload, "its subnets have no route to the NAT gateway")
	}
}

// judgeRoute judges one route that leads out, and says whether it is the whole
// way out as it should be.
func (n *network) judgeRoute(s *sink, t *table, r *Route) bool {
	to, target := r.destinations()[0], r.targets()[0]
	switch {
	case t.workload:
		s.fail(t.RouteTableID, to, "take the route away: workloads reach the proxy, which is inside", "workloads have a route out, to %s", clip(target))
		return false
	case t.home && (!strings.HasPrefix(r.GatewayID, "igw-") || !r.to.IsValid()):
		s.fail(t.RouteTableID, to, "route to the internet gateway alone", "the NAT gateway's subnet leads to %s", clip(target))
		return false
	case !t.home && r.NatGatewayID == "":
		s.fail(t.RouteTableID, to, elsewhere(r), "it leads to %s, beside the NAT gateway", clip(target))
		return false
	case !t.home && !r.to.IsValid():
		s.doubt(t.RouteTableID, "route 0.0.0.0/0 to the gateway instead", "what the prefix list %s covers is not known", clip(to))
		return false
	}
	if r.State != "active" {
		s.fail(t.RouteTableID, to, "route it to a gateway that is there", "the route to %s is %s", clip(target), or(clip(r.State), "of no state"))
		return false
	}
	return r.to.IsValid() && r.to.Addr().Is4() && r.to.Bits() == 0
}

// elsewhere is what to do about a route beside the gateway.
func elsewhere(r *Route) string {
	switch {
	case strings.HasPrefix(r.GatewayID, "igw-"):
		return "route it to the NAT gateway: behind an internet gateway a machine with a public address is reached from outside"
	case r.EgressOnlyInternetGatewayID != "":
		return "take it away: over IPv6 machines leave with their own addresses, and not with the gateway's"
	case strings.HasPrefix(r.GatewayID, "vpce-"):
		return "take the endpoint out of this table, or keep it in mind as a way out that neither the proxy nor the gateway sees"
	}
	return "take it away, or route it to the NAT gateway"
}
