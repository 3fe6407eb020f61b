package container

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
)

// engine is a Docker engine behind its socket, spoken to in the few calls of its
// API that a run needs. What it answers is bounded in size and time.
type engine struct {
	socket string
	api    string // the version of its API that is spoken, such as 1.41
	http   *http.Client
}

const (
	// oldestAPI is the engine's 20.10, the first that kills by its filter's own
	// answer for every call.
	oldestAPI = 41
	// maxReply bounds a JSON answer.
	maxReply = 4 << 20
	// answerWithin is for calls that make or move no files.
	answerWithin = 15 * time.Second

	dockerSocket = "/var/run/docker.sock"
	startDocker  = "start one (Debian: `apt install docker.io`), or take an OCI runtime instead: `sandbox: container: runtime: runc`"
)

// socketOf is the path in the words of DOCKER_HOST; empty is the engine's usual
// one. Only unix:// is spoken: by TCP whoever answers could be anybody.
func socketOf(host string) (string, error) {
	if host == "" {
		return dockerSocket, nil
	}
	path, ok := strings.CutPrefix(host, "unix://")
	if !ok || !strings.HasPrefix(path, "/") || strings.ContainsRune(path, 0) || len(path) > 100 {
		return "", &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("DOCKER_HOST is %.80q, and only an engine behind a socket of this machine is used", host), Hint: "set it to unix:///var/run/docker.sock, or leave it empty"}
	}
	return path, nil
}

// reach finds out who listens at the socket, and what API it speaks.
func reach(ctx context.Context, socket string) (*engine, engineVersion, error) {
	e := &engine{socket: socket}
	e.http = &http.Client{
		Transport: &http.Transport{
			DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return dialOwner(ctx, socket) },
			MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
			// A socket costs little, and nothing comes on one that nobody has asked on.
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it answers with another address") },
	}
	var v engineVersion
	err := e.call(ctx, http.MethodGet, "/version", nil, nil, &v)
	if err == nil {
		e.api, err = v.spoken()
	}
	if err != nil {
		e.close()
		return nil, v, &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("there is no Docker engine that can be used at %s: %v", socket, err), Hint: startDocker, Err: err}
	}
	return e, v, nil
}

func (e *engine) close() { e.http.CloseIdleConnections() }

// dialOwner connects to who may stand behind the socket: root, or the user who
// Holdfast is. Anybody else could say of a container whatever they like.
func dialOwner(ctx context.Context, socket string) (net.Conn, error) {
	info, err := os.Stat(socket)
	if err != nil {
		return nil, err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("%s is no socket", socket)
	}
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err == nil {
		var cred *syscall.Ucred
		var told error
		err = raw.Control(func(fd uintptr) {
			cred, told = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		})
		if err = errors.Join(err, told); err == nil && cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
			err = fmt.Errorf("user %d listens there, neither root nor who runs Holdfast", cred.Uid)
		}
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// engineVersion is the answer to GET /version.
type engineVersion struct {
	Version       string
	APIVersion    string `json:"ApiVersion"`
	MinAPIVersion string
	Os, Arch      string
}

// spoken is the API version that both know: the oldest that serves.
func (v engineVersion) spoken() (string, error) {
	most, ok := minor(v.APIVersion)
	if !ok {
		return "", fmt.Errorf("it says %.40q of its API, which is no version", v.APIVersion)
	}
	if most < oldestAPI {
		return "", fmt.Errorf("it is %.40q and speaks API %.20s; 1.%d (20.10) is the oldest that is used", v.Version, v.APIVersion, oldestAPI)
	}
	least, ok := minor(v.MinAPIVersion)
	if v.Os != "linux" || ok && least > most {
		return "", fmt.Errorf("it runs %.20q containers by API %.20q to %.20q", v.Os, v.MinAPIVersion, v.APIVersion)
	}
	return "1." + strconv.Itoa(max(oldestAPI, least)), nil
}

func minor(version string) (int, bool) {
	text, ok := strings.CutPrefix(version, "1.")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil && n >= 0 && n < 10_000
}

// said is an error that the engine answered with.
type said struct {
	status int
	text   string
}

func (s *said) Error() string {
	return fmt.Sprintf("the engine says (%d): %.600s", s.status, printable(s.text))
}

// absent says of an error that the engine does not have what was named.
func absent(err error) bool {
	s := (*said)(nil)
	return errors.As(err, &s) && s.status == http.StatusNotFound
}

// printable takes out of foreign words what steers a terminal.
func printable(s string) string { return visible.ReplaceControls(strings.TrimSpace(s), ' ') }

// call sends in, as JSON unless it is nil, and reads the answer into out unless
// that is nil. What ctx leaves open ends after answerWithin.
func (e *engine) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, answerWithin)
		defer cancel()
	}
	resp, err := e.open(ctx, method, path, query, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return decode(resp.Body, out)
}

func decode(r io.Reader, out any) error {
	b, err := io.ReadAll(io.LimitReader(r, maxReply+1))
	switch {
	case err != nil:
		return fmt.Errorf("its answer broke off: %w", err)
	case len(b) > maxReply:
		return fmt.Errorf("its answer is larger than %d MB", maxReply>>20)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("its answer cannot be read: %w", err)
	}
	return nil
}

// open is call where the answer comes bit by bit; the caller closes its body.
func (e *engine) open(ctx context.Context, method, path string, query url.Values, in any) (*http.Response, error) {
	if e.api != "" {
		path = "/v" + e.api + path
	}
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	u := url.URL{Scheme: "http", Host: "docker", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := e.http.Do(req)
	if err != nil {
		if late := ctx.Err(); errors.Is(late, context.DeadlineExceeded) {
			return nil, fmt.Errorf("it does not answer %s %s in time", method, path)
		}
		if own := (*url.Error)(nil); errors.As(err, &own) {
			err = own.Err // the address is of nobody's making
		}
		return nil, err
	}
	if resp.StatusCode < 300 || resp.StatusCode == http.StatusNotModified {
		return resp, nil
	}
	defer resp.Body.Close()
	s := &said{status: resp.StatusCode}
	var words struct{ Message string }
	if err := decode(resp.Body, &words); err != nil {
		return nil, err
	}
	s.text = words.Message
	return nil, s
}
