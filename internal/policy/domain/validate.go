package domain

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/holdfast-dev/holdfast"
)

// Bounds of the lists of one row.
const (
	mostPorts     = 64
	mostMethods   = 32
	mostPaths     = 256
	mostAddresses = 16
)

// rowName is a row's Name, read.
type rowName struct {
	host Host
	wild bool
	port uint16 // 0 where the name has none
}

func (n rowName) String() string {
	name := n.host.String()
	if n.port != 0 {
		name = Origin{Host: n.host, Port: n.port}.Authority()
	}
	if n.wild {
		return "*." + name
	}
	return name
}

// mistake is err as a letter to whoever wrote the row.
func mistake(d *Domain, err *holdfast.Error) error {
	where := ""
	if d.Source != "" {
		where = d.Source + ": "
	}
	return &holdfast.Error{Kind: holdfast.KindUsage, Rule: d.Source, Why: where + "the domain " + quote(d.Name) + " " + err.Why, Hint: err.Hint}
}

// checked is a copy of d with its name canonical and its defaults filled in. An
// error's Why goes on a sentence that starts with the row's name.
func checked(d *Domain) (*Domain, rowName, *holdfast.Error) {
	row := *d
	row.Ports, row.Methods, row.Paths, row.Addresses = slices.Clone(d.Ports), slices.Clone(d.Methods), slices.Clone(d.Paths), slices.Clone(d.Addresses)
	if d.Credential != nil {
		own := *d.Credential
		row.Credential = &own
	}
	if d.Risk != nil {
		own := *d.Risk
		row.Risk = &own
	}
	n, err := readName(d.Name)
	if err != nil {
		return nil, n, err
	}
	row.Name = n.String()
	for _, check := range []func(*Domain, rowName) *holdfast.Error{checkWords, checkOpaque, checkParts, checkPorts, checkMethods, checkBounds, checkModels, checkUnmetered, checkAddresses, checkCredential} {
		if err := check(&row, n); err != nil {
			return nil, n, err
		}
	}
	return &row, n, nil
}

func wrong(why, hint string) *holdfast.Error { return &holdfast.Error{Why: why, Hint: hint} }

// readName reads a row's name.
func readName(s string) (rowName, *holdfast.Error) {
	if strings.Contains(s, "/") {
		return rowName{}, wrong("holds a slash", "write the host alone, such as api.example.com; paths stand in paths")
	}
	if addr, err := netip.ParseAddr(s); err == nil && addr.Is6() {
		s = "[" + s + "]"
	}
	rest, wild := strings.CutPrefix(s, "*.")
	if strings.Contains(rest, "*") {
		return rowName{}, wrong("has a star where none may be", "a star stands for the first labels of a name, like *.example.com; nothing stands for every host")
	}
	h, port, _, err := parseAuthority(rest)
	if err != nil {
		return rowName{}, wrong("cannot be read: "+err.Why, err.Hint)
	}
	if !wild {
		return rowName{host: h, port: port}, nil
	}
	if h.IsAddr() {
		return rowName{}, wrong("has a star before an address", "list each address by itself")
	}
	if suffix, _ := publicsuffix.PublicSuffix(h.name); len(suffix) >= len(h.name) {
		return rowName{}, wrong("covers names of everybody who registers one under "+h.name, "list the names that are meant, or a wildcard further down such as *.example."+h.name)
	}
	return rowName{host: h, port: port, wild: true}, nil
}

// checkWords holds the words to their lists and fills in the empty ones.
func checkWords(d *Domain, _ rowName) *holdfast.Error {
	if d.Type == "" {
		d.Type = API
	}
	if d.Unit == "" {
		d.Unit = map[string]Unit{LLM: Tokens, Email: Messages, Messaging: Messages}[d.Type]
	}
	if d.Unit == "" {
		d.Unit = Calls
	}
	if d.Inspect == "" {
		d.Inspect = Terminate
	}
	switch {
	case !slices.Contains([]string{LLM, Email, Messaging, API, Package, Git}, d.Type):
		return wrong("has the type "+quote(d.Type), "a type is llm, email, messaging, api, package or git")
	case !slices.Contains([]Unit{Calls, Messages, Bytes, Tokens}, d.Unit):
		return wrong("counts "+quote(string(d.Unit)), "a unit is calls, messages, bytes or token_count")
	case d.Inspect != Terminate && d.Inspect != Opaque:
		return wrong("is inspected "+quote(string(d.Inspect)), "write terminate or opaque")
	case d.Risk != nil && (*d.Risk < holdfast.Prohibited || *d.Risk > holdfast.Low):
		return wrong("has no known risk", "a risk is LOW, MEDIUM, HIGH or PROHIBITED")
	}
	return checkRedaction(d)
}

