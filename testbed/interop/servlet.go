package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// servlet is the REST catalog server of the Java project's own tests, see
// java/restserver. Each first segment of a path is a catalog of its own.
type servlet struct {
	url string // http://127.0.0.1:port
	cmd *exec.Cmd
	in  io.WriteCloser
}

// startServlet starts one that keeps its catalogs in dir; properties are of each.
func startServlet(ctx context.Context, folder, dir string, properties []string) (*servlet, error) {
	classes, err := classpath(folder, "restserver")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("make directory of REST server: %w", err)
	}
	args := append([]string{"-Xmx512m", "-XX:+UseSerialGC", "-cp", classes, "RestServer", dir}, properties...)
	s := &servlet{cmd: exec.CommandContext(ctx, "java", args...)} //nolint:gosec // a program of this test bed
	s.cmd.Stderr = os.Stderr
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start REST server: %w", err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start REST server: %w", err)
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start REST server: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	address, found := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !found {
		return nil, fmt.Errorf("start REST server: it said %q: %w", line, errors.Join(err, s.close()))
	}
	s.url = strings.TrimSuffix(address, "/")
	return s, nil
}

// close ends the server: it ends with its input.
func (s *servlet) close() error {
	err := s.in.Close()
	return errors.Join(err, s.cmd.Wait())
}
