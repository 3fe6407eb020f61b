package workroot

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// netlink writes messages to the kernel's tables of addresses, routes and
// packets. It knows as much of that language as the network of a workspace takes.
type netlink struct {
	b   []byte
	seq uint32
}

// message adds a message of kind whose fixed part is head, and whose
// attributes fill adds.
func (n *netlink) message(kind uint16, flags uint16, head []byte, fill func()) {
	at := len(n.b)
	n.seq++
	n.b = binary.NativeEndian.AppendUint32(n.b, 0)
	n.b = binary.NativeEndian.AppendUint16(n.b, kind)
	n.b = binary.NativeEndian.AppendUint16(n.b, flags|unix.NLM_F_REQUEST)
	n.b = binary.NativeEndian.AppendUint32(n.b, n.seq)
	n.b = binary.NativeEndian.AppendUint32(n.b, 0)
	n.b = append(n.b, head...)
	if fill != nil {
		fill()
	}
	binary.NativeEndian.PutUint32(n.b[at:], uint32(len(n.b)-at))
}

// attr adds an attribute of bytes.
func (n *netlink) attr(kind uint16, value []byte) {
	n.b = binary.NativeEndian.AppendUint16(n.b, uint16(4+len(value)))
	n.b = binary.NativeEndian.AppendUint16(n.b, kind)
	n.b = append(n.b, value...)
	for len(n.b)%4 != 0 {
		n.b = append(n.b, 0)
	}
}

// text and number add a C string, and a number in network order, as nf_tables
// takes them.
func (n *netlink) text(kind uint16, s string) { n.attr(kind, append([]byte(s), 0)) }
func (n *netlink) number(kind uint16, v uint32) {
	n.attr(kind, binary.BigEndian.AppendUint32(nil, v))
}

// nest adds an attribute of attributes.
func (n *netlink) nest(kind uint16, fill func()) {
	at := len(n.b)
	n.attr(kind|unix.NLA_F_NESTED, nil)
	fill()
	binary.NativeEndian.PutUint16(n.b[at:], uint16(len(n.b)-at))
}

// send hands the messages over, of which the last that asked for one is
// answered, and returns the first error that the kernel answers.
func (n *netlink) send(protocol int) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, n.b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	var b [8192]byte
	// The kernel has answered before it returns from the call that asked.
	size, _, err := unix.Recvfrom(fd, b[:], unix.MSG_DONTWAIT)
	if err != nil {
		return fmt.Errorf("hear what the kernel answers: %w", err)
	}
	return answerOf(b[:size])
}

