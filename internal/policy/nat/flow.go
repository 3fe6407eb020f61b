package nat

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// The default format of a flow log's lines, version 2.
const defaultFormat = "${version} ${account-id} ${interface-id} ${srcaddr} ${dstaddr} ${srcport} ${dstport} ${protocol} ${packets} ${bytes} ${start} ${end} ${action} ${log-status}"

// record is a line of a flow log: packets of one flow at one interface, in one
// direction, within some seconds.
type record struct {
	eni              string
	src, dst         netip.Addr
	srcPort, dstPort int
	protocol         int
	start            int64 // Unix seconds of the first packet
	action           string
	status           string // OK, NODATA or SKIPDATA
	flags            int    // of TCP, or 0 where the format has none
}

// format is where the fields stand in a line.
type format struct {
	count int
	at    map[string]int
}

// needed are the fields without which nothing can be said of a line.
func needed() []string {
	return []string{"interface-id", "srcaddr", "dstaddr", "srcport", "dstport", "protocol", "start", "action", "log-status"}
}

// formatOf reads a format: "${srcaddr} ${dstaddr} ...", or the names alone, as
// the first line of a file has them.
func formatOf(text string) (*format, error) {
	f := &format{at: map[string]int{}}
	for _, name := range strings.Fields(text) {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "${"), "}")
		if _, twice := f.at[name]; twice {
			return nil, fmt.Errorf("the field %s stands twice", clip(name))
		}
		f.at[name] = f.count
		f.count++
	}
	for _, name := range needed() {
		if _, there := f.at[name]; !there {
			return nil, fmt.Errorf("the format lacks the field %s", name)
		}
	}
	return f, nil
}

// isHeader says whether a line is the names of the fields.
func isHeader(line string) bool {
	return strings.Contains(line, "srcaddr") && strings.Contains(line, "interface-id")
}

// parse reads a line. What has no flow in it (NODATA, SKIPDATA) has no addresses.
func (f *format) parse(line string) (r record, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != f.count {
		return r, false
	}
	get := func(name string) string { return fields[f.at[name]] }
	r.eni, r.action, r.status = get("interface-id"), get("action"), get("log-status")
	if r.status == "NODATA" || r.status == "SKIPDATA" {
		return r, true
	}
	var errs [7]error
	r.src, errs[0] = netip.ParseAddr(get("srcaddr"))
	r.dst, errs[1] = netip.ParseAddr(get("dstaddr"))
	r.srcPort, errs[2] = number(get("srcport"), 65535)
	r.dstPort, errs[3] = number(get("dstport"), 65535)
	r.protocol, errs[4] = number(get("protocol"), 255)
	var start int
	start, errs[5] = number(get("start"), 1<<40)
	r.start = int64(start)
	if at, has := f.at["tcp-flags"]; has && fields[at] != "-" {
		r.flags, errs[6] = number(fields[at], 255)
	}
	for _, err := range errs {
		if err != nil {
			return r, false
		}
	}
	return r, r.status == "OK" && (r.action == "ACCEPT" || r.action == "REJECT") && r.src.Zone() == "" && r.dst.Zone() == "" && !r.src.Is4In6() && !r.dst.Is4In6()
}

func number(s string, most int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%q is no such number", clip(s))
	}
	return n, nil
}

// format is what the flow logs of the network are written in. Where they differ
// nobody knows which line is of which.
func (n *network) format() (*format, error) {
	text := ""
	for _, l := range n.FlowLogs {
		f := or(l.LogFormat, defaultFormat)
		if !n.logsHere(l) {
			continue
		}
		if text != "" && f != text {
			return nil, fmt.Errorf("two flow logs of the network have two formats")
		}
		text = f
	}
	return formatOf(or(text, defaultFormat))
}

// logsHere says whether a flow log records something of this network.
func (n *network) logsHere(l FlowLog) bool {
	_, ours := slices.BinarySearch(n.subnets, l.ResourceID)
	return ours || l.ResourceID == n.id
}
