// Package executor is the door by which programs run code over gRPC: the code
// executor of the specification (003 section 2.1), each call of it a crossing.
package executor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/executorpb"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// maxMessage bounds a request: the code, and files. It is read into memory for
// each that runs, so that it is less than the sandbox itself would take.
const maxMessage = 32 << 20

// maxAnswer bounds what is sent: a whole scratch, and twice 1 MB of output.
const maxAnswer = sandbox.MaxFileBytes + 16<<20

// Answer is what came of a crossing.
type Answer struct {
	Outcome *holdfast.Outcome
	Result  *posture.Document
	// Err is what the kernel or the sandbox had against it; a result may be
	// there all the same.
	Err error
}

// Kernel is what stands behind the door.
type Kernel interface {
	// Admit says whose token it is, from the values of the call's authorization
	// header, or why nobody's. A refusal has been recorded.
	Admit(ctx context.Context, authorization []string) (holdfast.Secret, error)
	// Enter waits for room. The caller leaves.
	Enter(ctx context.Context, size int64) (leave func(), err error)
	// Execute makes the crossing; spec's tier is the least that was asked for. An
	// error is one of the request, and there was
	// no crossing.
	Execute(ctx context.Context, token holdfast.Secret, key string, spec sandbox.Spec, ev posture.Evidence) (Answer, error)
}

// Config is what a Server needs.
type Config struct {
	Kernel Kernel
	// Credentials are the transport's; nil is none, for loopback alone.
	Credentials credentials.TransportCredentials
	// Serving is told that a call is at work for whoever is at that end of a
	// connection, and what it returned, that it is not; nil is told nothing.
	Serving func(net.Addr) (done func())
	// Panicked takes what a panic said.
	Panicked func(any)
}

// Server answers calls. It is safe for use by many at once.
type Server struct {
	cfg  Config
	grpc *grpc.Server
}

// New makes a server; Serve takes it up, Stop ends it.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg}
	opts := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxAnswer), grpc.MaxHeaderListSize(32 << 10),
		grpc.MaxConcurrentStreams(128), grpc.ConnectionTimeout(10 * time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 10 * time.Minute, Time: time.Minute, Timeout: 20 * time.Second}),
	}
	if cfg.Credentials != nil {
		opts = append(opts, grpc.Creds(cfg.Credentials))
	}
	s.grpc = grpc.NewServer(opts...)
	s.grpc.RegisterService(description(), s)
	return s
}

// description is the service as executor.proto has it. The server takes its one
// method as a stream, which is the same on the wire: so it is asked before the
// request is read into memory, and not after.
func description() *grpc.ServiceDesc {
	d := executorpb.CodeExecutor_ServiceDesc
	return &grpc.ServiceDesc{ServiceName: d.ServiceName, HandlerType: (*any)(nil), Metadata: d.Metadata,
		Streams: []grpc.StreamDesc{{StreamName: "Execute", Handler: func(srv any, stream grpc.ServerStream) error { return srv.(*Server).handle(stream) }}}}
}

// Serve answers what comes by l until Stop, and then returns nil.
func (s *Server) Serve(l net.Listener) error { return s.grpc.Serve(l) }

// Stop lets calls under way end for as long as grace, and then cuts them.
func (s *Server) Stop(grace time.Duration) {
	cut := time.AfterFunc(grace, s.grpc.Stop)
	defer cut.Stop()
	s.grpc.GracefulStop()
}

func (s *Server) handle(stream grpc.ServerStream) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Panicked(p)
			err = status.Error(codes.Internal, "the executor failed")
		}
	}()
	ctx := stream.Context()
	if p, ok := peer.FromContext(ctx); ok && s.cfg.Serving != nil {
		defer s.cfg.Serving(p.Addr)()
	}
	headers, _ := metadata.FromIncomingContext(ctx)
	token, err := s.cfg.Kernel.Admit(ctx, headers.Get("authorization"))
	if err != nil {
		return refusal(err, nil)
	}
	leave, err := s.cfg.Kernel.Enter(ctx, 0)
	if err != nil {
		return refusal(err, nil)
	}
	defer leave()
	req, err := receive(stream)
	if err != nil {
		return err
	}
	spec, err := specOf(req)
	if err != nil {
		return refusal(err, nil)
	}
	ev, err := evidenceOf(req.Evidence)
	if err != nil {
		return refusal(err, nil)
	}
	key, err := single(headers, "idempotency-key")
	if err != nil {
		return refusal(err, nil)
	}
	ans, err := s.cfg.Kernel.Execute(ctx, token, key, spec, ev)
	if err != nil {
		return refusal(err, nil)
	}
	res, err := reply(req.RequestId, ans)
	if err != nil {
		return err
	}
	return stream.SendMsg(res)
}

// receiveWithin is how long a caller who was let in may take to say what is to
// be run: meanwhile it takes the room of one who has something to run.
const receiveWithin = 30 * time.Second

// receive reads the request. What it reads into is given up with the call, which
// ends when it returns.
func receive(stream grpc.ServerStream) (*executorpb.ExecutionRequest, error) {
	req, read := new(executorpb.ExecutionRequest), make(chan error, 1)
	go func() { read <- stream.RecvMsg(req) }()
	late := time.NewTimer(receiveWithin)
	defer late.Stop()
	select {
	case err := <-read:
		return req, err // gRPC's own words have been sent already
	case <-late.C:
		return nil, refusal(&holdfast.Error{Kind: holdfast.KindProtocol, Why: fmt.Sprintf("the request did not come within %v", receiveWithin)}, nil)
	}
}

// reply is what ran, or did not come up, as the document's result; everything
// else is a refusal.
func reply(id string, ans Answer) (*executorpb.ExecutionResult, error) {
	switch {
	case ans.Result != nil:
		return resultOf(ans.Result, ans.Outcome), nil
	case broken(ans.Err):
		return spawnResult(id, ans), nil
	case ans.Err == nil:
		return nil, status.Error(codes.Internal, "the run had no result")
	}
	return nil, refusal(ans.Err, ans.Outcome)
}

// single is the one value of a header, "" if it is not there.
func single(headers metadata.MD, name string) (string, error) {
	switch v := headers.Get(name); len(v) {
	case 0:
		return "", nil
	case 1:
		return v[0], nil
	}
	return "", &holdfast.Error{Kind: holdfast.KindProtocol, Why: "there is more than one " + name}
}

// broken says whether the sandbox did not come up: the code has not run (003
// 2.2, acceptance criterion 9).
func broken(err error) bool {
	var e *holdfast.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Kind {
	case holdfast.KindSpawn, holdfast.KindNamespace, holdfast.KindMount, holdfast.KindCgroup, holdfast.KindSeccomp:
		return true
	}
	return false
}
