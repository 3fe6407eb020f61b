package nat

// This file holds that an export says all of what it says: a list that is not there
// is no empty one, and of what stands there twice nobody knows which of the two holds.

// checkWhole is the last check: what it looks at has the right shape.
func (x *Export) checkWhole() error {
	for _, f := range []func() error{x.checkTwice, x.checkTables, x.checkPermissions, x.checkAssociations} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// once refuses an id that stands there before, in a list.
func once[T any](list []T, what string, id func(*T) string) error {
	seen := make(map[string]bool, len(list))
	for i := range list {
		name := id(&list[i])
		if seen[name] && name != "" {
			return odd(name, "%s stands there twice, and which of the two holds is not said", what)
		}
		seen[name] = true
	}
	return nil
}

func (x *Export) checkTwice() error {
	for _, err := range []error{
		once(x.RouteTables, "the route table", func(t *RouteTable) string { return t.RouteTableID }),
		once(x.NatGateways, "the gateway", func(g *NatGateway) string { return g.NatGatewayID }),
		once(x.Addresses, "the address", func(a *Address) string { return a.AllocationID }),
		once(x.SecurityGroups, "the group", func(g *SecurityGroup) string { return g.GroupID }),
		once(x.NetworkAcls, "the network list", func(l *NetworkAcl) string { return l.NetworkAclID }),
		once(x.FlowLogs, "the flow log", func(l *FlowLog) string { return l.FlowLogID }),
		once(x.PrefixLists, "the prefix list", func(l *PrefixList) string { return l.PrefixListID }),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// listed is a list of a resource, and whether the export has it.
type listed struct {
	name  string
	there bool
}

// lacks is the error of a resource without an id, a network or one of its lists.
func lacks(id, vpc, idName string, lists ...listed) error {
	switch {
	case id == "":
		return odd("a resource", "it has no %s", idName)
	case vpc == "":
		return odd(id, "it has no VpcId, so that nobody knows what it belongs to")
	}
	for _, l := range lists {
		if !l.there {
			return odd(id, "it has no %s, which the command line prints also where they are none", l.name)
		}
	}
	return nil
}

func (x *Export) checkTables() error {
	for i := range x.RouteTables {
		t := &x.RouteTables[i]
		if err := lacks(t.RouteTableID, t.VpcID, "RouteTableId", listed{"Associations", t.Associations != nil}, listed{"Routes", t.Routes != nil}); err != nil {
			return err
		}
	}
	for i := range x.NatGateways {
		if err := lacks(x.NatGateways[i].NatGatewayID, x.NatGateways[i].VpcID, "NatGatewayId"); err != nil {
			return err
		}
	}
	for i := range x.NetworkAcls {
		l := &x.NetworkAcls[i]
		if err := lacks(l.NetworkAclID, l.VpcID, "NetworkAclId", listed{"Associations", l.Associations != nil}, listed{"Entries", l.Entries != nil}); err != nil {
			return err
		}
	}
	return nil
}

// checkPermissions wants each permission to name somebody: one that does not is cut.
func (x *Export) checkPermissions() error {
	for i := range x.SecurityGroups {
		g := &x.SecurityGroups[i]
		if err := lacks(g.GroupID, g.VpcID, "GroupId", listed{"IpPermissions", g.IPPermissions != nil}, listed{"IpPermissionsEgress", g.IPPermissionsEgress != nil}); err != nil {
			return err
		}
		for _, list := range [][]Permission{g.IPPermissions, g.IPPermissionsEgress} {
			for j := range list {
				if p := &list[j]; len(p.ranges)+len(p.UserIDGroupPairs)+len(p.PrefixListIDs) == 0 {
					return odd(g.GroupID, "a permission names nobody")
				}
			}
		}
	}
	return nil
}

// checkAssociations wants one table and one list for each subnet, and one main table
// for each network.
func (x *Export) checkAssociations() error {
	tables, lists, mains := map[string]string{}, map[string]string{}, map[string]string{}
	note := func(seen map[string]string, key, id string) error {
		if other, twice := seen[key]; twice && key != "" {
			return odd(key, "it has both %s and %s", clip(other), clip(id))
		}
		seen[key] = id
		return nil
	}
	for i := range x.RouteTables {
		t := &x.RouteTables[i]
		for _, a := range t.Associations {
			if s := a.AssociationState.State; s != "" && s != "associated" {
				continue
			}
			if a.Main {
				if err := note(mains, t.VpcID, t.RouteTableID); err != nil {
					return err
				}
			}
			if err := note(tables, a.SubnetID, t.RouteTableID); err != nil {
				return err
			}
		}
	}
	for i := range x.NetworkAcls {
		for _, a := range x.NetworkAcls[i].Associations {
			if err := note(lists, a.SubnetID, x.NetworkAcls[i].NetworkAclID); err != nil {
				return err
			}
		}
	}
	return nil
}
