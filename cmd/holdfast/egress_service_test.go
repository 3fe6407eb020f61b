package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// egressService is a service over TLS for scripts: egressservice DIR. Its
// certificate is for example.com and signs itself; DIR gets roots.pem and, once it
// listens, service.port. It says what came to it, and an address of somebody; at
// /v1/messages it is a model.
func egressService() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		key := "wrong"
		if r.Header.Get("X-Api-Key") == "key-of-the-service-0123456789" {
			key = "right"
		}
		if r.URL.Path == "/v1/messages" { // a model's answer, which repeats the last message
			var q struct{ Messages []struct{ Content string } }
			_ = json.Unmarshal(b, &q)
			said, _ := json.Marshal("the key is " + key + ": " + q.Messages[len(q.Messages)-1].Content)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x",`+
				`"content":[{"type":"text","text":%s}],"stop_reason":"end_turn",`+
				`"usage":{"input_tokens":9,"output_tokens":3}}`, said)
			return
		}
		fmt.Fprintf(w, "key: %s\nauthorization: %s\nbody: %s\nfrom: bob@example.com\n", key, r.Header.Get("Authorization"), b)
	}))
	defer s.Close()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err == nil {
		err = os.WriteFile(filepath.Join(os.Args[1], "roots.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(os.Args[1], "port.tmp"), []byte(port), 0o600)
	}
	if err == nil {
		err = os.Rename(filepath.Join(os.Args[1], "port.tmp"), filepath.Join(os.Args[1], "service.port"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	<-ctx.Done()
}
