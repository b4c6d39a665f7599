// Package child holds what every throw-away server of tests, demos and
// benchmarks needs of the operating system: a process that lives no longer than
// the one that launched it, and a directory that goes with both.
//
// A [Process] ends when its standard input does, which the kernel closes
// however its owner ends, SIGKILL included. The watchdog of a [Dir] holds another
// such pipe, and removes what is left. A server that goes into the background by
// itself, as PostgreSQL does, is found by its pid file and stopped by the watchdog.
package child
