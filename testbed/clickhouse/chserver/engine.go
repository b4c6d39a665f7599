package main

import (
	"errors"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// engine is the loaded library.
type engine struct {
	cmdline func(argc int32, argv unsafe.Pointer) uintptr
	errText func(result uintptr) string
}

// load opens the library. Its signal handlers stay off: signals belong to the
// Go runtime.
func load(lib string) (*engine, error) {
	handle, err := purego.Dlopen(lib, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, err
	}
	e := &engine{}
	for name, fn := range map[string]any{"chdb_query_cmdline": &e.cmdline, "chdb_result_error": &e.errText} {
		if _, err := purego.Dlsym(handle, name); err != nil {
			return nil, err
		}
		purego.RegisterLibFunc(fn, handle, name)
	}
	const handlers = "chdb_set_signal_handlers_enabled"
	if _, err := purego.Dlsym(handle, handlers); err == nil {
		var enable func(bool)
		purego.RegisterLibFunc(&enable, handle, handlers)
		enable(false)
	}
	return e, nil
}

// local runs clickhouse-local with args until its queries have ended.
func (e *engine) local(args ...string) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	argv := make([]*byte, 0, len(args)+2)
	for _, arg := range append([]string{"clickhouse-local"}, args...) {
		text := append([]byte(arg), 0)
		pin.Pin(&text[0])
		argv = append(argv, &text[0])
	}
	argc := len(argv)
	argv = append(argv, nil)
	pin.Pin(&argv[0])
	result := e.cmdline(int32(argc), unsafe.Pointer(&argv[0]))
	if result == 0 {
		return errors.New("chdb_query_cmdline returned no result")
	}
	if text := e.errText(result); text != "" {
		return errors.New(text)
	}
	return nil
}
