package domain

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Ask is one request as far as the allowlist is concerned.
type Ask struct {
	Origin Origin
	// Method is as it was sent; methods are case-sensitive. CONNECT asks for an
	// opaque tunnel, and its Target is empty.
	Method string
	// Target is what ParseURL returns: path and query, escaped.
	Target string
	// Upgrade is the Upgrade header, empty where there is none.
	Upgrade string
}

// ReadsOnly says whether the request only reads: GET or HEAD, and no upgrade.
func (a Ask) ReadsOnly() bool {
	return (a.Method == "GET" || a.Method == "HEAD") && a.Upgrade == ""
}

// Decide is Find, and then method, path and upgrade. CONNECT is allowed on an
// opaque row, and nothing else is; elsewhere it is refused. A row with Paths
// refuses every path that two servers could take for different ones. The error
// is a DomainBlockedError of K2 with a hint, or before that a ValidationError of
// K1 where the target is no path and query.
func (t *Table) Decide(a Ask) (*Domain, *holdfast.Error) {
	if a.Method != "CONNECT" {
		if err := checkTarget(a.Target); err != nil {
			return nil, err
		}
	}
	d, err := t.Find(a.Origin)
	if err == nil {
		err = d.permits(a)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// permits judges what Find does not see.
func (d *Domain) permits(a Ask) *holdfast.Error {
	switch connect := a.Method == "CONNECT"; {
	case connect && (a.Target != "" || a.Upgrade != ""):
		return malformed("CONNECT has a path or an upgrade", "name host and port alone")
	case connect && d.Inspect != Opaque:
		return blocked("CONNECT to "+d.Name+" asks for a tunnel that nobody looks into", "send the request itself; the proxy speaks TLS for both sides")
	case connect:
		return nil
	case d.Inspect == Opaque:
		return blocked(d.Name+" is an opaque tunnel, and this is a request", "reach it by CONNECT, or list it without inspect: opaque")
	case !slices.Contains(d.Methods, a.Method):
		return blocked("the method "+quote(a.Method)+" is not allowed for "+d.Name, "its methods are "+strings.Join(d.Methods, ", "))
	}
	if err := d.permitsPath(a.Target); err != nil {
		return err
	}
	return d.permitsUpgrade(a)
}

func (d *Domain) permitsPath(target string) *holdfast.Error {
	if len(d.Paths) == 0 {
		return nil
	}
	var room [16]string
	parts, err := components(target, room[:0])
	if err != nil {
		return err
	}
	if anyMatches(d.Paths, parts) {
		return nil
	}
	path, _, _ := strings.Cut(target, "?")
	return blocked("the path "+quote(path)+" is not allowed for "+d.Name, "its paths are "+d.somePaths())
}

// somePaths are the first paths of d, for people.
func (d *Domain) somePaths() string {
	const most = 5
	var words []string
	for _, p := range d.Paths[:min(len(d.Paths), most)] {
		words = append(words, p.text)
	}
	if len(d.Paths) > most {
		words = append(words, "...")
	}
	return strings.Join(words, ", ")
}

func (d *Domain) permitsUpgrade(a Ask) *holdfast.Error {
	switch {
	case a.Upgrade == "":
		return nil
	case !strings.EqualFold(a.Upgrade, "websocket"):
		return blocked("the upgrade to "+quote(a.Upgrade)+" is not allowed anywhere", "leave out the Upgrade header; HTTP/2 is agreed on within TLS")
	case !d.WebSocket:
		return blocked("WebSocket is not allowed for "+d.Name, "its row must say websocket: true")
	case a.Method != "GET":
		return blocked("a WebSocket is opened by GET, and this is "+quote(a.Method), "")
	}
	return nil
}