// answerOf reads one answer: an errno, which is 0 for a yes.
func answerOf(b []byte) error {
	if len(b) < 20 || binary.NativeEndian.Uint16(b[4:]) != unix.NLMSG_ERROR {
		return errors.New("the kernel answered what it should not")
	}
	if code := int32(binary.NativeEndian.Uint32(b[16:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

// everyAddressHere delivers what goes to any IPv4 address in this process's
// network to the network itself: `ip route add local default dev lo`.
func everyAddressHere() error {
	n := &netlink{}
	head := make([]byte, 12) // struct rtmsg
	head[0], head[4], head[5], head[6], head[7] = unix.AF_INET, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL
	n.message(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK, head, func() {
		n.attr(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, loopback))
	})
	return n.send(unix.NETLINK_ROUTE)
}

// anAddress gives the loopback an address that is no loopback's: without one the
// C library takes a machine for one that has no network, and asks for no names.
func anAddress(addr [4]byte) error {
	n := &netlink{}
	head := binary.NativeEndian.AppendUint32([]byte{unix.AF_INET, 32, 0, unix.RT_SCOPE_HOST}, loopback) // struct ifaddrmsg
	n.message(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK, head, func() {
		n.attr(unix.IFA_LOCAL, addr[:])
		n.attr(unix.IFA_ADDRESS, addr[:])
	})
	return n.send(unix.NETLINK_ROUTE)
}

// loopback is the number of the loopback interface, in every network.
const loopback = 1

// Of the attributes of nf_tables' tproxy, which the system package does not name.
const (
	tproxyFamily = 1
	tproxyPort   = 3
)

// beforeRoutes is the priority -150, at which what a packet is for is changed
// before it is routed.
const beforeRoutes = 1<<32 - 150

// everyPortTo leads each TCP connection to an address that is not 127.0.0.0/8 to
// the socket that listens on port of the loopback, as which it must have been
// made transparent: who accepts there finds as his own address the one that was
// meant. No packet is changed, and nothing is kept of a connection.
func everyPortTo(port uint16) error {
	const table, chain = "holdfast", "connect"
	n := &netlink{}
	batch := []byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, unix.NFNL_SUBSYS_NFTABLES}
	head := []byte{unix.AF_INET, unix.NFNETLINK_V0, 0, 0}
	kind := func(m uint16) uint16 { return unix.NFNL_SUBSYS_NFTABLES<<8 | m }
	n.message(unix.NFNL_MSG_BATCH_BEGIN, 0, batch, nil)
	n.message(kind(unix.NFT_MSG_NEWTABLE), unix.NLM_F_CREATE|unix.NLM_F_EXCL, head, func() { n.text(unix.NFTA_TABLE_NAME, table) })
	n.message(kind(unix.NFT_MSG_NEWCHAIN), unix.NLM_F_CREATE|unix.NLM_F_EXCL, head, func() {
		n.text(unix.NFTA_CHAIN_TABLE, table)
		n.text(unix.NFTA_CHAIN_NAME, chain)
		n.nest(unix.NFTA_CHAIN_HOOK, func() {
			n.number(unix.NFTA_HOOK_HOOKNUM, unix.NF_INET_PRE_ROUTING)
			n.number(unix.NFTA_HOOK_PRIORITY, beforeRoutes)
		})
		n.text(unix.NFTA_CHAIN_TYPE, "filter")
	})
	n.message(kind(unix.NFT_MSG_NEWRULE), unix.NLM_F_CREATE|unix.NLM_F_APPEND|unix.NLM_F_ACK, head, func() {
		n.text(unix.NFTA_RULE_TABLE, table)
		n.text(unix.NFTA_RULE_CHAIN, chain)
		n.nest(unix.NFTA_RULE_EXPRESSIONS, func() { n.toPort(port) })
	})
	n.message(unix.NFNL_MSG_BATCH_END, 0, batch, nil)
	return n.send(unix.NETLINK_NETFILTER)
}

// toPort are the expressions of the rule: meta l4proto tcp, ip daddr not in
// 127.0.0.0/8, tproxy to port.
func (n *netlink) toPort(port uint16) {
	const register = unix.NFT_REG_1
	value := func(attr uint16, b ...byte) { n.nest(attr, func() { n.attr(unix.NFTA_DATA_VALUE, b) }) }
	compare := func(how uint32, b byte) func() {
		return func() {
			n.number(unix.NFTA_CMP_SREG, register)
			n.number(unix.NFTA_CMP_OP, how)
			value(unix.NFTA_CMP_DATA, b)
		}
	}
	for _, e := range []struct {
		name string
		fill func()
	}{
		{"meta", func() {
			n.number(unix.NFTA_META_DREG, register)
			n.number(unix.NFTA_META_KEY, unix.NFT_META_L4PROTO)
		}},
		{"cmp", compare(unix.NFT_CMP_EQ, unix.IPPROTO_TCP)},
		{"payload", func() {
			n.number(unix.NFTA_PAYLOAD_DREG, register)
			n.number(unix.NFTA_PAYLOAD_BASE, unix.NFT_PAYLOAD_NETWORK_HEADER)
			n.number(unix.NFTA_PAYLOAD_OFFSET, 16) // the destination's first byte
			n.number(unix.NFTA_PAYLOAD_LEN, 1)
		}},
		{"cmp", compare(unix.NFT_CMP_NEQ, 127)},
		{"immediate", func() {
			n.number(unix.NFTA_IMMEDIATE_DREG, register)
			value(unix.NFTA_IMMEDIATE_DATA, byte(port>>8), byte(port))
		}},
		{"tproxy", func() {
			n.number(tproxyFamily, unix.NFPROTO_IPV4)
			n.number(tproxyPort, register)
		}},
	} {
		n.nest(unix.NFTA_LIST_ELEM, func() {
			n.text(unix.NFTA_EXPR_NAME, e.name)
			n.nest(unix.NFTA_EXPR_DATA, e.fill)
		})
	}
}
