package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// reading is a line of a source.
type reading struct {
	at    int64 // the byte where it begins, which tells the lines of a source apart
	meter int
	value int64
}

// sources are the files of the directory, by their names.
func sources(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no files in %s", dir)
	}
	return names, nil
}

// read reads up to most lines that begin at a byte of a source or behind it, and
// tells where the next one begins. A line that is still being written has no end
// yet, and is left for later. One that cannot be read is an error once it is the
// first: what stands before it is not held up.
func read(dir, source string, at int64, most int) (found []reading, next int64, err error) {
	file, err := os.OpenInRoot(dir, source)
	if err != nil {
		return nil, at, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	if _, err := file.Seek(at, io.SeekStart); err != nil {
		return nil, at, err
	}
	for lines := bufio.NewReader(file); len(found) < most; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, at, err
		}
		r := reading{at: at}
		if _, err := fmt.Fscan(bytes.NewReader(line), &r.meter, &r.value); err != nil {
			if len(found) > 0 {
				break
			}
			return nil, at, fmt.Errorf("read %s at byte %d: %w", source, at, err)
		}
		found = append(found, r)
		at += int64(len(line))
	}
	return found, at, nil
}
