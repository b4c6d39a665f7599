// Package pgserver runs throw-away PostgreSQL servers for tests, demos and
// benchmarks: own data directory, own password, a free loopback port, never
// the system's cluster.
//
// A server lives no longer than the process that launched it. A small
// watchdog process holds the read end of a pipe; however the launching process
// ends (return, panic, SIGKILL), the pipe closes, and the watchdog stops the
// server and removes its directory. It needs no TestMain and no signal handler,
// and it works where Linux's parent-death signal does not: that one fires
// when the launching *thread* ends, which the Go runtime does at will.
//
// The package runs on Unix systems that have server binaries of PostgreSQL 13
// or newer; see [Find].
package pgserver
