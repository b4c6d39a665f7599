package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/rhizodat/rhizodat-go/testbed/interop/canon"
)

// peer is another engine: a process that answers one line of JSON with another.
type peer struct {
	name string

	mu  sync.Mutex // one question at a time
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// question is what a peer is asked; see COMMANDS in python/peer.py and Peer.java.
type question struct {
	Do         string            `json:"do"`
	Table      string            `json:"table,omitempty"`
	Properties map[string]string `json:"properties,omitempty"` // open

	Rows    []canon.Row     `json:"rows,omitempty"` // append
	Txn     string          `json:"txn,omitempty"`
	Schema  json.RawMessage `json:"schema,omitempty"` // create
	Spec    json.RawMessage `json:"spec,omitempty"`
	Version string          `json:"version,omitempty"`

	City   string `json:"city,omitempty"`   // delete, eqdelete
	ID     string `json:"id,omitempty"`     // posdelete, dvdelete
	Column string `json:"column,omitempty"` // addcolumn
	N      int    `json:"n,omitempty"`      // race
	Base   int    `json:"base,omitempty"`
}

// answer of a peer. Error is its class and its text.
type answer struct {
	Error string `json:"error"`
	state
	Bad  []string `json:"bad"`  // parts, filters
	Lost int      `json:"lost"` // race: commits that were refused
}

// state is a table as somebody reads it.
type state struct {
	Rows      []canon.Row     `json:"rows"`
	Schema    json.RawMessage `json:"schema"`
	Spec      json.RawMessage `json:"spec"`
	Version   string          `json:"version"`
	Snapshots []canon.Row     `json:"snapshots"`
}

// peerError is what a peer said instead of an answer.
type peerError struct{ peer, text string }

func (e *peerError) Error() string { return e.peer + ": " + e.text }

const longestLine = 64 << 20

// startPeer starts a peer's process; it ends with ctx, or with close.
func startPeer(ctx context.Context, name, program string, args ...string) (*peer, error) {
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // programs of this test bed
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start peer %s: %w", name, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start peer %s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start peer %s: %w", name, err)
	}
	p := &peer{name: name, cmd: cmd, in: in, out: bufio.NewScanner(out)}
	p.out.Buffer(make([]byte, 64<<10), longestLine)
	return p, nil
}

// ask asks one question. The error is a *peerError where the peer has answered with one.
func (p *peer) ask(q question) (answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line, err := json.Marshal(q)
	if err != nil {
		return answer{}, fmt.Errorf("ask %s to %s: %w", p.name, q.Do, err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return answer{}, fmt.Errorf("ask %s to %s: %w", p.name, q.Do, err)
	}
	if !p.out.Scan() {
		return answer{}, fmt.Errorf("ask %s to %s: %w", p.name, q.Do, errors.Join(p.out.Err(), io.ErrUnexpectedEOF))
	}
	var a answer
	if err := json.Unmarshal(p.out.Bytes(), &a); err != nil {
		return answer{}, fmt.Errorf("ask %s to %s: %w", p.name, q.Do, err)
	}
	if a.Error != "" {
		return a, &peerError{p.name, a.Error}
	}
	return a, nil
}

// close ends the process: it ends with its input.
func (p *peer) close() error {
	err := p.in.Close()
	return errors.Join(err, p.cmd.Wait())
}

// said is what a peer answered instead of doing as it was asked, and empty where the
// error is another one.
func said(err error) string {
	if e, ok := errors.AsType[*peerError](err); ok {
		return e.text
	}
	return ""
}

// startPeers starts PyIceberg and Java out of the folder that get-peers.sh has filled.
func startPeers(ctx context.Context, folder string) ([]*peer, error) {
	classes, err := classpath(folder, "peer")
	if err != nil {
		return nil, err
	}
	python, err := startPeer(ctx, "py", folder+"/venv/bin/python", "-B", "testbed/interop/python/peer.py")
	if err != nil {
		return nil, err
	}
	// Or an exception that was thrown often has no text any more.
	const withTexts = "-XX:-OmitStackTraceInFastThrow"
	java, err := startPeer(ctx, "java", "java", "-Xmx1g", "-XX:+UseSerialGC", withTexts, "-cp", classes, "Peer")
	if err != nil {
		return nil, errors.Join(err, python.close())
	}
	return []*peer{python, java}, nil
}

// classpath of one of the Java programs.
func classpath(folder, module string) (string, error) {
	jars, err := os.ReadFile(folder + "/java/" + module + "/target/classpath") //nolint:gosec // of the cache folder
	if err != nil {
		return "", fmt.Errorf("find Java program %s: %w (testbed/interop/get-peers.sh makes it)", module, err)
	}
	return folder + "/java/" + module + "/target/classes:" + strings.TrimSpace(string(jars)), nil
}