// checkRedaction checks the words for redaction: placeholders are for texts of models.
func checkRedaction(d *Domain) *holdfast.Error {
	both := []struct{ has, other Redaction }{{d.Request, Placeholder}, {d.Response, Restore}}
	for _, r := range both {
		if r.has == r.other && d.Type == LLM || slices.Contains([]Redaction{"", Mask, Refuse, Off}, r.has) {
			continue
		}
		hint := "write mask, refuse or off"
		if d.Type == LLM {
			hint = "write " + string(r.other) + ", mask, refuse or off"
		}
		return wrong("has the redaction "+quote(string(r.has)), hint)
	}
	if !slices.Contains([]Redaction{"", Mask, Refuse, Pass}, d.Personal) {
		return wrong("has the redaction "+quote(string(d.Personal))+" of personal data", "write mask, refuse or pass")
	}
	replaces := d.Type == LLM && (d.Request == "" || d.Request == Placeholder)
	if d.Personal != "" && replaces {
		return wrong("has `personal` next to placeholders, which replace personal data as well",
			"leave `personal` out, or write `request: mask` or `refuse`")
	}
	if d.Personal != "" && d.Request == Off && d.Response == Off {
		return wrong("has `personal`, and searches in neither direction",
			"leave `personal` out, or write mask or refuse for `request` or `response`")
	}
	switch {
	case d.Detector == "":
	case d.Type == LLM && !replaces:
		return wrong("has a detector, and does not replace what it finds",
			"a row of models needs `redact: {request: placeholder}` for it, or leave `detector` out")
	case d.Personal == Pass || d.Request == Off && d.Response == Off:
		return wrong("has a detector, and lets pass what it finds",
			"leave `detector` out, or write `personal: mask` or `refuse`, and `request` or `response` other than off")
	}
	if d.Response == Restore && d.Request != "" && d.Request != Placeholder {
		return wrong("restores what its requests do not replace",
			"write `redact: {request: placeholder}`, or leave `response` out")
	}
	return nil
}

// checkOpaque refuses what cannot be held inside a tunnel that nobody looks
// into, and fills in what is true of it.
func checkOpaque(d *Domain, _ rowName) *holdfast.Error {
	if d.Inspect != Opaque {
		if d.Request == "" {
			d.Request = Refuse
			if d.Type == LLM {
				d.Request = Placeholder
			}
		}
		if d.Response == "" {
			d.Response = Mask
			if d.Request == Placeholder {
				d.Response = Restore
			}
		}
		if d.Personal == "" && d.Request != Placeholder && (d.Request != Off || d.Response != Off) {
			d.Personal = Mask
		}
		return nil
	}
	for _, c := range []struct {
		set  bool
		what string
	}{
		{d.Plain, "plain http"}, {len(d.Methods) > 0, "methods"}, {len(d.Paths) > 0, "paths"}, {d.WebSocket, "websocket"},
		{d.Binary, "binary"}, {d.Credential != nil, "a credential"}, {d.AgentCredentials, "agent credentials"}, {d.Roots != "", "roots"},
		{d.Request != "" && d.Request != Off || d.Response != "" && d.Response != Off || d.Personal != "", "redaction"},
		{d.Detector != "", "a detector"},
	} {
		if c.set {
			return wrong("is opaque and names "+c.what, "nobody looks into an opaque tunnel: leave out one of the two")
		}
	}
	d.Request, d.Response = Off, Off
	return nil
}

func checkPorts(d *Domain, n rowName) *holdfast.Error {
	switch {
	case n.port != 0 && len(d.Ports) > 0:
		return wrong("names a port, and has a list of them", "write the ports in one place")
	case n.port != 0:
		d.Ports = []uint16{n.port}
	case len(d.Ports) > mostPorts:
		return wrong("has more than "+strconv.Itoa(mostPorts)+" ports", "")
	case len(d.Ports) == 0 && d.Plain:
		d.Ports = []uint16{443, 80}
	case len(d.Ports) == 0:
		d.Ports = []uint16{443}
	case slices.Contains(d.Ports, 0):
		return wrong("has the port 0", "a port is a number from 1 to 65535")
	}
	return nil
}

