package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/netaddr"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/sandbox/copies/image"
	"github.com/holdfast-dev/holdfast/internal/sandbox/tiers"
	"google.golang.org/grpc/credentials"
)

// maxWaitRoom is how long a request for room may wait at most.
const maxWaitRoom = 10 * time.Minute

// maxCertFile bounds a file of certificates.
const maxCertFile = 1 << 20

func (k *checker) sandbox(c *Config) {
	if w := time.Duration(c.Sandbox.Wait); w < time.Millisecond || w > maxWaitRoom {
		k.fail(k.at("sandbox.wait"), "wait 1ms to 10m", "sandbox.wait: %v is not allowed", w)
	}
	k.tiers(c)
	e := c.Sandbox.Executor
	named := 0
	for _, f := range []string{e.Cert, e.Key, e.Clients} {
		if f != "" {
			named++
		}
	}
	if e.Listen == "" {
		if named > 0 {
			k.fail(k.at("sandbox.executor"), "write listen: 127.0.0.1:7413", "sandbox.executor has no listen")
		}
		return
	}
	host, port, err := net.SplitHostPort(e.Listen)
	n, bad := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || bad != nil || strconv.FormatUint(n, 10) != port:
		k.fail(k.at("sandbox.executor.listen"), "write host:port, such as 127.0.0.1:7413", "sandbox.executor.listen: %q is not an address", excerpt.Word(e.Listen))
	case named != 0 && named != 3:
		k.fail(k.at("sandbox.executor"), "", "sandbox.executor needs all three of cert, key and clients, or none")
	case named == 0 && !netaddr.IsLoopbackHost(host):
		k.fail(k.at("sandbox.executor.listen"), "listen on 127.0.0.1, or name cert, key and clients", "sandbox.executor.listen: %q can be reached from other machines", excerpt.Word(e.Listen))
	}
}

// runtimes are the words for what runs containers.
func runtimes() []string { return []string{"auto", "runc", "crun", "runsc", "docker"} }

// tiers wants paths to be absolute, so that they mean the same wherever Holdfast
// was started; whether something is there is found out where it is used.
func (k *checker) tiers(c *Config) {
	ct, vm := c.Sandbox.Container, c.Sandbox.VM
	if r := ct.Runtime; r != "" && !slices.Contains(runtimes(), r) && !absolutely(r) {
		k.fail(k.at("sandbox.container.runtime"), "write "+strings.Join(runtimes(),
			", ")+", or an absolute path", "sandbox.container.runtime: there is no runtime %q", excerpt.Word(r))
	}
	k.images(ct)
	for key, path := range map[string]string{"kernel": vm.Kernel, "qemu": vm.QEMU} {
		if path != "" && !absolutely(path) {
			k.fail(k.at(
				"sandbox.vm."+key,
			), "name a file by its absolute path", "sandbox.vm.%s: %q is no file's path", key, excerpt.Word(path))
		}
	}
}

// images wants the image to be one of the engine's, or one that images names.
func (k *checker) images(ct ContainerConfig) {
	for name, path := range ct.Images {
		switch {
		case !imageName(name):
			k.fail(k.at(
				"sandbox.container.images",
			), "name it such as tools", "sandbox.container.images: %q is no image's name", excerpt.Word(name))
		case !absolutely(path):
			k.fail(k.at("sandbox.container.images"), "name a folder or an archive by its absolute path", "sandbox.container.images: %s: %q is no path", excerpt.Word(name), excerpt.Word(path))
		}
	}
	at := k.at("sandbox.container.image")
	switch i := ct.Image; {
	case ct.Runtime == "docker" && i == "":
		k.fail(k.at("sandbox.container.runtime"), "name one of the engine's: image: NAME; `docker import` makes one of a folder's archive", "sandbox.container: the Docker engine needs an image")
	case ct.Runtime == "docker" && len(ct.Images) > 0:
		k.fail(k.at("sandbox.container.images"), "leave images out: image names one of the engine's", "sandbox.container.images: a Docker engine has images of its own")
	case ct.Runtime == "docker" && !imageName(i):
		k.fail(at, "name a local image, such as tools:latest", "sandbox.container.image: %q is no image's name",
			excerpt.Word(i))
	case ct.Runtime != "docker" && i != "" && ct.ImageSource() == (image.Source{}):
		k.fail(at, "write images: {"+excerpt.Word(i)+": /PATH} beside it, or the absolute path itself; runtime: docker has the engine's", "sandbox.container.image: there is no image %q under images, and none is fetched", excerpt.Word(i))
	}
}

// imageName says whether a text is a name that an image can have.
func imageName(s string) bool {
	return s != "" && len(s) <= maxName && s[0] != '/' && !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) })
}

