// Package awsnat holds the policy that the Terraform module beside it must keep:
// spec 003 section 3.2 with its errors mended. It reads the module as Terraform
// does, and asks no cloud.
package awsnat

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

const world = "0.0.0.0/0"

// zone is the least that the module must be given, and resolving what it may.
func zone() map[string]cty.Value {
	return map[string]cty.Value{"availability_zone": cty.StringVal("eu-central-1a")}
}

func resolving() map[string]cty.Value {
	given := zone()
	given["resolvers"], given["dns_names"] = list("192.0.2.53/32", "192.0.2.54/32"), list("api.example.com")
	return given
}

func list(s ...string) cty.Value {
	out := []cty.Value{}
	for _, e := range s {
		out = append(out, cty.StringVal(e))
	}
	return cty.TupleVal(out)
}

func TestFormat(t *testing.T) {
	for name, text := range sources(t) {
		if got := string(hclwrite.Format([]byte(text))); got != text {
			t.Errorf("%s is not formatted", name)
		}
	}
}

func TestPolicy(t *testing.T) {
	files := sources(t)
	for name, given := range map[string]map[string]cty.Value{"by itself": zone(), "with resolvers": resolving()} {
		for _, f := range faults(files, given) {
			t.Errorf("%s: %s", name, f)
		}
	}
}

// faults are what in a module breaks the policy.
func faults(files map[string]string, given map[string]cty.Value) (out []string) {
	m, err := load(files, given)
	if err != nil {
		return []string{err.Error()}
	}
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for name, text := range files {
		if strings.Contains(text, "203.0.113.") {
			say("%s has a documentation address", name)
		}
	}
	m.kinds(say)
	m.address(say)
	m.routes(say)
	m.groups(say, len(m.ctx.Variables["var"].GetAttr("resolvers").AsValueSlice()))
	m.lists(say)
	m.names(say)
	m.logs(say)
	return out
}

type sayer func(format string, args ...any)

// kinds: what is not known to the policy is not judged by it, and rules outside of
// their group, list or table are not seen by the next apply.
func (m *module) kinds(say sayer) {
	known := strings.Fields(`aws_vpc aws_internet_gateway aws_subnet aws_eip aws_nat_gateway aws_default_route_table aws_route_table aws_route_table_association
		aws_security_group aws_default_security_group aws_network_acl aws_default_network_acl aws_route53_resolver_firewall_config aws_route53_resolver_firewall_domain_list
		aws_route53_resolver_firewall_rule_group aws_route53_resolver_firewall_rule aws_route53_resolver_firewall_rule_group_association
		aws_cloudwatch_log_group aws_iam_role aws_iam_role_policy aws_flow_log`)
	for _, b := range m.blocks {
		if b.kind == "resource" && !slices.Contains(known, b.labels[0]) {
			say("the policy knows no %s", b.labels[0])
		}
	}
	for _, b := range m.raw {
		if !slices.Contains([]string{"terraform", "variable", "resource", "output"}, b.Type) {
			say("a module has no %s", b.Type)
		}
	}
}

// address: the elastic address is a resource of its own, which no plan destroys.
func (m *module) address(say sayer) {
	eip, gw := m.resource("aws_eip", "egress"), m.resource("aws_nat_gateway", "main")
	if l := eip.inner("lifecycle"); len(l) != 1 || l[0].text("prevent_destroy") != "true" {
		say("the address can be destroyed")
	}
	if eip.text("instance") != "" || eip.text("network_interface") != "" {
		say("the address is bound to something else")
	}
	if gw.text("allocation_id") != "aws_eip.egress.id" || gw.text("connectivity_type") != "public" || gw.text("subnet_id") != "aws_subnet.nat.id" {
		say("the gateway is not the address' own, or not in its subnet")
	}
}

