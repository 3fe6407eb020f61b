package llm

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/measured"
)

// BareProxyRole is the role in which this program is ServeBareProxy: BASE ROOTS follow.
const BareProxyRole = "bare-proxy"

// ServeBareProxy is what the gateway is measured beside: net/http/httputil's ReverseProxy
// to a provider at base, whose certificate is in the file roots, and nothing else. It
// says where it listens, answers "processor" as the measured daemon does, and ends
// with its standard input.
func ServeBareProxy(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("expected BASE ROOTS")
	}
	base, roots := args[0], args[1]
	to, err := url.Parse(base)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(roots)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		FlushInterval: -1, // each piece as it comes
		ErrorLog:      log.New(io.Discard, "", 0),
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: measured.Host}, MaxIdleConnsPerHost: llmConns, DisableCompression: true},
	}
	srv := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A provider may answer before the end of the body was seen here; the server
		// would then close it, and the proxy break off the answer.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		proxy.ServeHTTP(w, r)
	})}
	go func() { _ = srv.Serve(l) }()
	fmt.Fprintln(out, l.Addr())
	answers := json.NewEncoder(out)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if err := answers.Encode(measure.ProcessorTime()); err != nil {
			break
		}
	}
	return srv.Close()
}
