output "vpc_id" {
  description = "The network, for the commands that export it."
  value       = aws_vpc.main.id
}

output "egress_address" {
  description = "The one address that the world sees."
  value       = aws_eip.egress.public_ip
}

output "egress_allocation_id" {
  description = "What the address is kept as, for an import into another state."
  value       = aws_eip.egress.id
}

output "proxy_subnet_id" {
  description = "Where the proxies are started."
  value       = aws_subnet.proxy.id
}

output "proxy_group_id" {
  description = "The group that the proxies are started in, and nothing else."
  value       = aws_security_group.proxy.id
}

output "workload_subnet_id" {
  description = "Where everything else is started."
  value       = aws_subnet.workload.id
}

output "workload_group_id" {
  description = "The group that everything else is started in."
  value       = aws_security_group.workload.id
}

output "flow_log_group" {
  description = "The log group of the flow logs."
  value       = aws_cloudwatch_log_group.flow.name
}