// routes: nat to the internet, proxy to the gateway, all others nowhere.
func (m *module) routes(say sayer) {
	want := map[string]string{"nat": "gateway_id aws_internet_gateway.main.id", "proxy": "nat_gateway_id aws_nat_gateway.main.id"}
	for _, b := range m.blocks {
		if b.kind != "resource" || b.labels[0] != "aws_route_table" && b.labels[0] != "aws_default_route_table" {
			continue
		}
		target, leads := want[b.labels[1]]
		routes := b.inner("route")
		switch {
		case !leads && (len(routes) != 0 || b.list("route") == nil || len(b.list("route")) != 0):
			say("the table %s leads somewhere, or says not that it does not", b.labels[1])
		case leads && (len(routes) != 1 || len(routes[0].attrs) != 2 || routes[0].text("cidr_block") != world):
			say("the table %s has another route than 0.0.0.0/0", b.labels[1])
		case leads:
			if key, to, _ := strings.Cut(target, " "); routes[0].text(key) != to {
				say("the table %s leads elsewhere", b.labels[1])
			}
		}
	}
	for _, part := range []string{"nat", "proxy", "workload"} {
		a := m.resource("aws_route_table_association", part)
		if a.text("subnet_id") != "aws_subnet."+part+".id" || a.text("route_table_id") != "aws_route_table."+part+".id" {
			say("the subnet %s has another table", part)
		}
		if s := m.resource("aws_subnet", part); s.text("map_public_ip_on_launch") != "false" || s.text("ipv6_cidr_block") != "" {
			say("machines in %s get public addresses", part)
		}
		if tag := m.resource("aws_route_table", part).attrs["tags"]; tag == cty.NilVal || tag.GetAttr("holdfast:role").AsString() != part {
			say("the table %s does not say what it is for", part)
		}
	}
}

// groups: workloads reach the proxy and nothing else, the proxy 443 and single
// resolvers, and nobody is let in from outside.
func (m *module) groups(say sayer, resolvers int) {
	none := func(b *block, way string) bool {
		return len(b.inner(way)) == 0 && b.list(way) != nil && len(b.list(way)) == 0
	}
	port := m.number("proxy_port")
	work, proxy, spare := m.resource("aws_security_group", "workload"), m.resource("aws_security_group", "proxy"), m.resource("aws_default_security_group", "none")
	if !none(work, "ingress") || !none(spare, "ingress") || !none(spare, "egress") {
		say("a group that shall have no rules has some, or does not say so")
	}
	out := work.inner("egress")
	if len(out) != 1 || !slices.Equal(out[0].list("security_groups"), []string{"aws_security_group.proxy.id"}) || out[0].list("cidr_blocks") != nil ||
		out[0].text("protocol") != "tcp" || out[0].number("from_port") != port || out[0].number("to_port") != port {
		say("workloads reach more than the proxy, or not it")
	}
	in := proxy.inner("ingress")
	if len(in) != 1 || !slices.Equal(in[0].list("cidr_blocks"), []string{m.variable("workload_cidr")}) || in[0].text("protocol") != "tcp" ||
		in[0].number("from_port") != port || in[0].number("to_port") != port || in[0].list("security_groups") != nil {
		say("the proxy is reached by others, or not by workloads")
	}
	https, dns := 0, 0
	for _, e := range proxy.inner("egress") {
		c := e.list("cidr_blocks")
		switch {
		case e.text("protocol") == "tcp" && e.number("from_port") == 443 && e.number("to_port") == 443 && slices.Equal(c, []string{world}):
			https++
		case e.text("protocol") == "udp" && e.number("from_port") == 53 && e.number("to_port") == 53 && len(c) == 1 && strings.HasSuffix(c[0], "/32"):
			dns++
		default:
			say("the proxy reaches %s %d to %d at %q", e.text("protocol"), e.number("from_port"), e.number("to_port"), c)
		}
		if e.list("ipv6_cidr_blocks") != nil || e.list("prefix_list_ids") != nil {
			say("the proxy reaches what is no range of IPv4")
		}
	}
	if https != 1 || dns != resolvers {
		say("the proxy reaches %d times the world and %d resolvers of %d", https, dns, resolvers)
	}
	for _, g := range []*block{work, proxy, spare} {
		for _, r := range g.blocks {
			if _, action := r.attrs["action"]; action {
				say("a group has no actions")
			}
		}
	}
}

func (m *module) variable(name string) string {
	return m.ctx.Variables["var"].GetAttr(name).AsString()
}

func (m *module) number(name string) int {
	n, _ := m.ctx.Variables["var"].GetAttr(name).AsBigFloat().Int64()
	return int(n)
}

