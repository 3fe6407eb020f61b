package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/executorpb"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// walls lets code run where there is no right to control groups.
const walls = `boundaries:
  - {boundary: "exec/*", risk: MEDIUM, permissions: ["exec:run"], walls: [pid, net, mount, uts, ipc, user, seccomp, rights, scratch]}
`

// withCode is a configuration with the MCP server that runs code.
const withCode = "version: 1\nlisten:\n  pages: 127.0.0.1:0\n" + walls + "mcp:\n  servers:\n    code: {sandbox: true}\n"

// executorUp is a daemon with a code executor, and a client of it.
func executorUp(t *testing.T, section string, creds credentials.TransportCredentials) (*Daemon, executorpb.CodeExecutorClient) {
	t.Helper()
	d, _, down := up(t, quiet+walls+"sandbox:\n  executor: {listen: '127.0.0.1:0'"+section, shareRuntimes)
	t.Cleanup(down)
	return d, executorClient(t, d, creds)
}

func executorClient(t *testing.T, d *Daemon, creds credentials.TransportCredentials) executorpb.CodeExecutorClient {
	t.Helper()
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	conn, err := grpc.NewClient(d.executorAt(), grpc.WithTransportCredentials(creds), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256<<20), grpc.MaxCallSendMsgSize(256<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return executorpb.NewCodeExecutorClient(conn)
}

// as is a context with the token of an agent.
func (d *Daemon) as(t *testing.T, agent string) context.Context {
	t.Helper()
	tok, err := d.giveToken(api.TokenAsk{Agent: agent, Session: agent + "-1", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+tok.Token)
}

func python(code string) *executorpb.ExecutionRequest {
	return &executorpb.ExecutionRequest{RequestId: "r-1", Language: "python3", Code: code, Timeout: durationpb.New(20 * time.Second)}
}

// TestExecutor shows on one daemon what the code executor and the tool for models do.
func TestExecutor(t *testing.T) {
	d, sock, down := up(t, withCode+"sandbox:\n  executor: {listen: '127.0.0.1:0'}\n", shareRuntimes)
	t.Cleanup(down)
	d.repeats()
	c := executorClient(t, d, nil)
	at, _ := d.pagesAt()
	t.Run("runs", func(t *testing.T) { checkExecutorRuns(t, d, c) })
	t.Run("refuses", func(t *testing.T) { checkExecutorRefuses(t, d, c) })
	t.Run("caller_goes", func(t *testing.T) { checkCallerGoes(t, d, c) })
	t.Run("rubbish", func(t *testing.T) { checkExecutorRubbish(t, d, c) })
	t.Run("idle_connections", func(t *testing.T) { checkIdleConnections(t, d, c) })
	t.Run("MCP", func(t *testing.T) { checkCodeOverMCP(t, d, sock, at) })
	t.Run("MCP_escape", func(t *testing.T) { checkEscapeOverMCP(t, sock, at) })
	t.Run("MCP_stopped", func(t *testing.T) { checkStopOverMCP(t, d, sock, at) })
	t.Run("halts", func(t *testing.T) { checkExecutorHalts(t, d, c) })
}

// checkExecutorRuns: 003 2.1, acceptance criterion 1, and a call that is not
// allowed: what ran is a result, however it ended, and a crossing of its own.
func checkExecutorRuns(t *testing.T, d *Daemon, c executorpb.CodeExecutorClient) {
	ctx := d.as(t, "eve")
	r := python("import os, sys\nprint('hello', os.environ['MODE'], open('in.txt').read())\nopen('out.txt','w').write('made')\nsys.exit(3)")
	r.Environment, r.Files = map[string]string{"MODE": "fast"}, map[string][]byte{"in.txt": []byte("given")}
	got, err := c.Execute(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	if got.RequestId != "r-1" || got.Stdout != "hello fast given\n" || got.ExitCode != 3 || string(got.OutputFiles["out.txt"]) != "made" || got.State != "COMPLETED" ||
		got.Crossing == "" || got.WallTime.AsDuration() <= 0 || !got.EndTime.AsTime().After(got.StartTime.AsTime()) || len(got.Posture.Up) < 9 || got.Posture.Unbounded["io"] == "" || len(got.Stages) == 0 || got.Path != "cold" {
		t.Errorf("%v", got)
	}
	if n := d.boundaryEntries(t, "exec/python3"); n != 1 {
		t.Errorf("%d entries in the ledger", n)
	}
	got, err = c.Execute(ctx, python("import os\nos.execv('/bin/true', ['true'])"))
	if err != nil || got.ExitCode != 159 || got.State != "SYSCALL_BLOCKED" || got.Syscall.GetName() != "execve" || got.ErrorMessage == "" {
		t.Errorf("%v, %v", got, err)
	}
	// It was an attempt to get out: the agent is paused (D21).
	_, err = c.Execute(ctx, python("print(1)"))
	if info := infoOf(err); status.Code(err) != codes.FailedPrecondition || info.GetReason() != string(holdfast.KindPaused) || info.Metadata["hint"] == "" {
		t.Errorf("%v, %v", err, info)
	}
}

// boundaryEntries counts the crossings of boundaries that begin with prefix.
func (d *Daemon) boundaryEntries(t *testing.T, prefix string) int {
	t.Helper()
	list, err := d.entriesOf(prefix)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func infoOf(err error) *errdetails.ErrorInfo {
	for _, d := range status.Convert(err).Details() {
		if i, ok := d.(*errdetails.ErrorInfo); ok {
			return i
		}
	}
	return nil
}

// checkExecutorRefuses: 003 2.1, failure predicates 1 to 4, and whoever brings no
// good token: a status with the kind as its reason, and nothing runs.
func checkExecutorRefuses(t *testing.T, d *Daemon, c executorpb.CodeExecutorClient) {
	ctx, before := d.as(t, "ada"), d.boundaryEntries(t, "exec/")
	bearer := func(values ...string) context.Context {
		ctx := t.Context()
		for _, v := range values {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", v)
		}
		return ctx
	}
	change := func(f func(*executorpb.ExecutionRequest)) *executorpb.ExecutionRequest {
		r := python("print(1)")
		f(r)
		return r
	}
	type req = executorpb.ExecutionRequest
	for name, tc := range map[string]struct {
		ctx  context.Context
		r    *req
		code codes.Code
		kind holdfast.Kind
	}{
		"no token":           {t.Context(), python("print(1)"), codes.Unauthenticated, holdfast.KindJWT},
		"two tokens":         {bearer("Bearer a", "Bearer b"), python("print(1)"), codes.Unauthenticated, holdfast.KindJWT},
		"no token's form":    {bearer("Bearer a.b.c"), python("print(1)"), codes.Unauthenticated, holdfast.KindJWTDecode},
		"no id":              {ctx, change(func(r *req) { r.RequestId = "" }), codes.InvalidArgument, holdfast.KindProtocol},
		"no code":            {ctx, change(func(r *req) { r.Code = "" }), codes.InvalidArgument, holdfast.KindProtocol},
		"code and a program": {ctx, change(func(r *req) { r.Program = []byte{1} }), codes.InvalidArgument, holdfast.KindProtocol},
		"a path":             {ctx, change(func(r *req) { r.Language = "../bin/sh" }), codes.InvalidArgument, holdfast.KindLanguage},
		"no such language":   {ctx, change(func(r *req) { r.Language = "cobol" }), codes.InvalidArgument, holdfast.KindLanguage},
		"large code":         {ctx, change(func(r *req) { r.Code = strings.Repeat("#", 10<<20+1) }), codes.InvalidArgument, holdfast.KindCodeSize},
		"a year":             {ctx, change(func(r *req) { r.Timeout = durationpb.New(365 * 24 * time.Hour) }), codes.InvalidArgument, holdfast.KindLimit},
		"no time":            {ctx, change(func(r *req) { r.Timeout = durationpb.New(0) }), codes.InvalidArgument, holdfast.KindLimit},
		"a duration of none": {ctx, change(func(r *req) { r.Timeout = &durationpb.Duration{Seconds: 1, Nanos: -1} }), codes.InvalidArgument, holdfast.KindLimit},
		"memory below 0":     {ctx, change(func(r *req) { r.MemoryLimitMb = -1 }), codes.InvalidArgument, holdfast.KindLimit},
		"much memory":        {ctx, change(func(r *req) { r.MemoryLimitMb = 1 << 50 }), codes.InvalidArgument, holdfast.KindLimit},
		"a period of an age": {ctx, change(func(r *req) { r.CpuPeriodMs = 1 << 60 }), codes.InvalidArgument, holdfast.KindLimit},
		"a climbing file":    {ctx, change(func(r *req) { r.Files = map[string][]byte{"../x": nil} }), codes.InvalidArgument, holdfast.KindProtocol},
		"a secret":           {ctx, change(func(r *req) { r.Environment = map[string]string{"T": "ghp_" + strings.Repeat("a1B2", 9)} }), codes.InvalidArgument, holdfast.KindProtocol},
	} {
		_, err := c.Execute(tc.ctx, tc.r)
		if status.Code(err) != tc.code || infoOf(err).GetReason() != string(tc.kind) || infoOf(err).GetDomain() != "holdfast" {
			t.Errorf("%s: %v %v, want %v %s", name, err, infoOf(err), tc.code, tc.kind)
		}
	}
	if _, err := c.Execute(ctx, change(func(r *req) { r.Files = map[string][]byte{"x": make([]byte, 40<<20)} })); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("40 MB: %v", err)
	}
	if n := d.boundaryEntries(t, "exec/") - before; n != 0 {
		t.Errorf("%d crossings of refused requests", n)
	}
}

// checkCallerGoes: a caller that vanishes in the middle of a run ends it,
// and one that is let in and says nothing takes no room for ever.
func checkCallerGoes(t *testing.T, d *Daemon, c executorpb.CodeExecutorClient) {
	ctx := d.as(t, "ada")
	if _, err := c.Execute(ctx, python("print(1)")); err != nil {
		t.Fatal(err) // the launcher is up
	}
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	if _, err := c.Execute(short, python("import time\ntime.sleep(600)")); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%v", err)
	}
	for end := time.Now().Add(time.Minute); len(d.Kernel.Flights()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it still runs:", d.Kernel.Flights())
		}
	}
}

// checkExecutorHalts: a halt ends a run, and the next is refused.
func checkExecutorHalts(t *testing.T, d *Daemon, c executorpb.CodeExecutorClient) {
	ctx := d.as(t, "ada")
	ended := make(chan error, 1)
	go func() {
		_, err := c.Execute(ctx, python("import time\ntime.sleep(19)"))
		ended <- err
	}()
	for len(d.Kernel.Flights()) == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	if err := d.latch.Set("me", "enough", time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; infoOf(err).GetReason() != string(holdfast.KindHalted) {
		t.Errorf("%v", err)
	}
	if _, err := c.Execute(ctx, python("print(1)")); status.Code(err) != codes.FailedPrecondition || infoOf(err).GetReason() != string(holdfast.KindHalted) {
		t.Errorf("%v", err)
	}
}

// TestExecutorQueue: with room for one and one who waits, the third is told to
// come again; and who waited is answered.
func TestExecutorQueue(t *testing.T) {
	d, c := executorUp(t, "}\n  running: 1\n  waiting: 1\n  wait: 10m\n", nil)
	ctx := d.as(t, "ada")
	running, leave := context.WithCancel(ctx)
	defer leave()
	first, others := make(chan error, 1), make(chan error, 5)
	go func() {
		_, err := c.Execute(running, python("import time\ntime.sleep(600)"))
		first <- err
	}()
	for len(d.Kernel.Flights()) == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	for range cap(others) {
		go func() {
			_, err := c.Execute(ctx, python("print(1)"))
			others <- err
		}()
	}
	for range cap(others) - 1 {
		if err := <-others; status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%v", err)
		}
	}
	leave()
	if err := <-first; status.Code(err) != codes.Canceled {
		t.Errorf("%v", err)
	}
	if err := <-others; err != nil {
		t.Errorf("the one who waited: %v", err)
	}
}

// TestExecutorTLS: beyond a certificate that the configuration's signers gave,
// nobody is spoken to.
func TestExecutorTLS(t *testing.T) {
	dir := t.TempDir()
	ours, theirs := testfile.NewAuthority(t), testfile.NewAuthority(t)
	cert, key := ours.Issue(t, dir, "server")
	_ = os.WriteFile(filepath.Join(dir, "clients.pem"), ours.PEM, 0o600)
	d, _ := executorUp(t, fmt.Sprintf(", cert: %s, key: %s, clients: %s}\n", cert, key, filepath.Join(dir, "clients.pem")), nil)
	ctx := d.as(t, "ada")
	roots := x509.NewCertPool()
	roots.AddCert(ours.Cert)
	with := func(a *testfile.Authority, name string, version uint16) credentials.TransportCredentials {
		c := &tls.Config{RootCAs: roots, ServerName: "localhost", MaxVersion: version}
		if a != nil {
			crt, key := a.Issue(t, t.TempDir(), name)
			own, err := tls.LoadX509KeyPair(crt, key)
			if err != nil {
				t.Fatal(err)
			}
			c.Certificates = []tls.Certificate{own}
		}
		return credentials.NewTLS(c)
	}
	got, err := executorClient(t, d, with(&ours, "ada", 0)).Execute(ctx, python("print(6*7)"))
	if err != nil || got.Stdout != "42\n" {
		t.Errorf("%v, %v", got, err)
	}
	for name, creds := range map[string]credentials.TransportCredentials{
		"no certificate": with(nil, "", 0), "of others": with(&theirs, "ada", 0), "an old version": with(&ours, "ada", tls.VersionTLS12), "none at all": nil,
	} {
		if _, err := executorClient(t, d, creds).Execute(ctx, python("print(1)")); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A certificate alone is nobody.
	if _, err := executorClient(t, d, with(&ours, "ada", 0)).Execute(t.Context(), python("print(1)")); status.Code(err) != codes.Unauthenticated {
		t.Errorf("%v", err)
	}
}

// checkExecutorRubbish: what is not gRPC, or no message, harms nobody.
func checkExecutorRubbish(t *testing.T, d *Daemon, c executorpb.CodeExecutorClient) {
	for _, text := range []string{"", "\x00", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\xff", 4096)} {
		conn, err := net.Dial("tcp", d.executorAt())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(text))
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = conn.Read(make([]byte, 4096))
		conn.Close()
	}
	ctx := d.as(t, "ada")
	bad := metadata.AppendToOutgoingContext(ctx, "idempotency-key", "a", "idempotency-key", "b")
	if _, err := c.Execute(bad, python("print(1)")); infoOf(err).GetReason() != string(holdfast.KindProtocol) {
		t.Errorf("%v", err)
	}
	if got, err := c.Execute(ctx, python("print(1)")); err != nil || got.Stdout != "1\n" {
		t.Errorf("%v, %v", got, err)
	}
}
