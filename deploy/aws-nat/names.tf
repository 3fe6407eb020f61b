# Neither groups nor lists see what is asked of the network's own resolver, so
# that a name could carry anything out. A firewall of its own lets it answer for
# the listed names alone, and for nothing where it cannot tell.

resource "aws_route53_resolver_firewall_config" "main" {
  resource_id        = aws_vpc.main.id
  firewall_fail_open = "DISABLED"
}

resource "aws_route53_resolver_firewall_domain_list" "all" {
  name    = "${var.name}-all"
  domains = ["*"]
}

resource "aws_route53_resolver_firewall_domain_list" "allowed" {
  count = length(var.dns_names) > 0 ? 1 : 0

  name    = "${var.name}-allowed"
  domains = var.dns_names
}

resource "aws_route53_resolver_firewall_rule_group" "main" {
  name = var.name
}

resource "aws_route53_resolver_firewall_rule" "allowed" {
  count = length(var.dns_names) > 0 ? 1 : 0

  name                    = "${var.name}-allowed"
  action                  = "ALLOW"
  priority                = 100
  firewall_rule_group_id  = aws_route53_resolver_firewall_rule_group.main.id
  firewall_domain_list_id = aws_route53_resolver_firewall_domain_list.allowed[0].id

  # A listed name may stand for another, such as one of a CDN, which is not listed.
  firewall_domain_redirection_action = "TRUST_REDIRECTION_DOMAIN"
}

resource "aws_route53_resolver_firewall_rule" "all" {
  name                    = "${var.name}-all"
  action                  = "BLOCK"
  block_response          = "NXDOMAIN"
  priority                = 200
  firewall_rule_group_id  = aws_route53_resolver_firewall_rule_group.main.id
  firewall_domain_list_id = aws_route53_resolver_firewall_domain_list.all.id
}

resource "aws_route53_resolver_firewall_rule_group_association" "main" {
  name                   = var.name
  priority               = 101
  mutation_protection    = "ENABLED"
  firewall_rule_group_id = aws_route53_resolver_firewall_rule_group.main.id
  vpc_id                 = aws_vpc.main.id
}