// lists: from outside only what answers look like, and only where they are
// expected; what is asked over UDP is heard.
func (m *module) lists(say sayer) {
	vpc := netip.MustParsePrefix(m.variable("vpc_cidr"))
	low := map[string]int{"nat": 1024, "proxy": 32768, "workload": 1 << 20}
	for part, least := range low {
		l := m.resource("aws_network_acl", part)
		if !slices.Equal(l.list("subnet_ids"), []string{"aws_subnet." + part + ".id"}) {
			say("the list %s stands before another subnet", part)
		}
		numbers := map[string]bool{}
		for _, r := range l.blocks {
			at := fmt.Sprintf("%s %s rule %d", part, r.kind, r.number("rule_no"))
			if numbers[at] || r.number("rule_no") < 1 {
				say("%s: its number stands twice, or is none", at)
			}
			numbers[at] = true
			p, err := netip.ParsePrefix(r.text("cidr_block"))
			if err != nil || r.text("ipv6_cidr_block") != "" {
				say("%s: no range of IPv4", at)
				continue
			}
			inside := vpc.Bits() <= p.Bits() && vpc.Contains(p.Addr())
			if r.text("action") == "deny" || inside {
				continue
			}
			from, to, proto := r.number("from_port"), r.number("to_port"), r.text("protocol")
			ok := r.text("action") == "allow"
			switch {
			case r.kind == "ingress" && proto == "tcp":
				ok = ok && from >= least && from <= to
			case r.kind == "ingress" && proto == "udp":
				ok = ok && from >= least && p.IsSingleIP() && m.asks(l, p)
			case r.kind == "ingress" && proto == "icmp":
				ok = ok && part != "workload" && r.number("icmp_type") == 3 && r.number("icmp_code") == 4
			case r.kind == "egress" && proto == "tcp":
				ok = ok && part != "workload" && from == 443 && to == 443
			case r.kind == "egress" && proto == "udp":
				ok = ok && part != "workload" && p.IsSingleIP() && from == 53 && to == 53 && m.hears(l, p)
			default:
				ok = false
			}
			if !ok {
				say("%s: %s of %s %d to %d with the world", at, r.text("action"), proto, from, to)
			}
		}
		if part != "workload" && !slices.ContainsFunc(l.inner("ingress"), func(r *block) bool {
			return r.number("rule_no") == 110 && r.text("action") == "allow" && r.text("cidr_block") == world && r.text("protocol") == "tcp"
		}) {
			say("the list %s lets no answers in", part)
		}
	}
	if d := m.resource("aws_default_network_acl", "none"); d.kind == "" || len(d.blocks) != 0 {
		say("the spare list allows something, or nobody holds it")
	}
}

func (m *module) asks(l *block, p netip.Prefix) bool {
	return slices.ContainsFunc(l.inner("egress"), func(r *block) bool { return r.text("protocol") == "udp" && r.text("cidr_block") == p.String() })
}

func (m *module) hears(l *block, p netip.Prefix) bool {
	return slices.ContainsFunc(l.inner("ingress"), func(r *block) bool {
		return r.text("protocol") == "udp" && r.text("cidr_block") == p.String() && r.text("action") == "allow"
	})
}

// names: the network's own resolver answers for listed names alone.
func (m *module) names(say sayer) {
	all, block := m.resource("aws_route53_resolver_firewall_domain_list", "all"), m.resource("aws_route53_resolver_firewall_rule", "all")
	if m.resource("aws_route53_resolver_firewall_config", "main").text("firewall_fail_open") != "DISABLED" {
		say("the resolver answers where it cannot tell")
	}
	if !slices.Equal(all.list("domains"), []string{"*"}) || block.text("action") != "BLOCK" || block.text("firewall_domain_list_id") != "aws_route53_resolver_firewall_domain_list.all.id" {
		say("the resolver answers for names that are not listed")
	}
	for _, b := range m.blocks {
		if b.kind == "resource" && b.labels[0] == "aws_route53_resolver_firewall_rule" && b.text("action") != "BLOCK" && b.number("priority") >= block.number("priority") {
			say("a listed name is blocked before it is allowed")
		}
	}
	a := m.resource("aws_route53_resolver_firewall_rule_group_association", "main")
	if a.text("vpc_id") != "aws_vpc.main.id" || a.text("mutation_protection") != "ENABLED" {
		say("the resolver's rules are not the network's, or may be taken away")
	}
}

// logs: all of it is recorded, with who began.
func (m *module) logs(say sayer) {
	l := m.resource("aws_flow_log", "main")
	if l.text("vpc_id") != "aws_vpc.main.id" || l.text("traffic_type") != "ALL" || l.text("log_destination") == "" {
		say("not all traffic is recorded")
	}
	for _, field := range []string{"interface-id", "srcaddr", "dstaddr", "srcport", "dstport", "protocol", "start", "action", "log-status", "tcp-flags"} {
		if !strings.Contains(l.text("log_format"), "${"+field+"}") {
			say("flow logs lack %s", field)
		}
	}
}