// TierConfig returns the settings of the tiers.
func (c *SandboxConfig) TierConfig() tiers.Config {
	return tiers.Config{
		Runtime: c.Container.Runtime, Image: c.Container.ImageSource(), EngineImage: c.Container.Image,
		Kernel: c.VM.Kernel, QEMU: c.VM.QEMU, MemoryMB: c.VM.Memory,
	}
}

// ImageSource is the image of an OCI runtime's containers; its zero value is none, or
// none that is known.
func (c ContainerConfig) ImageSource() image.Source {
	if absolutely(c.Image) {
		return image.Source{Name: filepath.Base(c.Image), Path: c.Image}
	}
	if path := c.Images[c.Image]; path != "" {
		return image.Source{Name: c.Image, Path: path}
	}
	if i := strings.LastIndexByte(c.Image, ':'); i > 0 && i < len(c.Image)-1 && c.Images[c.Image[:i]] != "" {
		return image.Source{Name: c.Image, Path: c.Images[c.Image[:i]], Tag: c.Image[i+1:]}
	}
	return image.Source{}
}

// imagePath sees that nobody else decides what stands where the image is taken
// from. That nothing does is found out where it is used.
func (r *reading) imagePath(c ContainerConfig) {
	path := c.ImageSource().Path
	if path == "" || c.Runtime == "docker" {
		return
	}
	if _, err := r.guard.Resolve(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.unreadable(place(filepath.Base(r.files[0]), r.lines["sandbox.container.image"]), path, err)
	}
}

// absolutely says whether a path is absolute and in its shortest form.
func absolutely(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && path != "/" && len(path) <= maxPath && !strings.ContainsFunc(path, unicode.IsControl)
}

// maxPath bounds a path of the configuration.
const maxPath = 4096

// unnamed is the weakening of a runtime that somebody asked for by name and that
// cannot say which call ended a program, or "".
func (c ContainerConfig) unnamed() string {
	if c.Runtime != "docker" && c.Runtime != "runsc" {
		return ""
	}
	return "sandbox.container.runtime: " + c.Runtime + " cannot say which system call ended a program in a container"
}

// executorFiles reads what the executor's certificates are, so that a mistake is
// found where it is written.
func (r *reading) executorFiles(e *ExecutorConfig) {
	if e.Cert == "" || e.Key == "" || e.Clients == "" {
		return
	}
	e.Cert, e.Key, e.Clients = r.abs(e.Cert), r.abs(e.Key), r.abs(e.Clients)
	if _, err := e.LoadCredentials(r.guard); err != nil {
		why, hint := usage.Explain(err)
		r.fail(place(filepath.Base(r.files[0]), r.lines["sandbox.executor"]), hint, why)
	}
}

// LoadCredentials reads the certificates: both sides show one, and nothing older
// than TLS 1.3 is spoken. Nil without any.
func (e ExecutorConfig) LoadCredentials(g guard.Guard) (credentials.TransportCredentials, error) {
	if e.Cert == "" {
		return nil, nil
	}
	cert, err := g.Read(e.Cert, maxCertFile)
	if err != nil {
		return nil, guard.ExplainReadError(e.Cert, err)
	}
	key, err := guard.ReadRegular(e.Key, maxCertFile, guard.CheckPrivate(e.Key))
	if err != nil {
		return nil, guard.ExplainReadError(e.Key, err)
	}
	own, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, usage.HintErrorf(
			"both are PEM, and belong together", "%s and %s are no certificate and its key", e.Cert, e.Key,
		)
	}
	signers, err := g.Read(e.Clients, maxCertFile)
	if err != nil {
		return nil, guard.ExplainReadError(e.Clients, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(signers) {
		return nil, usage.HintErrorf("it is PEM, of whoever signs the clients' certificates", "%s holds no certificate",
			e.Clients)
	}
	return credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{own}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}), nil
}

// Room is how much code runs and waits at once.
func (c SandboxConfig) Room() api.Room {
	return api.Room{Running: c.Running, Waiting: c.Waiting, Wait: time.Duration(c.Wait)}
}

// language wants a contract for code to be of a name that runs have, which is the
// language's exact one: what a contract of another name demands, nothing would meet,
// and the run would go by the one of exec/*.
func (k *checker) language(b *BoundaryConfig) {
	name, runs := strings.CutPrefix(b.Boundary, "exec/")
	if !runs || strings.ContainsAny(name, "/*") || exactLanguage().MatchString(name) {
		return
	}
	if slices.Contains([]string{"python", "python3", "node", "nodejs"}, name) || b.Tier != "" || b.Walls != nil {
		k.fail(b.At, "name it exactly, such as exec/python3.11 or exec/node20, or write exec/* for every language", "no run is of the boundary %q: a run is of its language with its version", excerpt.Word(b.Boundary))
	}
}

// exactLanguage are the names that languages have with their version.
func exactLanguage() *regexp.Regexp {
	return regexp.MustCompile(`^(python3\.[0-9]+|node[0-9]+|static)$`)
}