func checkMethods(d *Domain, _ rowName) *holdfast.Error {
	if len(d.Methods) > mostMethods {
		return wrong("has more than "+strconv.Itoa(mostMethods)+" methods", "")
	}
	for _, m := range d.Methods {
		switch {
		case m == "" || strings.Trim(m, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_") != "" || len(m) > 32:
			return wrong("has the method "+quote(m), "methods are words in upper case, such as GET")
		case m == "CONNECT" || m == "TRACE":
			return wrong("has the method "+m+", which is never allowed", "CONNECT would open a tunnel through the tunnel, and TRACE shows what the proxy added")
		}
	}
	if len(d.Methods) == 0 && d.Inspect != Opaque {
		d.Methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	}
	if d.WebSocket && !slices.Contains(d.Methods, "GET") {
		return wrong("permits WebSocket and not GET, which opens one", "add GET to its methods")
	}
	if len(d.Paths) > mostPaths {
		return wrong("has more than "+strconv.Itoa(mostPaths)+" paths", "use * and ** for components")
	}
	if slices.ContainsFunc(d.Paths, func(p PathPattern) bool { return p.text == "" }) {
		return wrong("has an empty path", "leave out paths where every path is meant")
	}
	return nil
}

func checkBounds(d *Domain, _ rowName) *holdfast.Error {
	if d.MaxRequest == 0 {
		d.MaxRequest = DefaultMaxRequest
		if d.Type == LLM {
			d.MaxRequest = DefaultPrompt
		}
	}
	if d.MaxResponse == 0 {
		d.MaxResponse = DefaultMaxResponse
	}
	if d.FirstByte == 0 {
		d.FirstByte = DefaultFirstByte
		if d.Type == LLM {
			d.FirstByte = DefaultThinkTime
		}
	}
	switch {
	case d.MaxRequest < 0 || d.MaxRequest > MostRequest:
		return wrong("bounds requests at "+strconv.FormatInt(d.MaxRequest, 10)+" bytes", "max_request is at most "+strconv.FormatInt(MostRequest>>20, 10)+"MB")
	case d.MaxResponse < 0 || d.MaxResponse > MostResponse:
		return wrong("bounds responses at "+strconv.FormatInt(d.MaxResponse, 10)+" bytes", "max_response is at most "+strconv.FormatInt(MostResponse>>30, 10)+"GB")
	case d.FirstByte < 0 || d.FirstByte > MostFirstByte:
		return wrong("waits "+d.FirstByte.String()+" for a first byte", "the wait is at most "+MostFirstByte.String())
	case d.Idle < 0 || d.Idle > MostIdle:
		return wrong("waits "+d.Idle.String()+" for the next byte", "the wait is at most "+MostIdle.String())
	case d.Rate < 0 || d.Rate > MostRate:
		return wrong("has a rate of "+strconv.Itoa(d.Rate), "a rate is of requests in any 60 s, at most "+strconv.Itoa(MostRate)+"; 0 is none of its own")
	}
	return nil
}

// checkAddresses wants whoever opens the way to a private address to name it,
// and opens no way to what is nobody's service.
func checkAddresses(d *Domain, n rowName) *holdfast.Error {
	if len(d.Addresses) > mostAddresses {
		return wrong("has more than "+strconv.Itoa(mostAddresses)+" addresses", "")
	}
	for i, a := range d.Addresses {
		d.Addresses[i] = a.Unmap()
		if what, never := classOf(a.Unmap()); never {
			return wrong("has the address "+a.String()+", which is "+what, "no row opens the way there")
		}
	}
	if !n.host.IsAddr() {
		if !strings.Contains(n.host.name, ".") && len(d.Addresses) == 0 {
			return wrong("has one label, and so is a name of this machine's own network", "add its address under addresses, or write the whole name")
		}
		return nil
	}
	what, never := classOf(n.host.addr)
	own := slices.Equal(d.Addresses, []netip.Addr{n.host.addr})
	switch {
	case never:
		return wrong("is "+what, "no row opens the way there")
	case len(d.Addresses) > 0 && !own:
		return wrong("is an address, and has others under addresses", "leave addresses out, or repeat the same one")
	case what != "" && !own:
		return wrong("is "+what, "repeat the address under addresses to say that it is meant")
	}
	return nil
}

func checkCredential(d *Domain, _ rowName) *holdfast.Error {
	c := d.Credential
	if c == nil {
		return nil
	}
	name := strings.ToLower(c.Header)
	switch {
	case d.Plain:
		return wrong("has a credential and permits plain http, which would show it", "leave out one of the two")
	case d.AgentCredentials:
		return wrong("has a credential and lets the agent's own pass", "leave out one of the two")
	case d.Response == Off:
		return wrong("has a credential and does not look into answers, so that one that repeats it shows it", "leave out one of the two")
	case name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || len(name) > 128:
		return wrong("has a credential in the header "+quote(c.Header), "a header's name is letters, digits and hyphens, such as Authorization")
	case slices.Contains([]string{"host", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect",
		"content-length", "content-type", "content-encoding", "accept-encoding", "date", "via", "alt-svc"}, name) || strings.HasPrefix(name, "proxy-") || strings.HasPrefix(name, "sec-websocket"):
		return wrong("has a credential in the header "+quote(c.Header)+", which belongs to the connection", "use Authorization, or the header that the service names")
	case strings.ContainsFunc(c.Prefix, func(r rune) bool { return r < ' ' || r > '~' }) || len(c.Prefix) > 64:
		return wrong("has a credential with the prefix "+quote(c.Prefix), "a prefix is a word and a space, such as \"Bearer \"")
	case c.Source == "":
		return wrong("has a credential without a source", "name where its value comes from; the value itself never stands here")
	}
	return nil
}