// TestPolicyFindsWhatIsLoosened: each change makes the module what the policy
// forbids, and the policy says so.
func TestPolicyFindsWhatIsLoosened(t *testing.T) {
	for _, c := range []struct{ file, old, new, says string }{
		{"network.tf", "    prevent_destroy = true\n", "    prevent_destroy = false\n", "can be destroyed"},
		{"network.tf", "  allocation_id     = aws_eip.egress.id\n", "", "not the address' own"},
		{"network.tf", "    nat_gateway_id = aws_nat_gateway.main.id", "    gateway_id = aws_internet_gateway.main.id", "leads elsewhere"},
		{"network.tf", "map_public_ip_on_launch = false", "map_public_ip_on_launch = true", "public addresses"},
		{"network.tf", "  vpc_id = aws_vpc.main.id\n  route  = []\n", "  vpc_id = aws_vpc.main.id\n  route {\n    cidr_block = \"0.0.0.0/0\"\n    nat_gateway_id = aws_nat_gateway.main.id\n  }\n", "the table workload leads somewhere"},
		{"lists.tf", "    from_port  = var.return_ports.from\n    to_port    = var.return_ports.to\n  }\n\n  ingress {\n    rule_no    = 120", "    from_port  = 1024\n    to_port    = 65535\n  }\n\n  ingress {\n    rule_no    = 120", "proxy ingress rule 110"},
		{"lists.tf", "    icmp_type  = 3", "    icmp_type  = 8", "allow of icmp"},
		{"lists.tf", "    cidr_block = var.proxy_cidr\n    from_port  = var.return_ports.from", "    cidr_block = \"0.0.0.0/0\"\n    from_port  = var.return_ports.from", "workload ingress rule 100"},
		{"lists.tf", "  # Answers of resolvers, from nobody else.\n  dynamic \"ingress\" {\n    for_each = var.resolvers\n", "  dynamic \"ingress\" {\n    for_each = []\n", "with the world"},
		{"groups.tf", "    security_groups = [aws_security_group.proxy.id]", "    cidr_blocks = [\"0.0.0.0/0\"]", "workloads reach more"},
		{"groups.tf", "    from_port   = 443\n    to_port     = 443\n", "    from_port   = 0\n    to_port     = 65535\n", "the proxy reaches tcp 0 to 65535"},
		{"groups.tf", "  ingress     = []\n", "", "shall have no rules"},
		{"groups.tf", "  egress  = []\n", "  egress {\n    protocol = \"-1\"\n    from_port = 0\n    to_port = 0\n    cidr_blocks = [\"0.0.0.0/0\"]\n  }\n", "shall have no rules"},
		{"groups.tf", "    cidr_blocks = [var.workload_cidr]", "    cidr_blocks = [\"0.0.0.0/0\"]", "the proxy is reached by others"},
		{"names.tf", "\"DISABLED\"", "\"ENABLED\"", "where it cannot tell"},
		{"names.tf", "  priority                = 200", "  priority                = 50", "blocked before"},
		{"names.tf", "  domains = [\"*\"]", "  domains = [\"example.com\"]", "not listed"},
		{"logs.tf", "\"ALL\"", "\"REJECT\"", "not all traffic"},
		{"logs.tf", " $${tcp-flags}", "", "lack tcp-flags"},
		{"outputs.tf", "output \"vpc_id\" {", "resource \"aws_security_group_rule\" \"x\" {\n  type = \"ingress\"\n}\n\noutput \"vpc_id\" {", "knows no aws_security_group_rule"},
		{"outputs.tf", "aws_eip.egress.public_ip", "\"203.0.113.45\"", "documentation address"},
	} {
		files := sources(t)
		at := strings.LastIndex(files[c.file], c.old)
		if at < 0 {
			t.Errorf("%s has no %q", c.file, c.old)
			continue
		}
		files[c.file] = files[c.file][:at] + c.new + files[c.file][at+len(c.old):]
		if got := strings.Join(faults(files, resolving()), "\n"); !strings.Contains(got, c.says) {
			t.Errorf("%s with %q: %q", c.file, c.new, got)
		}
	}
}

