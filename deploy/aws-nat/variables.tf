variable "name" {
  description = "What everything is named after: letters, digits and hyphens, 32 at most."
  type        = string
  default     = "holdfast"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,31}$", var.name))
    error_message = "A name begins with a small letter, and has at most 32 small letters, digits and hyphens."
  }
}

variable "availability_zone" {
  description = "The one zone that all three subnets lie in, such as eu-central-1a. A NAT gateway lives in one zone and falls with it; nothing leaves then."
  type        = string

  validation {
    condition     = can(regex("^[a-z]{2,4}(-[a-z]+)+-[0-9]+[a-z]$", var.availability_zone))
    error_message = "A zone is a region and a letter, such as eu-central-1a."
  }
}

variable "vpc_cidr" {
  description = "The network. AWS takes /16 to /28, never the /8 of the specification."
  type        = string
  default     = "10.0.0.0/16"

  validation {
    condition     = can(cidrnetmask(var.vpc_cidr)) && can(regex("^(10|172\\.(1[6-9]|2[0-9]|3[01])|192\\.168)\\..*/(1[6-9]|2[0-8])$", var.vpc_cidr))
    error_message = "The network is private IPv4 (10/8, 172.16/12, 192.168/16), of /16 to /28."
  }
}

variable "nat_cidr" {
  description = "The subnet of the NAT gateway, which alone has a route to the internet gateway. Nothing else belongs there."
  type        = string
  default     = "10.0.0.0/24"

  validation {
    condition     = can(cidrnetmask(var.nat_cidr)) && can(regex("/(1[6-9]|2[0-8])$", var.nat_cidr))
    error_message = "A subnet is IPv4, of /16 to /28."
  }
}

variable "proxy_cidr" {
  description = "The subnet of Holdfast's proxies, which alone has a route to the NAT gateway."
  type        = string
  default     = "10.0.1.0/24"

  validation {
    condition     = can(cidrnetmask(var.proxy_cidr)) && can(regex("/(1[6-9]|2[0-8])$", var.proxy_cidr))
    error_message = "A subnet is IPv4, of /16 to /28."
  }
}

variable "workload_cidr" {
  description = "The subnet of everything else, which has no route out of the network."
  type        = string
  default     = "10.0.2.0/24"

  validation {
    condition     = can(cidrnetmask(var.workload_cidr)) && can(regex("/(1[6-9]|2[0-8])$", var.workload_cidr))
    error_message = "A subnet is IPv4, of /16 to /28."
  }
}

variable "proxy_port" {
  description = "Where the proxies listen (egress: listen: in holdfast.yaml)."
  type        = number
  default     = 7412

  validation {
    condition     = var.proxy_port >= 1024 && var.proxy_port < 32768 && floor(var.proxy_port) == var.proxy_port
    error_message = "The port is a whole number of 1024 to 32767, so that no rule for answers covers it."
  }
}

variable "return_ports" {
  description = "The ports that the machines' own connections come from: Linux' net.ipv4.ip_local_port_range. Narrow it here as it is narrowed there."
  type = object({
    from = number
    to   = number
  })
  default = {
    from = 32768
    to   = 60999
  }

  validation {
    condition     = var.return_ports.from >= 32768 && var.return_ports.from < var.return_ports.to && var.return_ports.to <= 65535
    error_message = "Answers come to ports of 32768 to 65535, from the lower to the higher."
  }
}

variable "resolvers" {
  description = "Resolvers outside of the network that the proxies may ask over UDP, as addresses with /32. None is needed: the network's own resolver is asked otherwise, and behind it stands dns_names."
  type        = list(string)
  default     = []

  validation {
    condition     = length(var.resolvers) <= 4 && alltrue([for r in var.resolvers : can(cidrnetmask(r)) && can(regex("/32$", r))])
    error_message = "At most four resolvers, each one IPv4 address and /32."
  }
}

variable "dns_names" {
  description = "The only names that the network's own resolver answers for, to anybody: the hosts under egress: domains in holdfast.yaml, with *. before a name for all below it. None is the safe default: then it answers nothing."
  type        = list(string)
  default     = []

  validation {
    condition     = length(var.dns_names) <= 1000 && alltrue([for n in var.dns_names : can(regex("^(\\*\\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$", n))])
    error_message = "At most 1000 names such as api.example.com or *.example.com, in small letters and without a dot at the end; no bare *."
  }
}

variable "log_days" {
  description = "How many days the flow logs are kept."
  type        = number
  default     = 90

  validation {
    condition     = contains([30, 60, 90, 120, 150, 180, 365, 400, 545, 731], var.log_days)
    error_message = "CloudWatch keeps logs for 30, 60, 90, 120, 150, 180, 365, 400, 545 or 731 days, among others; fewer than 30 are too few to look back."
  }
}
