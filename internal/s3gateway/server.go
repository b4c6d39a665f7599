package s3gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/child"
)

// startTimeout bounds one start of the server.
const startTimeout = 30 * time.Second

// The key's id of every server, and its region.
const (
	Key    = "rhizodat"
	Region = "us-east-1"
)

// launcher leaves the process id where the watchdog looks for it, before there is
// anything that could be left behind.
const launcher = `echo $$ >"$1" && shift && exec "$@"`

// Server is one throw-away S3 server, running or killed. Its methods are not for
// concurrent use, those without an error excepted.
type Server struct {
	program string
	dir     *child.Dir // holds data/, with a folder for each bucket, and pid
	addr    string     // host:port, kept over restarts
	secret  string
	process *child.Process // nil before the first Start
}

// Launch starts a server without a bucket and returns when it answers. The error
// is ErrNoServer where there is no program.
func Launch(ctx context.Context) (*Server, error) {
	program, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := child.MakeDirOf("rhizodat-s3-", "pid")
	if err != nil {
		return nil, err
	}
	s := &Server{program: program, dir: dir, secret: "fixture-" + rand.Text()}
	if err := os.Mkdir(dir.Path("data"), 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("rhizodat: make directory of S3 gateway: %w", err), s.Close())
	}
	// The gateway does not tell which port it took, so it is told. In between
	// another process may take it: then it ends, and another port is tried.
	for range 5 {
		if s.addr, err = freeAddr(ctx); err != nil {
			break
		}
		if err = s.Start(ctx); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(err, s.Close())
}

func freeAddr(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("rhizodat: pick port of S3 gateway: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// Start starts a killed server on its buckets and its old port.
func (s *Server) Start(ctx context.Context) error {
	const health = "/health"
	//nolint:gosec,noctx // our own program; it outlives the call, and ends by its watchdog
	cmd := exec.Command("sh", "-c", launcher, "launcher", s.dir.Path("pid"),
		s.program, "--quiet", "--port", s.addr, "--region", Region, "--health", health,
		"posix", s.dir.Path("data"))
	// Not as arguments: these are for everybody to see.
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+Key, "ROOT_SECRET_KEY="+s.secret)
	cmd.Dir = s.dir.Path()
	process, err := child.Start("S3 gateway", cmd)
	if err != nil {
		return err
	}
	s.process = process
	return process.Await(ctx, startTimeout, func() (bool, error) { return answers(ctx, s.Endpoint()+health), nil })
}

func answers(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close()) == nil && response.StatusCode == http.StatusOK
}

// Dir is the server's directory; it goes with the server.
func (s *Server) Dir() string { return s.dir.Path() }

// Addr is the server's host:port; it stays over restarts.
func (s *Server) Addr() string { return s.addr }

// Endpoint is the server's URL, for clients that address buckets by path.
func (s *Server) Endpoint() string { return "http://" + s.addr }

// Secret belongs to [Key].
func (s *Server) Secret() string { return s.secret }

// URL is a bucket's URL with its credentials: http://KEY:SECRET@host:port/BUCKET.
func (s *Server) URL(bucket string) string {
	u := url.URL{Scheme: "http", User: url.UserPassword(Key, s.secret), Host: s.addr, Path: "/" + bucket}
	return u.String()
}

// Running tells whether the server's process is there.
func (s *Server) Running() bool { return s.process.Running() }

// Kill ends the server by SIGKILL, as a crash of it does, and returns when it is gone.
func (s *Server) Kill() error { return s.process.Kill() }

// Close ends the server and removes its directory.
func (s *Server) Close() error { return errors.Join(s.Kill(), s.dir.Remove()) }
