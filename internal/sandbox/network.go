package sandbox

import (
	"bytes"
	"encoding/pem"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast"
)

// Network is what a workspace finds beyond its loopback: Holdfast, and nothing
// else, behind every IPv4 address. There is no interface by which anything could
// leave; who connects comes to a socket that was made in the workspace and that
// Holdfast accepts on from outside.
type Network struct {
	// Authority is one certificate or more, PEM, at most 64 KB, which the clients
	// inside trust beside the host's roots.
	Authority []byte
	// Ports are heard on every address beside 80 and 443, at most 64. Only to
	// them, and to the proxy's, can a program connect where the kernel cannot
	// lead every port to Holdfast.
	Ports []uint16
	// Models are the providers of models that Holdfast speaks for, such as
	// "anthropic": their clients inside find it at /llm/ and the name on the proxy's
	// own port.
	Models []string
}

// Places of a workspace's network.
const (
	// ProxyPort is where, on 127.0.0.1, programs that know of a proxy find it.
	ProxyPort = 7412
	// NamePort is where, on every address, names are asked for, by UDP.
	NamePort = 53
	// TrustFile is where the certificates stand that clients inside trust.
	TrustFile = "/etc/holdfast.crt"

	maxAuthority = 64 << 10
	maxPorts     = 64
)

// NamedAddress is the address that every name has inside, 198.18.0.1: one of those
// that are given to nobody (RFC 2544).
func NamedAddress() [4]byte { return [4]byte{198, 18, 0, 1} }

// webPorts are heard in every network.
var webPorts = []uint16{443, 80}

// Heard are the TCP ports that are heard on every address, each once. The proxy's
// own is not among them: it is one socket's alone.
func (n *Network) Heard() []uint16 {
	list := slices.Clone(webPorts)
	for _, p := range n.Ports {
		if p != ProxyPort && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// checkNetwork refuses what would not be a network of its own. One without an
// authority is none: its clients could trust nobody.
func checkNetwork(w *Workspace) error {
	n := w.Network
	if n == nil {
		return nil
	}
	if len(n.Authority) > maxAuthority || !certificates(n.Authority) {
		return refuse(holdfast.KindProtocol, "give certificates as PEM, of at most 64 KB", "the authority of the network is not one (%d bytes)", len(n.Authority))
	}
	if len(n.Ports) > maxPorts {
		return refuse(holdfast.KindProtocol, "name at most 64; the others are reached through the proxy", "the network has %d ports", len(n.Ports))
	}
	if slices.Contains(n.Ports, 0) {
		return refuse(holdfast.KindProtocol, "name ports from 1 to 65535", "the network has a port that cannot be heard")
	}
	return nil
}

// certificates says whether b is certificates, PEM, and nothing else.
func certificates(b []byte) bool {
	n := 0
	for len(bytes.TrimSpace(b)) > 0 {
		block, rest := pem.Decode(b)
		if block == nil || block.Type != "CERTIFICATE" || !bytes.HasPrefix(bytes.TrimSpace(b), []byte("-----BEGIN")) {
			return false
		}
		b, n = rest, n+1
	}
	return n > 0
}

// NetworkVariables are what the environment of a program in such a network says:
// where the proxy is, and whom to trust. Clients that heed none of them come to
// Holdfast all the same, and find the certificates where they usually are.
func NetworkVariables() map[string]string {
	const proxy, direct = "http://127.0.0.1:7412", "localhost,127.0.0.1,::1"
	env := map[string]string{"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "http_proxy": proxy, "https_proxy": proxy,
		"NO_PROXY": direct, "no_proxy": direct, "NODE_USE_ENV_PROXY": "1"}
	for _, name := range []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
		"npm_config_cafile", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "DENO_CERT"} {
		env[name] = TrustFile
	}
	return env
}

// ModelVariables say to the clients of models where Holdfast speaks for their
// providers, and give them what they demand for a key: who asks is known by the
// network, and the provider's own is added on the way out. A variable that given has
// stands, and so does a key by another name.
func (n *Network) ModelVariables(given map[string]string) map[string]string {
	at := "http://127.0.0.1:" + strconv.Itoa(ProxyPort) + "/llm/"
	env := map[string]string{}
	for _, m := range n.Models {
		switch m {
		case "anthropic":
			env["ANTHROPIC_BASE_URL"] = at + m
			if given["ANTHROPIC_API_KEY"] == "" {
				env["ANTHROPIC_AUTH_TOKEN"] = "holdfast"
			}
		case "openai":
			env["OPENAI_BASE_URL"], env["OPENAI_API_KEY"] = at+m+"/v1", "holdfast"
		}
	}
	for name := range env {
		if _, stands := given[name]; stands {
			delete(env, name)
		}
	}
	return env
}
