package nat

import (
	"net/netip"
)

// The shapes below have the names of the AWS command line's JSON output (EC2 API
// 2016-11-15, `aws ec2 describe-*`), and of it only what is judged.

// Export is what was read. A member that the export does not have is nil, one
// that is empty is not.
type Export struct {
	RouteTables    []RouteTable
	NatGateways    []NatGateway
	Addresses      []Address
	SecurityGroups []SecurityGroup
	NetworkAcls    []NetworkAcl
	FlowLogs       []FlowLog
	PrefixLists    []PrefixList

	lines []string // of flow logs; nil where the export has none
}

// Tag is a word that somebody put on a resource.
type Tag struct{ Key, Value string }

// RouteTable is one of describe-route-tables.
type RouteTable struct {
	RouteTableID string `json:"RouteTableId"`
	VpcID        string `json:"VpcId"`
	Associations []struct {
		Main             bool
		SubnetID         string `json:"SubnetId"`
		GatewayID        string `json:"GatewayId"`
		AssociationState struct{ State string }
	}
	Routes []Route
	Tags   []Tag
}

// Route is one route of a table: one destination, and one target.
type Route struct {
	DestinationCidrBlock        string
	DestinationIpv6CidrBlock    string
	DestinationPrefixListID     string `json:"DestinationPrefixListId"`
	EgressOnlyInternetGatewayID string `json:"EgressOnlyInternetGatewayId"`
	GatewayID                   string `json:"GatewayId"`
	InstanceID                  string `json:"InstanceId"`
	NatGatewayID                string `json:"NatGatewayId"`
	TransitGatewayID            string `json:"TransitGatewayId"`
	LocalGatewayID              string `json:"LocalGatewayId"`
	CarrierGatewayID            string `json:"CarrierGatewayId"`
	NetworkInterfaceID          string `json:"NetworkInterfaceId"`
	VpcPeeringConnectionID      string `json:"VpcPeeringConnectionId"`
	CoreNetworkArn              string
	OdbNetworkArn               string
	State                       string

	to netip.Prefix // of either destination; not valid of a prefix list's
}

// NatGateway is one of describe-nat-gateways.
type NatGateway struct {
	NatGatewayID        string `json:"NatGatewayId"`
	VpcID               string `json:"VpcId"`
	SubnetID            string `json:"SubnetId"`
	State               string
	ConnectivityType    string
	AvailabilityMode    string
	FailureMessage      string
	NatGatewayAddresses []struct {
		AllocationID       string `json:"AllocationId"`
		AssociationID      string `json:"AssociationId"`
		NetworkInterfaceID string `json:"NetworkInterfaceId"`
		PublicIP           string `json:"PublicIp"`
		Status             string
	}
}

// Address is one of describe-addresses.
type Address struct {
	AllocationID       string `json:"AllocationId"`
	AssociationID      string `json:"AssociationId"`
	NetworkInterfaceID string `json:"NetworkInterfaceId"`
	PublicIP           string `json:"PublicIp"`
	ServiceManaged     string
}

// SecurityGroup is one of describe-security-groups.
type SecurityGroup struct {
	GroupID             string `json:"GroupId"`
	GroupName           string
	VpcID               string       `json:"VpcId"`
	IPPermissions       []Permission `json:"IpPermissions"`
	IPPermissionsEgress []Permission `json:"IpPermissionsEgress"`
	Tags                []Tag
}

// Permission is one rule of a group. Of ICMP the ports are its type and code, and
// -1 is each of them.
type Permission struct {
	IPProtocol       string `json:"IpProtocol"`
	FromPort, ToPort *int
	IPRanges         []struct {
		CidrIP string `json:"CidrIp"`
	} `json:"IpRanges"`
	Ipv6Ranges []struct {
		CidrIpv6 string
	}
	PrefixListIDs []struct {
		PrefixListID string `json:"PrefixListId"`
	} `json:"PrefixListIds"`
	UserIDGroupPairs []struct {
		GroupID                string `json:"GroupId"`
		VpcID                  string `json:"VpcId"`
		VpcPeeringConnectionID string `json:"VpcPeeringConnectionId"`
		PeeringStatus          string // of pairs with another network alone
	} `json:"UserIdGroupPairs"`

	protocol int
	ranges   []netip.Prefix // of both families
}

// NetworkAcl is one of describe-network-acls.
type NetworkAcl struct {
	NetworkAclID string `json:"NetworkAclId"`
	VpcID        string `json:"VpcId"`
	Associations []struct {
		SubnetID string `json:"SubnetId"`
	}
	Entries []Entry
}

// Entry is one rule of a network list. The lowest number that fits decides.
type Entry struct {
	RuleNumber    int
	Egress        bool
	Protocol      string
	RuleAction    string
	CidrBlock     string
	Ipv6CidrBlock string
	PortRange     *struct{ From, To int }
	IcmpTypeCode  *struct{ Type, Code int }

	protocol int
	prefix   netip.Prefix
}

// FlowLog is one of describe-flow-logs.
type FlowLog struct {
	FlowLogID         string `json:"FlowLogId"`
	FlowLogStatus     string
	DeliverLogsStatus string
	ResourceID        string `json:"ResourceId"`
	TrafficType       string
	LogFormat         string
}

// PrefixList is one of describe-prefix-lists.
type PrefixList struct {
	PrefixListID string `json:"PrefixListId"`
	Cidrs        []string

	ranges []netip.Prefix
}

// event is one of `aws logs filter-log-events`.
type event struct {
	Message string `json:"message"`
}

// command is what prints a member.
func command(member string) string {
	return map[string]string{
		"RouteTables":    "aws ec2 describe-route-tables",
		"NatGateways":    "aws ec2 describe-nat-gateways",
		"Addresses":      "aws ec2 describe-addresses",
		"SecurityGroups": "aws ec2 describe-security-groups",
		"NetworkAcls":    "aws ec2 describe-network-acls",
		"FlowLogs":       "aws ec2 describe-flow-logs",
		"PrefixLists":    "aws ec2 describe-prefix-lists",
		"events":         "aws logs filter-log-events",
	}[member]
}