// Each variable says what it is, and refuses what it is not.
func TestVariables(t *testing.T) {
	num := cty.NumberIntVal
	span := func(from, to int64) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"from": num(from), "to": num(to)})
	}
	text := cty.StringVal
	cases := map[string]struct{ good, bad []cty.Value }{
		"name":              {[]cty.Value{text("holdfast"), text("a-1")}, []cty.Value{text(""), text("A"), text("1a"), text(strings.Repeat("a", 33)), text("a b"), text("a\nb")}},
		"availability_zone": {[]cty.Value{text("eu-central-1a"), text("us-gov-west-1b")}, []cty.Value{text("eu-central-1"), text(""), text("1a")}},
		"vpc_cidr":          {[]cty.Value{text("10.0.0.0/16"), text("172.31.0.0/20"), text("192.168.4.0/28")}, []cty.Value{text("10.0.0.0/8"), text("0.0.0.0/0"), text("203.0.113.0/24"), text("172.32.0.0/16"), text("10.0.0.0/29"), text("::/0"), text("10.0.0.0")}},
		"nat_cidr":          {[]cty.Value{text("10.0.0.0/28")}, []cty.Value{text("10.0.0.0/8"), text("10.0.0.0/30"), text("x/24")}},
		"proxy_cidr":        {[]cty.Value{text("10.0.1.0/24")}, []cty.Value{text("10.0.0.0/8"), text("10.0.0.0/30"), text("2001:db8::/24")}},
		"workload_cidr":     {[]cty.Value{text("10.0.2.0/24")}, []cty.Value{text("0.0.0.0/0"), text("10.0.0.0/30")}},
		"proxy_port":        {[]cty.Value{num(7412), num(1024)}, []cty.Value{num(443), num(32768), num(-1), cty.NumberFloatVal(7412.5)}},
		"return_ports":      {[]cty.Value{span(32768, 60999), span(40000, 65535)}, []cty.Value{span(1024, 65535), span(60999, 32768), span(32768, 70000)}},
		"resolvers":         {[]cty.Value{list(), list("192.0.2.53/32")}, []cty.Value{list(world), list("192.0.2.0/24"), list("2001:db8::53/32"), list("192.0.2.53"), list("1.0.0.1/32", "1.0.0.2/32", "1.0.0.3/32", "1.0.0.4/32", "1.0.0.5/32")}},
		"dns_names":         {[]cty.Value{list(), list("api.example.com", "*.example.com")}, []cty.Value{list("*"), list("example"), list("API.example.com"), list("a.example.com."), list("a.*.com"), list("")}},
		"log_days":          {[]cty.Value{num(90), num(365)}, []cty.Value{num(0), num(1), num(91)}},
	}
	m, err := load(sources(t), resolving())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, b := range m.raw {
		if b.Type != "variable" {
			continue
		}
		n++
		name := b.Labels[0]
		for _, attr := range []string{"description", "type"} {
			if b.Body.Attributes[attr] == nil {
				t.Errorf("%s has no %s", name, attr)
			}
		}
		c, known := cases[name]
		if !known || len(b.Body.Blocks) != 1 || b.Body.Blocks[0].Type != "validation" || b.Body.Blocks[0].Body.Attributes["error_message"] == nil {
			t.Errorf("%s is not tried, or validates nothing", name)
			continue
		}
		condition := b.Body.Blocks[0].Body.Attributes["condition"].Expr
		if d := b.Body.Attributes["default"]; d != nil {
			v, _ := d.Expr.Value(nil)
			c.good = append(c.good, v)
		}
		for want, values := range map[bool][]cty.Value{true: c.good, false: c.bad} {
			for _, v := range values {
				ctx := &hcl.EvalContext{Functions: functions(), Variables: map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{name: v})}}
				got, diags := condition.Value(ctx)
				if ok := !diags.HasErrors() && got.True(); ok != want {
					t.Errorf("%s = %#v: %v %v", name, v, ok, diags)
				}
			}
		}
	}
	if n != len(cases) {
		t.Errorf("%d variables, and %d are tried", n, len(cases))
	}
}

func TestOutputs(t *testing.T) {
	m, err := load(sources(t), zone())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, b := range m.blocks {
		if b.kind == "output" {
			names = append(names, b.labels[0])
			if b.text("description") == "" || b.text("value") == "" {
				t.Errorf("%s says nothing", b.labels[0])
			}
		}
	}
	if want := []string{"egress_address", "egress_allocation_id", "flow_log_group", "proxy_group_id", "proxy_subnet_id", "vpc_id", "workload_group_id", "workload_subnet_id"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
}
