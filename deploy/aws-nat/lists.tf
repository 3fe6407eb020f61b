# A network list knows no connections: it judges each packet by itself, in the
# order of the rules' numbers, and the first that fits decides. To let answers in
# it must let in every packet that looks like one, from anywhere to the ports
# that answers come to; what is no answer is dropped by the security group, and
# by the NAT gateway, which knows what it asked. Where no answers from outside
# are expected nothing from outside is let in. What no rule allows is denied by
# AWS' own last rule.

resource "aws_network_acl" "nat" {
  vpc_id     = aws_vpc.main.id
  subnet_ids = [aws_subnet.nat.id]

  ingress {
    rule_no    = 90
    action     = "deny"
    protocol   = "-1"
    cidr_block = var.workload_cidr
    from_port  = 0
    to_port    = 0
  }

  # To the world, through the gateway.
  ingress {
    rule_no    = 100
    action     = "allow"
    protocol   = "tcp"
    cidr_block = var.proxy_cidr
    from_port  = 443
    to_port    = 443
  }

  # Answers, to the ports that a NAT gateway takes.
  ingress {
    rule_no    = 110
    action     = "allow"
    protocol   = "tcp"
    cidr_block = "0.0.0.0/0"
    from_port  = 1024
    to_port    = 65535
  }

  # A router says that a packet was too large, which else hangs connections.
  ingress {
    rule_no    = 120
    action     = "allow"
    protocol   = "icmp"
    cidr_block = "0.0.0.0/0"
    from_port  = 0
    to_port    = 0
    icmp_type  = 3
    icmp_code  = 4
  }

  dynamic "ingress" {
    for_each = var.resolvers

    content {
      rule_no    = 200 + ingress.key
      action     = "allow"
      protocol   = "udp"
      cidr_block = ingress.value
      from_port  = 1024
      to_port    = 65535
    }
  }

  dynamic "ingress" {
    for_each = length(var.resolvers) > 0 ? [var.proxy_cidr] : []

    content {
      rule_no    = 210
      action     = "allow"
      protocol   = "udp"
      cidr_block = ingress.value
      from_port  = 53
      to_port    = 53
    }
  }

  egress {
    rule_no    = 100
    action     = "allow"
    protocol   = "tcp"
    cidr_block = var.proxy_cidr
    from_port  = var.return_ports.from
    to_port    = var.return_ports.to
  }

  egress {
    rule_no    = 105
    action     = "deny"
    protocol   = "-1"
    cidr_block = var.vpc_cidr
    from_port  = 0
    to_port    = 0
  }

  egress {
    rule_no    = 110
    action     = "allow"
    protocol   = "tcp"
    cidr_block = "0.0.0.0/0"
    from_port  = 443
    to_port    = 443
  }

  dynamic "egress" {
    for_each = var.resolvers

    content {
      rule_no    = 200 + egress.key
      action     = "allow"
      protocol   = "udp"
      cidr_block = egress.value
      from_port  = 53
      to_port    = 53
    }
  }

  dynamic "egress" {
    for_each = length(var.resolvers) > 0 ? [var.proxy_cidr] : []

    content {
      rule_no    = 95
      action     = "allow"
      protocol   = "udp"
      cidr_block = egress.value
      from_port  = var.return_ports.from
      to_port    = var.return_ports.to
    }
  }

  tags = { Name = "${var.name}-nat", "holdfast:role" = "nat" }
}

resource "aws_network_acl" "proxy" {
  vpc_id     = aws_vpc.main.id
  subnet_ids = [aws_subnet.proxy.id]

  ingress {
    rule_no    = 100
    action     = "allow"
    protocol   = "tcp"
    cidr_block = var.workload_cidr
    from_port  = var.proxy_port
    to_port    = var.proxy_port
  }

  # Nothing else of the network: rule 110 is for what comes through the gateway,
  # whose packets keep the address of who sent them.
  ingress {
    rule_no    = 105
    action     = "deny"
    protocol   = "-1"
    cidr_block = var.vpc_cidr
    from_port  = 0
    to_port    = 0
  }

  ingress {
    rule_no    = 110
    action     = "allow"
    protocol   = "tcp"
    cidr_block = "0.0.0.0/0"
    from_port  = var.return_ports.from
    to_port    = var.return_ports.to
  }

  ingress {
    rule_no    = 120
    action     = "allow"
    protocol   = "icmp"
    cidr_block = "0.0.0.0/0"
    from_port  = 0
    to_port    = 0
    icmp_type  = 3
    icmp_code  = 4
  }

  # Answers of resolvers, from nobody else.
  dynamic "ingress" {
    for_each = var.resolvers

    content {
      rule_no    = 200 + ingress.key
      action     = "allow"
      protocol   = "udp"
      cidr_block = ingress.value
      from_port  = var.return_ports.from
      to_port    = var.return_ports.to
    }
  }

  egress {
    rule_no    = 100
    action     = "allow"
    protocol   = "tcp"
    cidr_block = var.workload_cidr
    from_port  = var.return_ports.from
    to_port    = var.return_ports.to
  }

  egress {
    rule_no    = 105
    action     = "deny"
    protocol   = "-1"
    cidr_block = var.vpc_cidr
    from_port  = 0
    to_port    = 0
  }

  egress {
    rule_no    = 110
    action     = "allow"
    protocol   = "tcp"
    cidr_block = "0.0.0.0/0"
    from_port  = 443
    to_port    = 443
  }

  dynamic "egress" {
    for_each = var.resolvers

    content {
      rule_no    = 200 + egress.key
      action     = "allow"
      protocol   = "udp"
      cidr_block = egress.value
      from_port  = 53
      to_port    = 53
    }
  }

  tags = { Name = "${var.name}-proxy", "holdfast:role" = "proxy" }
}

resource "aws_network_acl" "workload" {
  vpc_id     = aws_vpc.main.id
  subnet_ids = [aws_subnet.workload.id]

  # Answers of the proxy. Nothing of the world, and so no rule 110.
  ingress {
    rule_no    = 100
    action     = "allow"
    protocol   = "tcp"
    cidr_block = var.proxy_cidr
    from_port  = var.return_ports.from
    to_port    = var.return_ports.to
  }

  egress {
    rule_no    = 100
    action     = "allow"
    protocol   = "tcp"
    cidr_block = var.proxy_cidr
    from_port  = var.proxy_port
    to_port    = var.proxy_port
  }

  tags = { Name = "${var.name}-workload", "holdfast:role" = "workload" }
}

# A subnet that somebody adds gets this list: it allows nothing.
resource "aws_default_network_acl" "none" {
  default_network_acl_id = aws_vpc.main.default_network_acl_id

  tags = { Name = "${var.name}-none" }
}
