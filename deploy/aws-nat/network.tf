# Three subnets, each with a table of its own. What is in none of them, such as
# the network's main table, has no route out.

resource "aws_vpc" "main" {
  cidr_block           = var.vpc_cidr
  enable_dns_support   = true
  enable_dns_hostnames = false

  tags = { Name = var.name }
}

resource "aws_internet_gateway" "main" {
  vpc_id = aws_vpc.main.id

  tags = { Name = var.name }
}

resource "aws_subnet" "nat" {
  vpc_id                  = aws_vpc.main.id
  cidr_block              = var.nat_cidr
  availability_zone       = var.availability_zone
  map_public_ip_on_launch = false

  tags = { Name = "${var.name}-nat", "holdfast:role" = "nat" }
}

resource "aws_subnet" "proxy" {
  vpc_id                  = aws_vpc.main.id
  cidr_block              = var.proxy_cidr
  availability_zone       = var.availability_zone
  map_public_ip_on_launch = false

  tags = { Name = "${var.name}-proxy", "holdfast:role" = "proxy" }
}

resource "aws_subnet" "workload" {
  vpc_id                  = aws_vpc.main.id
  cidr_block              = var.workload_cidr
  availability_zone       = var.availability_zone
  map_public_ip_on_launch = false

  tags = { Name = "${var.name}-workload", "holdfast:role" = "workload" }
}

# The address that the world sees. Others allow it by number, so that it must
# outlive the gateway, and no plan may take it away.
resource "aws_eip" "egress" {
  domain = "vpc"

  tags = { Name = "${var.name}-egress" }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_nat_gateway" "main" {
  allocation_id     = aws_eip.egress.id
  connectivity_type = "public"
  subnet_id         = aws_subnet.nat.id

  tags = { Name = var.name }

  depends_on = [aws_internet_gateway.main]
}

resource "aws_default_route_table" "none" {
  default_route_table_id = aws_vpc.main.default_route_table_id
  route                  = []

  tags = { Name = "${var.name}-none" }
}

resource "aws_route_table" "nat" {
  vpc_id = aws_vpc.main.id

  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.main.id
  }

  tags = { Name = "${var.name}-nat", "holdfast:role" = "nat" }
}

resource "aws_route_table" "proxy" {
  vpc_id = aws_vpc.main.id

  route {
    cidr_block     = "0.0.0.0/0"
    nat_gateway_id = aws_nat_gateway.main.id
  }

  tags = { Name = "${var.name}-proxy", "holdfast:role" = "proxy" }
}

resource "aws_route_table" "workload" {
  vpc_id = aws_vpc.main.id
  route  = []

  tags = { Name = "${var.name}-workload", "holdfast:role" = "workload" }
}

resource "aws_route_table_association" "nat" {
  subnet_id      = aws_subnet.nat.id
  route_table_id = aws_route_table.nat.id
}

resource "aws_route_table_association" "proxy" {
  subnet_id      = aws_subnet.proxy.id
  route_table_id = aws_route_table.proxy.id
}

resource "aws_route_table_association" "workload" {
  subnet_id      = aws_subnet.workload.id
  route_table_id = aws_route_table.workload.id
}
