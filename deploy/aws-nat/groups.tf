# A security group has no rule that denies: what no rule allows is denied. Rules
# stand inside of their group, so that one that somebody adds by hand is taken
# away by the next apply. Answers need no rule, because groups know connections.

resource "aws_security_group" "proxy" {
  name        = "${var.name}-proxy"
  description = "Holdfast's proxies: asked by workloads, and the only ones that reach out"
  vpc_id      = aws_vpc.main.id

  ingress {
    description = "workloads to the proxy"
    protocol    = "tcp"
    from_port   = var.proxy_port
    to_port     = var.proxy_port
    cidr_blocks = [var.workload_cidr]
  }

  egress {
    description = "the proxy to the world"
    protocol    = "tcp"
    from_port   = 443
    to_port     = 443
    cidr_blocks = ["0.0.0.0/0"]
  }

  dynamic "egress" {
    for_each = var.resolvers

    content {
      description = "the proxy to a resolver outside"
      protocol    = "udp"
      from_port   = 53
      to_port     = 53
      cidr_blocks = [egress.value]
    }
  }

  tags = { Name = "${var.name}-proxy", "holdfast:role" = "proxy" }
}

resource "aws_security_group" "workload" {
  name        = "${var.name}-workload"
  description = "Everything else: reaches the proxy, and is reached by nobody"
  vpc_id      = aws_vpc.main.id
  ingress     = []

  egress {
    description     = "workloads to the proxy"
    protocol        = "tcp"
    from_port       = var.proxy_port
    to_port         = var.proxy_port
    security_groups = [aws_security_group.proxy.id]
  }

  tags = { Name = "${var.name}-workload", "holdfast:role" = "workload" }
}

# What is started without a group gets this one: it allows nothing.
resource "aws_default_security_group" "none" {
  vpc_id  = aws_vpc.main.id
  ingress = []
  egress  = []

  tags = { Name = "${var.name}-none" }
}
