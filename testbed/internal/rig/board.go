package rig

import (
	"fmt"
	"io"
	"strconv"
	"sync"
)

// Board prints figures, one line each for scripts/figures to read, and
// remembers whether one was short. It is safe for concurrent use.
type Board struct {
	mu    sync.Mutex
	out   io.Writer
	short int
}

// NewBoard makes a board that prints to out.
func NewBoard(out io.Writer) *Board { return &Board{out: out} }

// AtLeast is a figure that is short below least.
func (b *Board) AtLeast(name string, value, least int) {
	b.show(name, value, ">="+strconv.Itoa(least), value >= least)
}

// Exactly is a figure that is short unless it is goal.
func (b *Board) Exactly(name string, value, goal int) {
	b.show(name, value, strconv.Itoa(goal), value == goal)
}

func (b *Board) show(name string, value int, goal string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	word := "ok"
	if !ok {
		word = "short"
		b.short++
	}
	_, _ = fmt.Fprintf(b.out, "figure %s %d %s %s\n", name, value, goal, word) // a broken pipe ends the program by itself
}

// ExitCode is 1 when a figure was short.
func (b *Board) ExitCode() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.short > 0 {
		return 1
	}
	return 0
}

// List prints violations, the first ten of them.
func List(violations []string) {
	for i, v := range violations {
		if i == 10 {
			fmt.Printf("... and %d more\n", len(violations)-i)
			break
		}
		fmt.Println("violation:", v)
	}
}
